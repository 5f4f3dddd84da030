"""The search for victims: candidates, what they free, their order, and those that stay after all."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.worlds.small_cluster import add_job, open_session, row_in, shape, task, with_nodes

from navarch.engine.session import Session
from navarch.engine.victims import search as victims
from navarch.model.cluster import Cluster
from navarch.model.spec import QueueSpec
from navarch.model.status import TaskStatus
from navarch.plugins.priority import Priority

RUNNING = (TaskStatus.RUNNING,)


def world() -> Cluster:
    cluster = with_nodes(("a", {"cpu": 8}), ("b", {"cpu": 8}))
    cluster.put_queue(QueueSpec("other", created=1.0))
    cluster.put_queue(QueueSpec("firm", reclaimable=False))
    add_job(cluster, "mine", [shape(cpu=1), shape(cpu=2)], node="a")
    add_job(cluster, "theirs", [shape(cpu=3)], node="b", queue="other")
    add_job(cluster, "kept", [shape(cpu=1)], node="b", queue="firm")
    cluster.put_task(task("stubborn", shape(cpu=1), "ns/mine", "a", preemptable=False))
    cluster.put_task(task("bound", shape(cpu=1), "ns/mine", "b", status=TaskStatus.BOUND))
    cluster.put_task(task("alone", shape(cpu=1), node="a"))
    cluster.put_task(task("lost", shape(cpu=1), "ns/mine", "unknown"))
    add_job(cluster, "want", [shape(cpu=7)])
    return cluster


def uids(session: Session, mask: Iterable[object]) -> list[str]:
    return sorted(spec.uid for spec, wanted in zip(session.snapshot.tasks.specs, mask) if wanted and spec is not None)


def test_candidates_of_a_queue() -> None:
    session = open_session(world())
    queue = session.queues["default"]
    assert uids(session, victims.candidates_in_queue(session, queue, RUNNING)) == ["mine-0", "mine-1"]
    both = (TaskStatus.RUNNING, TaskStatus.BOUND)
    assert uids(session, victims.candidates_in_queue(session, queue, both)) == ["bound", "mine-0", "mine-1"]


def test_candidates_of_other_queues_that_let_themselves_be_reclaimed_from() -> None:
    session = open_session(world())
    assert uids(session, victims.candidates_elsewhere(session, session.queues["default"], RUNNING)) == ["theirs-0"]
    assert uids(session, victims.candidates_elsewhere(session, session.queues["other"], RUNNING)) == ["mine-0", "mine-1"]


def test_a_task_that_already_leaves_is_no_candidate() -> None:
    session = open_session(world())
    session.statement().evict(row_in(session, "mine-0"))
    assert uids(session, victims.candidates_in_queue(session, session.queues["default"], RUNNING)) == ["mine-1"]


def test_the_amount_that_eviction_frees_and_the_nodes_where_it_suffices() -> None:
    session = open_session(world())
    mask = victims.candidates_in_queue(session, session.queues["default"], RUNNING)
    freed = victims.freed_at_most(session, mask)
    assert freed[0].tolist() == [3000, 0]
    assert freed[2].tolist() == [2, 0]
    want = session.class_of(row_in(session, "want-0"))
    assert victims.within_reach(session, want, freed).tolist() == [False, False]
    assert victims.within_reach(session, want, freed * 2).tolist() == [True, False]
    assert victims.within_reach(session, session.class_of(row_in(session, "theirs-0")), freed).tolist() == [True, True]


def test_fitting_counts_what_is_freed() -> None:
    session = open_session(world())
    want = session.class_of(row_in(session, "want-0"))
    rows = [row_in(session, uid) for uid in ("mine-0", "mine-1")]
    assert not victims.fits(session, want, 0)
    assert not victims.fits(session, want, 0, victims.total_request(session, rows))
    assert victims.fits(session, want, 0, victims.total_request(session, [*rows, row_in(session, "stubborn")]) * 2)
    assert victims.total_request(session, []).tolist() == [0, 0, 0]


def order(cluster: Cluster, *names: str) -> list[str]:
    session = open_session(cluster, Priority)
    rows = [row_in(session, uid) for uid in names]
    found = [session.task(t).uid for t in victims.victim_order(session, rows, session.queues["default"])]
    assert found == [session.task(t).uid for t in victims.victim_order(session, rows[::-1], session.queues["default"])]
    return found


def test_inside_a_job_the_task_that_would_be_placed_last_goes_first() -> None:
    cluster = with_nodes(("a", {"cpu": 8}))
    add_job(cluster, "j", [shape(cpu=1)] * 3, node="a")
    cluster.put_task(task("j-9", shape(cpu=1), "ns/j", "a", priority=-5, name="j-worker-0"))
    assert order(cluster, "j-0", "j-1", "j-2", "j-9") == ["j-9", "j-2", "j-1", "j-0"]


def test_between_jobs_the_lower_one_goes_first_and_equals_are_as_one() -> None:
    cluster = with_nodes(("a", {"cpu": 8}))
    add_job(cluster, "high", [shape(cpu=1)], node="a", priority=9)
    add_job(cluster, "low", [shape(cpu=1)] * 2, node="a", priority=1, created=1.0)
    add_job(cluster, "twin", [shape(cpu=1)] * 2, node="a", priority=1, created=0.0)
    assert order(cluster, "high-0", "low-0", "low-1", "twin-0", "twin-1") == ["low-1", "twin-1", "low-0", "twin-0", "high-0"]


def test_between_queues_the_one_served_last_loses_first() -> None:
    cluster = world()
    assert order(cluster, "mine-0", "theirs-0") == ["theirs-0", "mine-0"]


def test_evicting_goes_on_until_it_is_enough_and_not_further() -> None:
    session = open_session(world())
    rows = [row_in(session, uid) for uid in ("mine-0", "mine-1")]
    statement = session.statement()
    released = session.nodes.releasing
    assert victims.evict_until(statement, rows, lambda: bool(released[0, 0] >= 0), for_="", reason="") == 0
    assert victims.evict_until(statement, rows, lambda: bool(released[0, 0] >= 1000), for_="", reason="") == 1
    assert victims.evict_until(session.statement(), rows[1:], lambda: False, for_="", reason="") is None


@pytest.mark.parametrize(("need", "left"), [(1000, ["mine-0"]), (2000, ["mine-1"]), (3000, ["mine-0", "mine-1"])])
def test_unneeded_victims_are_given_back_last_first(need: int, left: list[str]) -> None:
    session = open_session(world())
    statement = session.statement()
    for uid in ("mine-0", "mine-1"):
        statement.evict(row_in(session, uid), for_="ns/want", reason="test", message="words")
    remain = victims.give_back(statement, 0, lambda: bool(session.nodes.releasing[0, 0] >= need))
    assert remain == len(left)
    statement.commit()
    assert sorted(e.uid for e in session.record.evictions) == left
    assert {(e.for_, e.reason, e.message) for e in session.record.evictions} == {("ns/want", "test", "words")}
    assert session.nodes.releasing[0, 0] == {1000: 1000, 2000: 2000, 3000: 3000}[need]
