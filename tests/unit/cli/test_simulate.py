"""`navarch simulate` on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from navarch.cli.main import main

TRACE = Path(__file__).resolve().parents[3] / "examples" / "traces" / "two-teams.jsonl"
GIVEN = ["simulate", "--trace", f"jsonl:{TRACE}", "--cluster", "h100=4x8gpu"]


def test_json_has_the_documented_form_and_the_same_bytes_each_time() -> None:
    results = [CliRunner().invoke(main, [*GIVEN, "--policy", "fifo", "--policy", "sjf", "-o", "json"]) for _ in range(2)]
    first, second = (json.loads(result.stdout) for result in results)
    assert first.keys() == {"policies", "seconds"}
    assert first["policies"] == second["policies"]
    assert list(first["policies"]) == ["fifo", "sjf"]
    assert first["policies"]["fifo"].keys() == {
        *("jobs", "finished", "jct", "queueing", "makespan", "gpuAllocated"),
        *("fragmentation", "preemptions", "lostGpuSeconds", "fairness"),
    }
    assert first["policies"]["fifo"]["gpuAllocated"]["at"] == {"100": None, "130": None}
    assert first["policies"]["fifo"]["jct"].keys() == {"mean", "p50", "p90", "p99"}


def test_a_table_and_a_report(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [*GIVEN, "--policy", "fifo", "--report", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "queueing, p99" in result.stdout
    assert (tmp_path / "out" / "index.html").exists()


def test_a_sweep_writes_a_table_and_is_resumed(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    command = [*GIVEN, "--policy", "easy", "--sweep", "easy-backfill.reservations=1,2", "--results", str(results), "-o", "json"]
    first = CliRunner().invoke(main, command)
    assert json.loads(first.stdout)["policies"].keys() == {
        "easy[easy-backfill.reservations=1]",
        "easy[easy-backfill.reservations=2]",
    }
    second = CliRunner().invoke(main, command)
    assert "2 of 2 runs are in" in second.stderr
    assert json.loads(second.stdout)["policies"] == json.loads(first.stdout)["policies"]


def test_mistakes_are_told_and_exit_with_2(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"name": "a"}\n')
    for given, said in (
        (["--trace", f"jsonl:{bad}", "--cluster", "a=1x1gpu"], "line 1: Object missing required field"),
        (["--trace", f"jsonl:{TRACE}", "--cluster", "a=1"], "expected kind=COUNTxRESOURCES"),
        (["--trace", f"jsonl:{TRACE}", "--cluster", "a=1x1gpu", "--policy", "fifoo"], "did you mean 'fifo'?"),
        (["--trace", f"jsonl:{TRACE}", "--cluster", "a=1x1gpu", "--sweep", "x"], "expected PLUGIN.ARGUMENT=VALUE"),
    ):
        result = CliRunner().invoke(main, ["simulate", *given])
        assert result.exit_code == 2, result.output
        assert said in result.stderr
