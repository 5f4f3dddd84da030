"""Equal jobs fail alike, until something is decided."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.worlds.owing import Owing
from tests.worlds.small_cluster import add_job, decided, job_in, open_session, shape, waits, with_nodes

from navarch.actions.eviction_failures import FailedAttempts
from navarch.engine.plugin import Plugin
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.spec import QueueSpec, SubGroupSpec


def world() -> Cluster:
    cluster = with_nodes(("a", {"cpu": 4}))
    cluster.put_queue(QueueSpec("other"))
    add_job(cluster, "first", [shape(cpu=1)], priority=5)
    add_job(cluster, "twin", [shape(cpu=1)], priority=5, created=3.0)
    add_job(cluster, "higher", [shape(cpu=1)], priority=6)
    add_job(cluster, "larger", [shape(cpu=2)], priority=5)
    add_job(cluster, "more", [shape(cpu=1)] * 2, priority=5)
    add_job(cluster, "elsewhere", [shape(cpu=1)], priority=5, queue="other")
    spec = add_job(cluster, "told", [shape(cpu=1)], priority=5)
    cluster.put_job(replace(spec, annotations={"a": "b"}))
    return cluster


def foretold(session: Session, failed: FailedAttempts) -> list[str]:
    return [job.key.removeprefix("ns/") for job in session.all_jobs() if failed.known_to_fail(job, job.tasks)]


def test_failures_are_reused_only_for_equal_jobs() -> None:
    session = open_session(world())
    failed = FailedAttempts(session)
    assert foretold(session, failed) == []
    first = job_in(session, "first")
    failed.add(first, first.tasks, known=0)
    assert foretold(session, failed) == ["first", "twin"]
    failed.clear()
    assert foretold(session, failed) == []


def test_failures_of_gangs_with_several_parts_are_not_reused() -> None:
    cluster, parts = with_nodes(("a", {"cpu": 4})), (SubGroupSpec("left", 1), SubGroupSpec("right", 1))
    for name, sides in (("both", ("left", "right")), ("one", ("left", "left"))):
        cluster.put_job(replace(add_job(cluster, name, [shape(cpu=1)] * 2), sub_groups=parts))
        for number, side in enumerate(sides):
            task = cluster.task(f"{name}-{number}")
            assert task is not None
            cluster.put_task(replace(task, sub_group=side))
    session = open_session(cluster)
    failed = FailedAttempts(session)
    one = job_in(session, "one")
    failed.add(one, one.tasks, known=0)
    assert foretold(session, failed) == ["one"]


def test_a_job_equal_to_a_failed_one_waits_for_the_same_reasons() -> None:
    session = open_session(world())
    failed = FailedAttempts(session)
    first, twin = job_in(session, "first"), job_in(session, "twin")
    first.refuse(Reason("Before", "from another action"))
    first.refuse(Reason("Now", "no pod may be evicted"))
    failed.add(first, first.tasks, known=1)
    assert failed.known_to_fail(twin, twin.tasks)
    assert [reason.code for reason in twin.reasons] == ["Now"]


class Refuses(Plugin):
    name = "refuses"
    asked = 0

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        Refuses.asked += 1
        return []

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None:
        Refuses.asked += 1
        return []

    def unified_evictable(self, job: object, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None:
        Refuses.asked += 1
        return []


@pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
def test_a_long_backlog_of_equal_jobs_is_tried_once(action: str) -> None:
    Refuses.asked = 0
    queue = "default" if "preempt" in action else "other"
    cluster = with_nodes(("a", {"cpu": 1}), ("b", {"cpu": 1}))
    cluster.put_queue(QueueSpec("other"))
    for node in ("a", "b"):
        add_job(cluster, f"run-{node}", [shape(cpu=1)], node=node, queue=queue)
    for number in range(30):
        add_job(cluster, f"wait{number}", [shape(cpu=1)], priority=9)
    record = decided(cluster, Refuses, Owing, actions=("allocate", action))
    assert not record.evictions
    assert 1 <= Refuses.asked <= 4
    assert waits(record, "wait0")
