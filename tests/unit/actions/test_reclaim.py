"""reclaim: what other queues borrowed comes back, and only that."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.worlds.owing import Owing
from tests.worlds.small_cluster import add_job, apply, binds, decided, evicted, promises, shape, waits, with_nodes

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.engine.record import CycleRecord
from navarch.model.cluster import Cluster
from navarch.model.resources import PODS, BoolArray
from navarch.model.spec import QueueSpec
from navarch.model.status import TaskStatus
from navarch.plugins.gang import Gang
from navarch.plugins.predicates.plugin import Predicates
from navarch.plugins.priority import Priority


class Lender(Owing):
    """Queue `b` is owed nothing: its tasks may be reclaimed down to two. `rich` is overused, `humble` may not reclaim."""

    name = "lender"
    owed = ("a", "rich", "humble")

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None:
        session = self.session
        running = [t for j in session.all_jobs() if j.queue.name == "b" for t in j.tasks_in(TaskStatus.RUNNING)]
        spare = len(running) - 2
        return [t for t in candidates if (job := session.job_of(t)) and job.queue.name == "b"][: max(spare, 0)]

    def overused(self, queue: Queue) -> Reason | None:
        return Reason("Overused", "has its due") if queue.name == "rich" else None

    def preemptive(self, queue: Queue, task: TaskClass) -> Reason | None:
        return Reason("NotPreemptive", "may not grow") if queue.name == "humble" else None


def world(*, reclaimable: bool = True, pods: int = 110) -> Cluster:
    cluster = with_nodes(("n", {"cpu": 4, "pods": pods}), ("m", {"cpu": 4, "pods": pods}))
    for name in ("a", "rich", "humble"):
        cluster.put_queue(QueueSpec(name))
    cluster.put_queue(QueueSpec("b", reclaimable=reclaimable))
    add_job(cluster, "on-n", [shape(cpu=1)] * 4, node="n", queue="b", minimum=0)
    add_job(cluster, "on-m", [shape(cpu=1)] * 4, node="m", queue="b", minimum=0)
    return cluster


def reclaimed(cluster: Cluster, *more: type[Plugin]) -> CycleRecord:
    return decided(cluster, Priority, Gang, Lender, *more, actions=("allocate", "reclaim"))


def test_a_gang_gets_what_it_needs_from_the_first_nodes_that_give_it() -> None:
    cluster = world()
    add_job(cluster, "want", [shape(cpu=2)] * 2, queue="a")
    record = reclaimed(cluster)
    assert evicted(record) == ["on-m-0", "on-m-1", "on-m-2", "on-m-3"]
    assert promises(record) == {"want-0": "m", "want-1": "m"}
    assert {e.reason for e in record.evictions} == {"reclaim"}
    apply(cluster, record)
    assert sorted(binds(reclaimed(cluster))) == ["want-0", "want-1"]


def test_nothing_is_taken_for_a_gang_that_could_not_start() -> None:
    cluster = world()
    add_job(cluster, "want", [shape(cpu=2)] * 4, queue="a")
    assert evicted(reclaimed(cluster)) == []


@pytest.mark.parametrize(("queue", "why"), [("rich", "has its due"), ("humble", "may not grow")])
def test_queues_that_have_their_due_or_may_not_grow_do_not_reclaim(queue: str, why: str) -> None:
    cluster = world()
    add_job(cluster, "want", [shape(cpu=1)], queue=queue)
    record = reclaimed(cluster)
    assert evicted(record) == []
    assert why in waits(record, "want")


def test_a_queue_that_keeps_what_it_borrowed_and_the_own_queue_are_not_asked() -> None:
    cluster = world(reclaimable=False)
    add_job(cluster, "want", [shape(cpu=1)], queue="a")
    assert evicted(reclaimed(cluster)) == []
    cluster = world()
    add_job(cluster, "want", [shape(cpu=1)], queue="b", priority=9)
    assert evicted(reclaimed(cluster)) == []


def test_a_pod_that_never_preempts_does_not_reclaim_either() -> None:
    cluster = world()
    add_job(cluster, "want", [shape(cpu=1)], queue="a")
    spec = cluster.task("want-0")
    assert spec is not None
    cluster.put_task(replace(spec, preemption_policy="Never"))
    assert evicted(reclaimed(cluster)) == []


def test_bound_pods_that_have_not_started_are_left_to_start() -> None:
    cluster = world()
    for name in ("on-n", "on-m"):
        for number in range(4):
            spec = cluster.task(f"{name}-{number}")
            assert spec is not None
            cluster.put_task(replace(spec, status=TaskStatus.BOUND))
    add_job(cluster, "want", [shape(cpu=1)], queue="a")
    assert evicted(reclaimed(cluster)) == []


def test_only_as_many_as_are_needed_go() -> None:
    cluster = world()
    add_job(cluster, "want", [shape(cpu=1)], queue="a")
    assert len(evicted(reclaimed(cluster))) == 1


def test_a_node_that_is_full_of_pods_can_be_reclaimed_from() -> None:
    cluster = world(pods=4)
    add_job(cluster, "want", [shape(cpu=1)], queue="a")
    record = reclaimed(cluster, Predicates)
    assert len(evicted(record)) == 1
    assert len(promises(record)) == 1


def test_a_job_with_its_minimum_takes_nothing_more() -> None:
    cluster = with_nodes(("n", {"cpu": 3}))
    cluster.put_queue(QueueSpec("a"))
    cluster.put_queue(QueueSpec("b"))
    add_job(cluster, "theirs", [shape(cpu=1)] * 3, node="n", queue="b", minimum=0)
    cluster.remove_task("theirs-2")
    add_job(cluster, "mine", [shape(cpu=1)] * 3, queue="a", minimum=1)
    record = reclaimed(cluster)
    assert len(binds(record)) == 1
    assert evicted(record) == []


class TwoAtMost(NodeFilter):
    """A node takes no more than two pods beside the new one."""

    name = "two"
    scope = Scope.ROW
    resolvable = True

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        few: BoolArray = at.requested[PODS] <= 2
        return few


class Few(Plugin):
    name = "few"

    def node_filters(self) -> list[NodeFilter]:
        return [TwoAtMost()]


def test_victims_go_until_the_filters_are_content_too() -> None:
    cluster = world()
    add_job(cluster, "want", [shape(cpu=1)], queue="a")
    assert len(evicted(reclaimed(cluster, Few))) == 2
