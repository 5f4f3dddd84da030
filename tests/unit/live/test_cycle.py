"""Which jobs take part in a live cycle."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, shape, with_nodes

from navarch.engine.policy import preset
from navarch.installed import installed
from navarch.live.cycle import beyond_batch, run_cycle
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import DeviceRequest, JobSpec, QueueShare, QueueSpec, Shape, TaskSpec


def backlog() -> Cluster:
    cluster = with_nodes(("a", {"cpu": 100}))
    for queue in ("q1", "q2"):
        cluster.put_queue(QueueSpec(queue, state="Open"))
        for number in range(6):
            add_job(cluster, f"{queue}-{number}", [shape(cpu=1)], queue=queue, created=10.0 - number)
    return cluster


def names(cluster: Cluster, rows: list[int]) -> list[str]:
    return sorted(cluster.jobs.keys[row] for row in rows)


@pytest.mark.parametrize("batch", [12, 100])
def test_a_short_backlog_is_taken_whole(batch: int) -> None:
    assert beyond_batch(backlog().snapshot(), batch) == []


def test_of_each_queue_the_oldest_come_first() -> None:
    cluster = backlog()
    later = names(cluster, beyond_batch(cluster.snapshot(), 4))
    assert later == ["ns/q1-0", "ns/q1-1", "ns/q2-0", "ns/q2-1"]


def test_a_gang_is_not_cut() -> None:
    cluster = backlog()
    add_job(cluster, "gang", [shape(cpu=1)] * 8, queue="q1", created=1.0)
    later = names(cluster, beyond_batch(cluster.snapshot(), 4))
    assert "ns/gang" not in later
    assert [name for name in later if "q1" in name] == [f"ns/q1-{number}" for number in range(6)]


def test_a_group_of_higher_priority_comes_first_whatever_its_pods_say() -> None:
    cluster = backlog()
    job = cluster.jobs.specs[cluster.jobs.rows.of["ns/q1-0"]]
    assert job is not None
    cluster.put_job(replace(job, priority=1000))
    later = names(cluster, beyond_batch(cluster.snapshot(), 4))
    assert later == ["ns/q1-1", "ns/q1-2", "ns/q2-0", "ns/q2-1"]


def test_where_namespaces_take_turns_the_first_of_each_come_first() -> None:
    cluster = backlog()
    add_job(cluster, "late", [shape(cpu=1)], queue="q1", created=99.0, namespace="other")
    assert "other/late" in names(cluster, beyond_batch(cluster.snapshot(), 4))
    later = names(cluster, beyond_batch(cluster.snapshot(), 4, turns=True))
    assert later == ["ns/q1-0", "ns/q1-1", "ns/q1-2", "ns/q2-0", "ns/q2-1"]


def test_batches_reach_every_job_in_successive_cycles() -> None:
    cluster, registry = backlog(), installed()
    bound: list[str] = []
    for number in range(3):
        cycle = run_cycle(cluster, preset("navarch", registry.catalogue()), registry, 100.0, number, "c", batch=2)
        assert len(cycle.record.binds) == 4
        assert cycle.more == (number < 2)
        for bind in cycle.record.binds:
            bound.append(bind.job)
            cluster.remove_task(bind.uid)
            cluster.remove_job(bind.job)
    assert len(set(bound)) == 12


def test_gpus_that_are_shared_anew_have_names_that_no_other_cycle_gives() -> None:
    """KAI's binder knows a GPU by that name alone, whichever scheduler chose it and on whichever node it is."""
    half = Shape(requests=requests_from({"cpu": "1"}), devices=DeviceRequest(fraction=500))
    free = QueueShare(-1.0, -1.0, 1.0)
    groups: list[str] = []
    for uid in ("one-7", "two-7"):
        cluster = with_nodes(("n", {"cpu": 8, "nvidia.com/gpu": 2}))
        cluster.put_queue(QueueSpec("q", state="Open", shares={"cpu": free, "memory": free, "gpu": free}))
        cluster.put_job(JobSpec("ns/j", "q", 1, "ns", "j", "j", "kai"))
        cluster.put_task(TaskSpec("p", "ns", "p", half, "ns/j"))
        (bind,) = run_cycle(cluster, preset("kai", installed().catalogue()), installed(), 0.0, 7, uid).record.binds
        groups += bind.gpu_groups
    assert groups == ["one-7-1", "two-7-1"]
