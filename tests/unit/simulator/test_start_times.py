"""Start times: which basis counts, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest

import navarch
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.job_history import JobRun
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.simulator.start_times.arrivals import PastArrivals
from navarch.simulator.start_times.estimate import Basis, quantiles, start_times
from navarch.simulator.start_times.run_times import Draw, RunTimes, Survival
from navarch.testing.builders import node, pod, pod_group

NOW = 100_000.0
GPUS: tuple[Any, ...] = ((1, (("nvidia.com/gpu", 4000),), ()),)


def at(seconds: float) -> str:
    return str(np.datetime64(int(seconds), "s")) + "Z"


def objects(expected: str = "", *, deadline: int | None = None, owner: str = "", waiter: str = "") -> list[Any]:
    """One node, full with a job that started 1000 s ago, and a job that waits for it."""
    group = pod_group("runs").created(at(NOW - 1000)).phase("Running")
    running = pod("runs-0").gpu(4).in_group("runs").on("n1").phase("Running")
    running.child("status")["startTime"] = at(NOW - 1000)
    waiting = pod_group("waits").created(at(NOW - 10))
    if expected:
        group.annotate("navarch.io/expected-duration", expected)
    if waiter:
        waiting.annotate("navarch.io/expected-duration", waiter)
    if deadline is not None:
        running.child("spec")["activeDeadlineSeconds"] = deadline
    if owner:
        running.owned_by("Job", owner, "u1")
    return [node("n1").gpu(4), group, running, waiting, pod("waits-0").gpu(4).in_group("waits")]


def past(lengths: list[float], *, queue: str = "default", began: float = 0.0) -> list[JobRun]:
    return [
        JobRun(f"past-{number}", began + number, "default", queue, pods=GPUS, started=began + number, finished=began + number + length)
        for number, length in enumerate(lengths)
    ]


def explained(given: list[Any], **options: Any) -> dict[str, Any]:
    return navarch.explain(given, "waits", policy="fifo", now=NOW, seconds=600, **options).to_dict()


def test_without_any_basis_there_is_no_time_and_a_word_why() -> None:
    found = explained(objects())
    assert found["eta"] is None
    assert found["etaReason"] == "no job has a walltime, an expected duration or a history"


def test_a_walltime_says_when() -> None:
    given = objects(deadline=1600)
    eta = explained(given)["eta"]
    assert eta == {**dict.fromkeys(("p05", "p50", "p90", "p95"), at(NOW + 600)), "basis": eta["basis"]}
    assert eta["basis"] == "100 runs; of 1 running jobs 1 by walltime; no job comes after now"


def test_the_deadline_of_a_job_counts_from_its_start() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default", "uid": "u1"},
        "spec": {"activeDeadlineSeconds": 3000, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
        "status": {"startTime": at(NOW - 1500), "active": 1},
    }
    assert explained([*objects(owner="train"), job])["eta"]["p95"] == at(NOW + 1500)


def test_an_expected_duration_counts_until_it_is_outlived() -> None:
    assert explained(objects("30m"))["eta"]["p05"] == at(NOW + 800)
    outlived = explained(objects("10m"))["eta"]
    assert at(NOW) < outlived["p05"] < outlived["p50"] < outlived["p95"]
    assert "1 by expected duration" in outlived["basis"]


def test_history_is_conditioned_on_what_the_job_has_run_already() -> None:
    eta = explained(objects(), history=past([100.0] * 20 + [1500.0] * 20))["eta"]
    assert (eta["p05"], eta["p95"]) == (at(NOW + 500), at(NOW + 500))
    assert "1 by history; 40 finished jobs known" in eta["basis"]


def test_a_walltime_bounds_what_history_says() -> None:
    given = objects(deadline=1600)
    eta = explained(given, history=past([100.0] * 10 + [2000.0] * 10))["eta"]
    assert (eta["p05"], eta["p95"]) == (at(NOW + 600), at(NOW + 600))


def test_the_same_seed_gives_the_same_times() -> None:
    history = past([float(length) for length in range(1100, 5000, 40)])
    one, two, other = (explained(objects(), history=history, seed=seed)["eta"] for seed in (1, 1, 2))
    assert one == two != other


def test_running_and_impossible_jobs_have_no_start_time() -> None:
    assert navarch.explain(objects(), "runs", now=NOW).eta_reason == "it runs"
    big = [*objects(), pod_group("big", 9), *(pod(f"big-{number}").gpu(4).in_group("big") for number in range(9))]
    assert navarch.explain(big, "big", now=NOW, seconds=600).eta_reason == "it does not start on the empty cluster"


def test_runs_that_go_on_count_as_longer_than_they_have_lasted() -> None:
    """Ten of twenty ended after 10 s, the others run for 100 s: half of all last longer than 10 s."""
    assert Survival([10.0] * 10, [100.0] * 10).beyond.tolist() == [0.5]
    known = RunTimes(
        [*past([10.0] * 10), *(JobRun(f"r{i}", 0.0, "default", "default", pods=GPUS, started=0.0) for i in range(10))], 100.0
    )
    assert known.known(("queue", "default")).survival.beyond.tolist() == [0.5]


def test_survival_is_drawn_like_the_runs_it_knows() -> None:
    random = np.random.default_rng(7)
    lengths = random.lognormal(8, 1, 400)
    curve = Survival(lengths)
    drawn = [curve.remaining(2000.0, 1.0 - float(random.random())) + 2000.0 for _ in range(4000)]
    expected = lengths[lengths > 2000.0]
    for level in (0.1, 0.5, 0.9):
        assert np.quantile(drawn, level) == pytest.approx(np.quantile(expected, level), rel=0.1)


def test_jobs_come_as_they_came_in_the_past() -> None:
    day = 86400.0
    history = [
        JobRun(f"past-{number}", number * 600.0, "default", "default", pods=GPUS, started=number * 600.0, finished=number * 600.0 + 60)
        for number in range(10 * 144)
    ]
    past_arrivals = PastArrivals(history, 10 * day)
    assert past_arrivals.known and not PastArrivals(history[:100], day / 2).known
    drawn = past_arrivals.draw(np.random.default_rng(0), lambda run: None)
    jobs = [next(drawn) for _ in range(3 * 1440)]
    gaps = {round(after.submit - before.submit) for before, after in pairwise(jobs)}
    assert 10 * day <= jobs[0].submit <= 10 * day + 600 and gaps == {600} and jobs[0].duration == 60


def test_arrivals_that_are_served_first_delay_a_start() -> None:
    """Under shortest-first, short jobs that come every minute of every other hour pass a job that is expected to run long."""
    registry = installed(())
    policy = read_policy("sjf", registry)
    given = objects(deadline=1600, waiter="1h")
    cluster = Inventory([Document(each) for each in given], settings_for(policy)).cluster
    minutes = [minute for minute in range(1560) if minute // 60 % 2]
    history = [
        JobRun(f"past-{minute}", minute * 60.0, "other", "default", pods=GPUS, started=minute * 60.0, finished=minute * 60.0 + 59)
        for minute in minutes
    ]
    alone = start_times(cluster, policy, registry, NOW, ["default/waits"], Basis(cluster, NOW), runs=20)
    beside = start_times(cluster, policy, registry, NOW, ["default/waits"], Basis(cluster, NOW, history), runs=20)
    assert alone.known["default/waits"].p95 == NOW + 600
    assert beside.known["default/waits"].p90 > NOW + 660
    assert "jobs come as in the last 1.12 days" in beside.known["default/waits"].basis


def test_jobs_that_came_together_run_alike() -> None:
    """A hundred short jobs came before; of a sweep of six, two ran for a day and four wait."""
    day = 86400.0
    batches = [
        JobRun(
            f"pair-{number}-{each}",
            number * 1000.0 + each,
            "default",
            "q",
            pods=GPUS,
            started=number * 1000.0,
            finished=number * 1000.0 + length,
        )
        for number, length in enumerate([60.0, 70.0, 80.0, 90.0] * 12)
        for each in (0, 1)
    ]
    sweep = [
        JobRun(f"sweep-{each}", 50_000.0 + each, "default", "q", pods=GPUS, started=50_000.0 if each < 2 else None)
        for each in range(6)
    ]
    times = RunTimes(
        [*batches, *(run if run.started is None else msgspec.structs.replace(run, finished=50_000.0 + day) for run in sweep)], 2 * day
    )
    kind = ("size", "q", 4000)
    batch = times.batch_of(kind, sweep[4])
    assert batch is not None and batch.size == 6 and batch.finished == [day, day]
    assert times.batches(kind).alike > 0.9
    drawn = []
    for number in range(40):
        draw = Draw(times, np.random.default_rng(number))
        drawn.append([draw.remaining(kind, 0.0, batch) for _ in range(4)])
    assert sum(lengths == [day] * 4 for lengths in drawn) > 30, "in most draws all of them run for a day"
    assert times.batch_of(kind, msgspec.structs.replace(sweep[0], submitted=60_000.0)) is None


def test_a_batch_that_has_not_finished_runs_as_long_as_some_batch_before_it() -> None:
    """One batch of a thousand short jobs counts as much as one batch of two long ones."""
    short = [JobRun(f"a{n}", n * 0.01, "default", "q", pods=GPUS, started=10.0, finished=20.0) for n in range(1000)]
    long = [JobRun(f"b{n}", 5000.0 + n, "default", "q", pods=GPUS, started=6000.0, finished=16_000.0) for n in range(2)]
    fresh = [JobRun(f"c{n}", 20_000.0 + n, "default", "q", pods=GPUS, started=None) for n in range(3)]
    times = RunTimes([*short, *long, *fresh], 30_000.0)
    kind = ("size", "q", 4000)
    batch = times.batch_of(kind, fresh[0])
    drawn = [Draw(times, np.random.default_rng(number)).remaining(kind, 0.0, batch) for number in range(200)]
    assert 60 < sum(length == 10_000.0 for length in drawn) < 140


@pytest.mark.parametrize("shape", ["log-normal", "normal", "exponential", "uniform"])
@pytest.mark.parametrize("runs", [8, 12, 19, 20, 100])
def test_the_next_start_falls_into_the_interval_of_few_runs_as_of_many(shape: str, runs: int) -> None:
    random = np.random.default_rng([runs, len(shape)])
    draws: dict[str, Callable[[int], Any]] = {
        "log-normal": lambda count: random.lognormal(8.0, 1.0, count),
        "normal": lambda count: random.normal(5000.0, 600.0, count),
        "exponential": lambda count: random.exponential(4000.0, count),
        "uniform": lambda count: random.uniform(1000.0, 5000.0, count),
    }
    held = 0
    for _ in range(600):
        *waits, comes = draws[shape](runs + 1).tolist()
        found = quantiles(waits)
        assert found is not None and found[0] <= found[1] <= found[2] <= found[3]
        held += found[0] <= comes <= found[3]
    assert 0.86 <= held / 600 <= 0.95


def test_few_runs_are_told_and_too_few_say_how_much_time_would_do() -> None:
    registry = installed(())
    policy = read_policy("fifo", registry)
    cluster = Inventory([Document(each) for each in objects("1h")], settings_for(policy)).cluster
    basis, moments = Basis(cluster, NOW), iter(range(10**6))

    def answer(seconds: float) -> Any:
        return start_times(
            cluster, policy, registry, NOW, ["default/waits"], basis, seconds=seconds, clock=lambda: float(next(moments))
        )

    few = answer(60.0)
    assert 8 <= few.runs < 20 and f"{few.runs} runs, few, so the interval is wider; of 1 running" in few.known["default/waits"].basis
    none = answer(20.0)
    assert 0 < none.runs < 8 and f"{none.runs} runs of the scheduler fitted" in none.unknown["default/waits"]
    assert "at least 8 are needed: give it about " in none.unknown["default/waits"]
    assert "no run of the scheduler fitted" in answer(0.5).unknown["default/waits"]
