"""The benchmark of the live scheduler still runs, in small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.envtest.fixtures import binaries_or_skip

pytestmark = [pytest.mark.live, pytest.mark.slow]


def test_bare_client_and_kube_scheduler_are_measured(tmp_path: Path) -> None:
    sizes = ["--nodes=10", "--pods=50", "--seconds=1", "--rate=50", "--gang=5"]
    rows = _figures(tmp_path, *sizes, "--contender=bare", "--contender=kube-scheduler")
    assert [row["contender"] for row in rows["throughput"]] == ["bare", "kube-scheduler"]
    assert all(row["rate"] > 0 and row["cpu"] > 0 and row["memory"] > 0 for row in rows["throughput"])
    assert [(row["shape"], row["pods"]) for row in rows["latency"]] == [("single pods", 50), ("gangs of 5", 50)]


def test_cold_starts_are_measured(tmp_path: Path) -> None:
    rows = _figures(tmp_path, "--cold", "--nodes=5", "--pods=50")["cold"]
    assert [row["contender"] for row in rows] == ["kube-scheduler", "navarch"]
    assert all(row["first_bind"] > 0 and row["cpu"] > 0 and row["memory"] > 0 for row in rows)


def test_takeovers_are_measured(tmp_path: Path) -> None:
    rows = _figures(tmp_path, "--takeover", "--nodes=5", "--pods=50", "--rate=5", "--contender=navarch")["takeover"]
    assert [(row["contender"], row["end"]) for row in rows] == [("navarch", "killed"), ("navarch", "stopped")]
    assert all(row["gap"] > 0 and row["after_lease"] > 0 for row in rows)


def _figures(folder: Path, *arguments: str) -> dict[str, list[dict[str, Any]]]:
    binaries_or_skip()
    figures = folder / "figures.json"
    command = [sys.executable, "-m", "bench.live", *arguments, f"--json={figures}"]
    subprocess.run(command, cwd=Path(__file__).resolve().parents[2], check=True, timeout=300)
    found: dict[str, list[dict[str, Any]]] = json.loads(figures.read_text(encoding="utf-8"))
    return found
