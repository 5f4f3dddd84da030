"""What happens in between: evictions with checkpoints, walltimes, elastic jobs, nodes that fail, policies that start nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.simulator.clusters import read_cluster
from navarch.simulator.failures import NodeFailures
from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.measures import Measures
from navarch.simulator.simulate import simulate
from navarch.simulator.simulation import Simulation


def job(name: str, submit: float, duration: float, gpus: int = 4, **more: Any) -> TraceJob:
    return TraceJob(name=name, submit=submit, duration=duration, pods=(PodSet(gpus=gpus),), **more)


def played(jobs: list[TraceJob], policy: str | dict[str, Any] = "fifo", cluster: str = "a=2x4gpu", **options: Any) -> Measures:
    registry = installed(())
    chosen = read_policy(policy, registry)
    built, _ = read_cluster(cluster).build(settings_for(chosen))
    measures = Measures(8)
    Simulation(built, chosen, registry, measures, **options).run(jobs)
    return measures


PREEMPTS = {
    "actions": "allocate, gangpreempt",
    "tiers": [{"plugins": [{"name": name} for name in ("priority", "gang", "conformance", "predicates")]}],
}


@pytest.mark.parametrize(("checkpoint", "lost"), [(None, 60 * 4), (25.0, 10 * 4)])
def test_an_evicted_job_starts_again_from_its_last_checkpoint(checkpoint: float | None, lost: float) -> None:
    jobs = [job("low", 0, 100), job("high", 60, 10, priority=10)]
    measures = played(jobs, PREEMPTS, "a=1x4gpu", checkpoint=checkpoint)
    assert measures.preemptions == 1
    assert measures.lost_gpu_seconds == lost
    done = dict(zip(measures.names, measures.completion))
    assert done["high"] == 10
    # low is made again 30 s after its eviction, when high is done, and has to do again what was lost
    assert done["low"] == 90 + (100 - 60 + lost / 4)


def test_a_walltime_ends_a_job() -> None:
    measures = played([job("slow", 0, 100, walltime=40), job("next", 1, 5, 4)], cluster="a=1x4gpu")
    assert (measures.jobs, measures.ended, measures.finished) == (2, 2, 1)
    assert list(measures.completion) == [44]


def test_an_elastic_job_starts_small_and_grows() -> None:
    wide = TraceJob(name="wide", submit=0, duration=60, pods=(PodSet(2, gpus=4),), min_pods=1)
    measures = played([job("first", 0, 30), wide], "fifo-skip")
    done = dict(zip(measures.names, measures.completion))
    assert done["wide"] == 30 + (60 - 15)  # half as fast for 30 seconds, then with both pods


def test_failing_nodes_restart_jobs_and_every_job_still_ends() -> None:
    jobs = [job(f"j{i:02d}", 50 * i, 400) for i in range(20)]
    failures = NodeFailures(between=1500, repair=200, seed=3)
    first = played(jobs, "fifo", failures=failures, checkpoint=100.0)
    again = played(jobs, "fifo", failures=failures, checkpoint=100.0)
    assert first.finished == 20
    assert first.preemptions > 0
    assert list(first.completion) == list(again.completion)


def test_a_policy_that_starts_nothing_ends_and_says_so() -> None:
    never = {"actions": "backfill", "tiers": [{"plugins": [{"name": "gang"}]}]}
    (run,) = simulate([job("a", 3, 10), job("b", 5, 10)], "a=1x4gpu", never).runs
    assert run.waiting == ["a", "b"]
    assert (run.measures.finished, run.measures.to_dict()["makespan"]) == (0, 0.0)
    assert run.remarks() == ["2 jobs never started: a, b; a: no action of the policy tries to place it; its actions are backfill"]


def test_a_remark_says_that_times_of_different_jobs_are_no_comparison() -> None:
    never = {"actions": "backfill", "tiers": [{"plugins": [{"name": "gang"}]}]}
    result = simulate([job("a", 0, 10)], "a=1x4gpu", [never, "fifo"])
    assert result.remarks()[-1] == (
        "times are those of jobs that are done, and policies finish different jobs (policy 0, fifo 1): compare with care"
    )
    assert simulate([job("a", 0, 10)], "a=1x4gpu", ["sjf", "fifo"]).remarks() == []


def test_jobs_that_are_too_large_are_left_out_and_counted() -> None:
    (run,) = simulate([job("a", 0, 10, gpus=8), job("b", 0, 10)], "a=1x4gpu", ["fifo"]).runs
    assert run.left_out == {"larger than the cluster": 1}
    assert run.measures.finished == 1


@pytest.mark.parametrize(
    ("pods", "least"),
    [
        ((PodSet(2, cpu=8000), PodSet(cpu=4000)), None),  # each kind of pod fits alone
        ((PodSet(2, cpu=8000), PodSet(cpu=4000)), 3),
        ((PodSet(2, cpu=8000), PodSet(2, cpu=5000)), 3),  # elastic: the three smallest need more than there is
    ],
)
def test_a_job_whose_pods_do_not_fit_together_is_left_out(pods: tuple[PodSet, ...], least: int | None) -> None:
    wide = TraceJob(name="wide", submit=0, duration=10, pods=pods, min_pods=least)
    behind = TraceJob(name="behind", submit=1, duration=10, pods=(PodSet(cpu=1000),))
    (run,) = simulate([wide, behind], "c=2x8cpu", ["fifo"]).runs
    assert (run.left_out, run.measures.finished) == ({"larger than the cluster": 1}, 1)


def test_jobs_are_left_out_for_the_reason_that_is_true_of_them() -> None:
    jobs = [
        job("large", 0, 10, gpus=8),
        replace(job("typed", 0, 10), pods=(PodSet(gpus=1, gpu_types=("b",)),)),
        replace(job("endless", 0, 10), duration=math.inf),
    ]
    result = simulate(jobs, "a=1x4gpu", ["fifo"])
    assert result.remarks() == [
        "fifo: left out 1 job: larger than the cluster (large)",
        "fifo: left out 1 job: no node has the labels or the GPU type that they ask for (typed)",
        "fifo: left out 1 job: the trace does not say when they end (endless)",
    ]
    assert result.runs[0].measures.jobs == 0


def test_an_elastic_job_runs_slowly_on_a_cluster_that_never_holds_all_of_it() -> None:
    wide = TraceJob(name="wide", submit=0, duration=60, pods=(PodSet(8, gpus=1),), min_pods=2)
    (run,) = simulate([wide], "a=1x4gpu", ["fifo"]).runs
    assert list(run.measures.completion) == [120.0]


def test_a_run_ends_where_nodes_never_last_as_long_as_a_job() -> None:
    failures = NodeFailures(between=10.0, repair=10.0)
    (run,) = simulate([job("long", 0, 10_000)], "a=2x4gpu", ["fifo"], failures=failures).runs
    assert run.measures.finished == 0
    expected = "given up with 1 job not done, and without those that had not come yet"
    assert [remark.partition("times: ")[2] for remark in run.remarks()] == [expected]


def test_failures_while_no_job_is_there_or_while_work_is_saved_end_no_run() -> None:
    failures = NodeFailures(between=100.0, repair=10.0)
    apart = [job("early", 0, 10), job("late", 30_000, 10)]
    assert simulate(apart, "a=2x4gpu", ["fifo"], failures=failures).runs[0].measures.finished == 2
    (run,) = simulate([job("long", 0, 30_000)], "a=2x4gpu", ["fifo"], failures=failures, checkpoint=5.0).runs
    assert run.measures.finished == 1 and run.measures.failures > 200


def test_jobs_that_a_walltime_ends_are_told() -> None:
    result = simulate([replace(job("late", 0, 100), walltime=30.0), job("b", 0, 10)], "a=1x4gpu", ["fifo", "sjf"])
    assert result.runs[0].remarks() == ["walltimes ended 1 job before the work was done"]
    assert result.remarks() == ["jobs that walltimes ended before the work was done: fifo 1, sjf 1"]


def test_estimates_from_history_order_jobs_that_say_nothing() -> None:
    long_before = [job(f"l{i}", i, 100, gpus=2, user="ann") for i in range(2)]
    short_before = [job(f"s{i}", i, 5, gpus=1, user="bo") for i in range(2)]
    full = [job("full", 300, 50, gpus=4)]
    later = [job("long", 301, 100, gpus=2, user="ann"), job("short", 302, 5, gpus=1, user="bo")]
    jobs = sorted([*long_before, *short_before], key=lambda each: each.submit) + full + later
    measures = played(jobs, "sjf", "a=1x4gpu", estimates="history")
    waited = dict(zip(measures.names, measures.queueing))
    assert waited["short"] == 48
    assert measures.finished == len(jobs)
