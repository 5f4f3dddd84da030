"""The benchmark of the live scheduler still runs, in small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.envtest.fixtures import binaries_or_skip

pytestmark = [pytest.mark.live, pytest.mark.slow]


def test_bare_client_and_kube_scheduler_are_measured(tmp_path: Path) -> None:
    binaries_or_skip()
    figures = tmp_path / "figures.json"
    sizes = ["--nodes=10", "--pods=50", "--seconds=1", "--rate=50", "--gang=5", "--contender=bare"]
    command = [sys.executable, "-m", "bench.live", *sizes, "--contender=kube-scheduler", f"--json={figures}"]
    subprocess.run(command, cwd=Path(__file__).resolve().parents[2], check=True, timeout=300)
    rows = json.loads(figures.read_text(encoding="utf-8"))
    assert [row["contender"] for row in rows["throughput"]] == ["bare", "kube-scheduler"]
    assert all(row["rate"] > 0 and row["cpu"] > 0 and row["memory"] > 0 for row in rows["throughput"])
    assert [(row["shape"], row["pods"]) for row in rows["latency"]] == [("single pods", 50), ("gangs of 5", 50)]
