"""The tasks of each node, before and after placements."""

from __future__ import annotations

from tests.worlds.small_cluster import add_job, job_in, open_session, row_in, shape, task, with_nodes

from navarch.engine.session import Session
from navarch.model.status import TaskStatus


def world() -> Session:
    cluster = with_nodes(("a", {"cpu": 8}), ("b", {"cpu": 8}), ("gone", {"cpu": 8}))
    add_job(cluster, "on-a", [shape(cpu=1)] * 2, node="a")
    add_job(cluster, "nowhere", [shape(cpu=1)], node="gone")
    add_job(cluster, "wait", [shape(cpu=1)] * 2)
    cluster.put_task(task("foreign", shape(cpu=1), node="b"))
    cluster.put_task(task("leaving", shape(cpu=1), node="b", status=TaskStatus.RELEASING))
    cluster.put_task(task("done", shape(cpu=1), node="b", status=TaskStatus.SUCCEEDED))
    cluster.remove_node("gone")
    return open_session(cluster)


def names(session: Session, node: int) -> list[str]:
    return sorted(session.task(t).uid for t in session.residents.on(node))


def test_pods_that_hold_or_leave_a_node_are_on_it_and_finished_ones_are_not() -> None:
    session = world()
    assert names(session, 0) == ["on-a-0", "on-a-1"]
    assert names(session, 1) == ["foreign", "leaving"]


def test_placements_before_and_after_the_first_question_are_seen() -> None:
    session = world()
    job, first, second = job_in(session, "wait"), row_in(session, "wait-0"), row_in(session, "wait-1")
    session.statement().allocate(job, [first], [0], session.class_of(first))
    assert "wait-0" in names(session, 0)
    statement = session.statement()
    statement.pipeline(job, [second], [1], session.class_of(second))
    assert "wait-1" in names(session, 1)
    statement.discard()
    assert "wait-1" not in names(session, 1)


def test_an_evicted_pod_stays_while_it_leaves() -> None:
    session = world()
    statement = session.statement()
    statement.evict(row_in(session, "on-a-0"))
    assert "on-a-0" in names(session, 0)
    statement.commit()
    assert "on-a-0" in names(session, 0)
