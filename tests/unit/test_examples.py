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


def test_the_example_with_hooks_is_a_plugin_that_policies_may_name() -> None:
    command = [
        sys.executable,
        "-m",
        "navarch.cli.main",
        "policy",
        "check",
        "examples/licences.conf",
        "--plugin-dir",
        "examples/plugins",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    assert "licences" in done.stdout
    usage = subprocess.run(
        [sys.executable, "examples/licence_server.py", "--help"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    )
    assert "NAME=COUNT" in usage.stdout
