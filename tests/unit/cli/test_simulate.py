"""`navarch simulate` on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from navarch.cli.main import main
from navarch.testing.builders import node, pod

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
        *("fragmentation", "preemptions", "lostGpuSeconds", "repeatedEvictions", "evictionsInVain", "fairness"),
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


def test_policies_with_files_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    for folder, actions in (("old", "allocate"), ("new", "enqueue, allocate")):
        (tmp_path / folder).mkdir()
        policy = f"actions: {actions}\ntiers: [{{plugins: [{{name: gang}}, {{name: predicates}}]}}]\n"
        (tmp_path / folder / "queues.yaml").write_text(policy)
    files = [str(tmp_path / folder / "queues.yaml") for folder in ("old", "new")]
    asked = [word for file in (*files, "fifo", "fifo") for word in ("--policy", file)]
    names = {str(tmp_path / "old" / "queues"), str(tmp_path / "new" / "queues"), "fifo"}
    for more in ([], ["--processes", "1", "--results", str(tmp_path / "results.jsonl")]):
        result = CliRunner().invoke(main, [*GIVEN, *asked, *more, "-o", "json"])
        assert json.loads(result.stdout)["policies"].keys() == names, result.output


def test_a_report_that_cannot_be_written_is_told_before_the_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, [*GIVEN, "--policy", "fifo", "--report", str(tmp_path / "file" / "out")])
    assert result.exit_code == 2
    assert result.stdout == "" and "expected a folder that can be made" in result.stderr


def test_figures_are_shown_although_the_report_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "index.html").mkdir()
    result = CliRunner().invoke(main, [*GIVEN, "--policy", "fifo", "--report", str(tmp_path)])
    assert result.exit_code == 1
    assert "queueing, p99" in result.stdout and "not written" in result.stderr


def test_a_run_without_jobs_says_why(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [*GIVEN, "--policy", "fifo", "--from", "2030-01-01"])
    assert (result.exit_code, result.stderr) == (0, "fifo: the trace has no job to play; 60 jobs lie outside of the times asked for\n")
    (tmp_path / "empty.jsonl").write_text("")
    result = CliRunner().invoke(main, ["simulate", "--trace", f"jsonl:{tmp_path / 'empty.jsonl'}", "--cluster", "a=1x1gpu"])
    assert (result.exit_code, result.stderr) == (0, "navarch: the trace has no job to play\n")


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    result = CliRunner().invoke(main, [*GIVEN, "--from", "2026-01-03", "--to", "2026-01-02"])
    assert result.exit_code == 2
    assert "--from 2026-01-03 00:00 UTC is after --to 2026-01-02 00:00 UTC" in result.stderr


def test_arrivals_need_gpus(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["simulate", "--trace", f"jsonl:{TRACE}", "--cluster", "a=1x8cpu", "--arrivals", "1.3"])
    assert result.exit_code == 2 and "found no GPU" in result.stderr


def test_what_is_true_of_all_policies_is_said_once() -> None:
    result = CliRunner().invoke(main, [*GIVEN[:-1], "h100=1x8gpu", "--policy", "fifo", "--policy", "sjf"])
    assert "left out" in result.stderr
    assert "fifo: left out" not in result.stderr and result.stderr.count("left out") == 1


def test_pods_in_the_manifests_of_a_cluster_are_left_out_and_told(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    waits, runs = pod("waits").gpu(1), pod("runs").gpu(8).on("n1")
    cluster.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("n1").gpu(8).cpu(96).memory("1Ti"), waits, runs]})
    )
    result = CliRunner().invoke(main, [*GIVEN[:-1], str(cluster), "--policy", "fifo", "--policy", "navarch", "-o", "json"])
    assert result.exit_code == 0, result.output
    assert "warning: the cluster begins without the 2 pods in its manifests\n" in result.stderr
    assert json.loads(result.stdout)["policies"]["fifo"]["finished"] > 0
