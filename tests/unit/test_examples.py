"""The example script runs as it is, and says what docs/plan.md shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_notebook_plans_explains_and_simulates() -> None:
    done = subprocess.run([sys.executable, "examples/notebook.py"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    lines = done.stdout.splitlines()
    assert lines[0] == "<Plan: 6 pods bound, 0 evicted, 1 job pending>"
    assert lines[0] in (ROOT / "docs" / "plan.md").read_text()
    assert "  user: minMember 2 instead of 6" in lines
    assert [line.partition(":")[0] for line in lines[-2:]] == ["fifo", "sjf"]
