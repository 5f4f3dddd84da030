"""Forecasts in steps say what exact ones say where a step has one end, and leave the model as it was."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.simulator.forecast import forecast
from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.start_times.estimate import Basis, start_times
from navarch.simulator.start_times.step_forecast import StepForecast
from navarch.testing.builders import node, pod, pod_group, queue

NOW = 1000.0


def busy(policy_name: str, seed: int, *, jobs: int = 6) -> tuple[Cluster, Policy, Registry, dict[str, float], list[str]]:
    """Nodes that are full, jobs that wait, and how long each job still runs."""
    random = Random(seed)
    registry = installed(())
    policy = read_policy(policy_name, registry)
    objects: list[Any] = [queue("q", 1), *(node(f"n{number}").gpu(4).cpu(64) for number in range(jobs))]
    remaining = {}
    for number in range(jobs):
        group = pod_group(f"r{number}").queue("q").phase("Running").annotate("navarch.io/expected-duration", "2h")
        objects += [group, pod(f"r{number}-0").gpu(4).in_group(f"r{number}").on(f"n{number}").phase("Running")]
        remaining[f"default/r{number}"] = float(random.randrange(10, 5000, 7))
    waiting = []
    for number in range(5):
        size = random.choice((1, 1, 2, 3))
        objects.append(pod_group(f"w{number}", size).queue("q").created(f"1970-01-01T00:00:0{number}Z"))
        objects += [pod(f"w{number}-{each}").gpu(random.choice((2, 4))).in_group(f"w{number}") for each in range(size)]
        remaining[f"default/w{number}"] = float(random.randrange(10, 5000, 7))
        waiting.append(f"default/w{number}")
    return Inventory([Document(each) for each in objects], settings_for(policy)).cluster, policy, registry, remaining, waiting


def standing(cluster: Cluster) -> list[Any]:
    tasks = {task.uid: task for task in cluster.tasks.specs if task is not None}
    jobs = {job.key: job for job in cluster.jobs.specs if job is not None}
    return [tasks, jobs, cluster.nodes.used.tolist(), bool(cluster.jobs.held.any())]


@pytest.mark.parametrize("policy_name", ["fifo", "fifo-skip", "volcano", "navarch"])
@pytest.mark.parametrize("seed", range(2))
def test_steps_of_one_end_are_exact_under_policies_that_do_not_evict(policy_name: str, seed: int) -> None:
    cluster, policy, registry, remaining, waiting = busy(policy_name, seed)
    before = standing(cluster)
    until = NOW + 100_000.0
    exact = forecast(cluster, policy, registry, NOW, lambda job, _: remaining[job.key], until=until, wanted=waiting)
    steps = StepForecast(cluster, policy, registry, NOW, waiting)
    found = steps.run(remaining, np.random.default_rng(0), until=until)
    again = steps.run(remaining, np.random.default_rng(0), until=until)
    steps.close()
    assert found is not None and again == found
    assert found.keys() == (exact or {}).keys() and len(found) == len(waiting)
    first = min((exact or {}).values())
    assert min(found.values()) == first, "the first start follows a single end"
    assert standing(cluster) == before


def test_jobs_that_come_take_room() -> None:
    cluster, policy, registry, remaining, waiting = busy("fifo", 1)
    before = standing(cluster)
    arrivals = [
        TraceJob(
            name=f"new-{number}",
            submit=NOW + 1 + number,
            duration=50_000.0,
            pods=(PodSet(4, gpus=4),),
            queue="q",
            min_pods=4,
            priority=9,
        )
        for number in range(3)
    ]
    steps = StepForecast(cluster, policy, registry, NOW, waiting)
    alone = steps.run(remaining, np.random.default_rng(0), until=NOW + 10_000.0)
    beside = steps.run(remaining, np.random.default_rng(0), until=NOW + 10_000.0, arrivals=arrivals)
    stopped = steps.run(remaining, np.random.default_rng(0), until=NOW + 10_000.0, proceed=lambda: False)
    steps.close()
    assert alone is not None and beside is not None and stopped is None
    assert standing(cluster) == before
    assert beside.keys() <= alone.keys()


def test_a_large_cluster_is_forecast_in_steps_and_says_so() -> None:
    cluster, policy, registry, _, waiting = busy("fifo", 2)
    basis = Basis(cluster, NOW)
    found = start_times(cluster, policy, registry, NOW, waiting[:1], basis, runs=20, steps_from=0)
    assert found.known[waiting[0]].basis.startswith("20 runs in steps; of 6 running jobs 6 by expected duration")


def test_jobs_ahead_start_first_however_many_ends_a_step_has() -> None:
    registry = installed(())
    policy = read_policy("fifo-skip", registry)
    objects: list[Any] = [queue("q", 1), *(node(f"n{number}").gpu(4).cpu(64) for number in range(100))]
    remaining = {f"default/r{number}": 10.0 + number for number in range(100)} | {
        f"default/w{number}": 9000.0 for number in range(101)
    }
    for number in range(100):
        objects.append(pod_group(f"r{number}").queue("q").phase("Running"))
        objects.append(pod(f"r{number}-0").gpu(4).in_group(f"r{number}").on(f"n{number}").phase("Running"))
    for number in range(101):
        objects.append(pod_group(f"w{number}").queue("q").created(f"1970-01-01T00:{number // 60:02d}:{number % 60:02d}Z"))
        objects.append(pod(f"w{number}-0").gpu(4).in_group(f"w{number}"))
    cluster = Inventory([Document(each) for each in objects], settings_for(policy)).cluster
    steps = StepForecast(cluster, policy, registry, NOW, ["default/w100"])
    found = steps.run(remaining, np.random.default_rng(0), until=NOW + 100_000.0)
    steps.close()
    assert found is not None and found["default/w100"] >= NOW + 9000.0, "a hundred nodes become free, for the hundred jobs ahead"
