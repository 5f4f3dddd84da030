"""Sweeps: combinations of parameters, policies with other arguments, results that are not computed twice, several processes."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Generator
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from navarch.engine.policy import PolicyError
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.simulator.simulate import PolicyRun
from navarch.simulator.sweep.executors import Failure, execute
from navarch.simulator.sweep.parameters import SweepError, combinations, with_parameters
from navarch.simulator.sweep.results import Results
from navarch.simulator.sweep.runs import RunSpec, check, run
from navarch.simulator.traces import TraceError

TRACE = Path(__file__).resolve().parents[4] / "examples" / "traces" / "two-teams.jsonl"


def spec(policy: str = "fifo", **more: Any) -> RunSpec:
    return RunSpec(f"jsonl:{TRACE}", "h100=4x8gpu", policy, **more)


def figures(done: PolicyRun | Failure) -> dict[str, Any]:
    assert isinstance(done, PolicyRun), done
    return done.measures.to_dict()


def test_arguments_of_plugins_are_set_and_checked() -> None:
    registry = installed(())
    policy = read_policy("navarch", registry)
    swept = with_parameters(policy, (("binpack.gpu", "7"), ("binpack.weight", "2")), registry)
    option = swept.plugin("binpack")
    assert option is not None
    assert option.arguments["binpack.resources.nvidia.com/gpu"] == 7
    assert option.arguments["binpack.weight"] == 2
    easy = with_parameters(read_policy("easy", registry), (("easy-backfill.reservations", "3"),), registry).plugin("easy-backfill")
    assert easy is not None and easy.arguments["reservations"] == 3
    with pytest.raises(PolicyError, match="no plugin of the policy takes an argument"):
        with_parameters(read_policy("fifo", registry), (("binpack.weight", "2"),), registry)
    with pytest.raises(PolicyError):
        with_parameters(policy, (("binpack.weight", "many"),), registry)


def test_a_sweep_without_values_is_refused() -> None:
    with pytest.raises(SweepError, match=r"expected PLUGIN\.ARGUMENT=VALUE,VALUE"):
        combinations(["binpack.weight"])


def test_results_are_kept_and_a_cut_line_is_dropped(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    results = Results(file)
    one, other = spec(seed=1), spec(seed=2)
    results.add(one, run(one))
    with file.open("a") as out:
        out.write(file.read_text()[:100])
    again = Results(file)
    assert again.has(one) and not again.has(other)
    again.add(other, run(other))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["seed"] for row in rows] == [1, 2]
    assert again.policies([one, other])["fifo"]["jobs"] == 60


@pytest.mark.parametrize("content", ["my notes", '{"name": "a", "submit": 0}\n', '{"key": "4f0c", "fig'])
def test_a_file_of_something_else_is_refused_and_stays_as_it_is(tmp_path: Path, content: str) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(content)
    with pytest.raises(SweepError, match="expected a file that --results wrote"):
        Results(file)
    assert file.read_text() == content


@pytest.mark.parametrize("name", ["results.jsonl", "results.parquet"])
def test_results_that_cannot_be_written_are_told_before_a_run(tmp_path: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow.parquet", reason="the extra navarch[parquet] is not installed")
    with pytest.raises(SweepError, match=r"results .*expected"):
        Results(tmp_path / "nowhere" / name)


def test_results_as_a_parquet_table(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra navarch[parquet] is not installed")
    file = tmp_path / "results.parquet"
    one, other = spec(seed=1), spec(seed=2)
    Results(file).add(one, run(one))
    again = Results(file)
    assert again.has(one) and not again.has(other)
    again.add(other, run(other))
    table = parquet.read_table(file)
    assert table.column("seed").to_pylist() == [1, 2] and table.column("jobs").to_pylist() == [60, 60]
    assert table.column("jct.mean").to_pylist() == [row["figures"]["jct"]["mean"] for row in again.rows.values()]
    file.write_text("something else")
    with pytest.raises(SweepError, match=r"results\.parquet"):
        Results(file)


def test_equal_runs_have_equal_keys_and_others_do_not() -> None:
    assert spec().key == spec().key
    assert len({spec().key, spec(seed=1).key, spec("sjf").key, spec(parameters=(("a", "1"),)).key}) == 4


def test_a_policy_that_was_edited_is_another_run(tmp_path: Path) -> None:
    policy = tmp_path / "mine.yaml"
    policy.write_text("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n")
    before = spec(str(policy)).key
    assert spec(str(policy)).key == before
    policy.write_text("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: binpack}]}]\n")
    assert spec(str(policy)).key != before


def test_runs_in_processes_give_what_runs_here_give() -> None:
    specs = [spec(), spec("easy")]
    here = {each.key: figures(done) for each, done in execute(specs)}
    there = {each.key: figures(done) for each, done in execute(specs, processes=2)}
    assert here == there


def test_an_interrupt_of_a_terminal_ends_no_run_by_itself_and_an_end_of_the_sweep_ends_all() -> None:
    outcomes = execute([spec(seed=seed) for seed in range(6)], processes=2)
    next(outcomes)
    for process in active_children():
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)
    assert isinstance(next(outcomes)[1], PolicyRun)
    assert isinstance(outcomes, Generator)
    outcomes.close()
    assert not active_children()


def test_mistakes_come_back_from_processes(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"name": "a"}\n')
    specs = [RunSpec(f"jsonl:{trace}", "a=1x1gpu", policy) for policy in ("fifo", "sjf")]
    with pytest.raises(TraceError) as caught:
        list(execute(specs, processes=2))
    assert caught.value.mistakes == ["line 1: Object missing required field `submit`"]


def test_a_mistake_in_the_last_policy_is_told_before_the_first_run() -> None:
    parameters = (("easy-backfill.reservations", "2"),)
    with pytest.raises(PolicyError, match="no plugin of the policy takes an argument") as caught:
        check([spec("easy", parameters=parameters), spec("fifo", parameters=parameters)])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.source, str(again)) == (caught.value.source, str(caught.value))


def test_a_run_that_fails_is_told_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(each: RunSpec) -> PolicyRun:
        if each.policy == "sjf":
            raise RuntimeError("out of order")
        return run(each)

    monkeypatch.setattr("navarch.simulator.sweep.executors.run", breaks)
    first, second = (done for _, done in execute([spec("sjf"), spec("fifo")]))
    assert isinstance(first, Failure) and first.message.startswith("RuntimeError: out of order (")
    assert figures(second)["jobs"] == 60


def test_runs_on_a_dask_cluster_give_what_runs_here_give() -> None:
    distributed = pytest.importorskip("distributed", reason="the extra navarch[dask] is not installed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        ((_, there),) = execute([spec()], f"dask://{address}")
    assert figures(there) == figures(run(spec()))


def test_a_dask_cluster_that_ends_before_its_runs_is_told() -> None:
    distributed = pytest.importorskip("distributed", reason="the extra navarch[dask] is not installed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        outcomes = execute([spec(seed=seed) for seed in range(20)], f"dask://{address}")
        assert isinstance(next(outcomes)[1], PolicyRun)
    with pytest.raises(SweepError, match=r"the Dask cluster at .* ended before its runs did"):
        list(outcomes)


def test_an_executor_that_is_none_is_named() -> None:
    with pytest.raises(SweepError, match="expected dask://HOST:PORT"):
        list(execute([spec()], "spark://there"))
