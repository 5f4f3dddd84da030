"""gangpreempt and gangreclaim: gangs on both sides are seen as gangs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests.worlds.owing import Owing
from tests.worlds.small_cluster import add_job, apply, binds, decided, evicted, promises, shape, task, waits, with_nodes

from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.engine.record import CycleRecord
from navarch.model.cluster import Cluster
from navarch.model.spec import QueueSpec
from navarch.plugins.gang import Gang
from navarch.plugins.priority import Priority


def preempted(cluster: Cluster, *more: type[Plugin], **options: Any) -> CycleRecord:
    return decided(cluster, Priority, Gang, *more, actions=("allocate", "gangpreempt"), **options)


def reclaimed(cluster: Cluster, *more: type[Plugin], **options: Any) -> CycleRecord:
    return decided(cluster, Priority, Gang, *more, actions=("allocate", "gangreclaim"), **options)


def two_gangs(*, minimum: int = 2, queue: str = "default") -> Cluster:
    cluster = with_nodes(("a", {"cpu": 4}), ("b", {"cpu": 4}))
    for name in ("mine", "theirs"):
        cluster.put_queue(QueueSpec(name))
    for number, node in enumerate(("a", "b")):
        add_job(cluster, f"low-{node}", [shape(cpu=2)] * 2, node=node, minimum=minimum, created=float(number), queue=queue)
    return cluster


def test_a_gang_that_needs_all_its_pods_goes_whole_and_the_other_stays() -> None:
    cluster = two_gangs()
    add_job(cluster, "high", [shape(cpu=2)] * 2, priority=9)
    record = preempted(cluster)
    assert evicted(record) == ["low-b-0", "low-b-1"], "the job that would be served last"
    assert promises(record) == {"high-0": "b", "high-1": "b"}
    apply(cluster, record)
    assert sorted(binds(preempted(cluster))) == ["high-0", "high-1"]


def test_pods_above_the_minimum_are_evicted_before_whole_gangs() -> None:
    cluster = two_gangs(minimum=1)
    add_job(cluster, "high", [shape(cpu=2)] * 2, priority=9)
    assert evicted(preempted(cluster)) == ["low-a-1", "low-b-1"]


def test_nothing_goes_for_a_gang_that_could_not_start() -> None:
    cluster = two_gangs()
    add_job(cluster, "high", [shape(cpu=2)] * 5, priority=9)
    assert evicted(preempted(cluster)) == []


def test_whole_gangs_stay_where_the_policy_says_so() -> None:
    cluster = two_gangs()
    add_job(cluster, "high", [shape(cpu=2)], priority=9)
    keep = {"gangpreempt": {"allowWholeBundle": False}}
    assert evicted(preempted(cluster, configurations=keep)) == []
    assert evicted(preempted(cluster)) != []


@pytest.mark.parametrize("priority", [0, -3])
def test_equal_and_higher_jobs_stay(priority: int) -> None:
    cluster = two_gangs()
    add_job(cluster, "wait", [shape(cpu=2)], priority=priority)
    assert evicted(preempted(cluster)) == []


def test_a_group_that_says_it_may_not_be_preempted_is_not() -> None:
    cluster = two_gangs()
    add_job(cluster, "high", [shape(cpu=2)] * 2, priority=9)
    for row, spec in enumerate(list(cluster.jobs.specs)):
        if spec is not None and spec.name == "low-b":
            cluster.put_job(replace(spec, never_preempted=True))
            assert cluster.jobs.keys[row] == "ns/low-b"
    assert evicted(preempted(cluster)) == ["low-a-0", "low-a-1"]


def test_a_starving_job_grows_by_one_once_it_has_its_minimum() -> None:
    cluster = with_nodes(("a", {"cpu": 4}))
    add_job(cluster, "low", [shape(cpu=1)] * 4, node="a", minimum=0)
    add_job(cluster, "high", [shape(cpu=1)] * 3, priority=9, minimum=2)

    class Hungry(Plugin):
        name = "hungry"

        def job_starving(self, job: Job) -> bool:
            return job.counts[0] > 0

    only_hungry = decided(cluster, Gang0, Priority0, Hungry, actions=("allocate", "gangpreempt"))
    assert len(evicted(only_hungry)) == 3
    assert len(promises(only_hungry)) == 3
    assert len(evicted(preempted(cluster))) == 2, "gang says that it does not starve with its minimum"


Gang0: type[Plugin] = type("Gang0", (Gang,), {"name": "gang0", "job_starving": None})
"""Gang without a word on starving."""
Priority0: type[Plugin] = type("Priority0", (Priority,), {"name": "priority0", "job_starving": None})


class Broker(Owing):
    """Queue `theirs` is owed nothing and may lose all but pods named "firm"; `rich` has its due, `humble` may not grow."""

    name = "broker"
    owed = ("mine", "rich", "humble")

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None:
        return [t for t in candidates if "firm" not in self.session.task(t).uid]

    def overused(self, queue: Queue) -> Reason | None:
        return Reason("Overused", "has its due") if queue.name == "rich" else None

    def preemptive(self, queue: Queue, task: TaskClass) -> Reason | None:
        return Reason("NotPreemptive", "may not grow") if queue.name == "humble" else None


def test_reclaiming_takes_whole_gangs_of_other_queues_whatever_their_priority() -> None:
    cluster = two_gangs(queue="theirs")
    add_job(cluster, "want", [shape(cpu=2)] * 2, queue="mine")
    record = reclaimed(cluster, Broker)
    assert evicted(record) == ["low-b-0", "low-b-1"]
    assert {e.reason for e in record.evictions} == {"gangreclaim"}


@pytest.mark.parametrize(("queue", "why"), [("rich", "has its due"), ("humble", "may not grow")])
def test_queues_that_may_not_reclaim_do_not(queue: str, why: str) -> None:
    cluster = two_gangs(queue="theirs")
    cluster.put_queue(QueueSpec(queue))
    add_job(cluster, "want", [shape(cpu=2)], queue=queue)
    record = reclaimed(cluster, Broker)
    assert evicted(record) == []
    assert why in waits(record, "want")


def test_a_gang_with_one_pod_that_may_not_go_is_not_broken() -> None:
    cluster = with_nodes(("a", {"cpu": 4}), ("b", {"cpu": 4}))
    for name in ("mine", "theirs"):
        cluster.put_queue(QueueSpec(name))
    add_job(cluster, "held", [shape(cpu=2)], node="a", queue="theirs", minimum=2, created=9.0)
    cluster.put_task(task("firm", shape(cpu=2), "ns/held", "a"))
    add_job(cluster, "free", [shape(cpu=2)] * 2, node="b", queue="theirs")
    add_job(cluster, "want", [shape(cpu=2)], queue="mine")
    assert evicted(reclaimed(cluster, Broker)) == ["free-0", "free-1"]


def test_pods_of_a_vanished_node_free_nothing() -> None:
    cluster = with_nodes(("a", {"cpu": 2}), ("gone", {"cpu": 8}))
    add_job(cluster, "lost", [shape(cpu=2)] * 2, node="gone", minimum=0)
    add_job(cluster, "low", [shape(cpu=2)], node="a", minimum=0)
    add_job(cluster, "high", [shape(cpu=2)] * 2, priority=9)
    cluster.remove_node("gone")
    assert evicted(preempted(cluster)) == []


def test_five_further_cycles_change_nothing() -> None:
    cluster = two_gangs()
    add_job(cluster, "high", [shape(cpu=2)] * 3, priority=9)
    for _ in range(3):
        apply(cluster, preempted(cluster))
    for _ in range(5):
        record = preempted(cluster)
        assert (binds(record), evicted(record)) == ({}, [])
        apply(cluster, record)
