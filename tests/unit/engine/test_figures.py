"""Node figures: idle and future idle, some rows of them, and ladders of imagined ones."""

from __future__ import annotations

import numpy as np
from tests.worlds.small_cluster import add_job, open_session, row_in, shape, with_nodes

from navarch.engine.session import Session
from navarch.model.status import TaskStatus


def world() -> Session:
    cluster = with_nodes(("a", {"cpu": 4}), ("b", {"cpu": 8}), ("c", {"cpu": 2}))
    add_job(cluster, "run", [shape(cpu=1), shape(cpu=2)], node="b")
    add_job(cluster, "wait", [shape(cpu=1)] * 4)
    return open_session(cluster)


def test_idle_and_future_idle_amounts() -> None:
    session = world()
    nodes = session.nodes
    assert nodes.idle[0].tolist() == [4000, 5000, 2000]
    session.statement().evict(row_in(session, "run-1"))
    assert nodes.idle[0].tolist() == [4000, 5000, 2000], "a task that leaves still holds its node"
    assert nodes.future_idle[0].tolist() == [4000, 7000, 2000]
    job = session.job_of(row_in(session, "wait-0"))
    assert job is not None
    session.statement().pipeline(job, [row_in(session, "wait-0")], [1], session.class_of(row_in(session, "wait-0")))
    assert nodes.idle[0].tolist() == [4000, 5000, 2000], "a promise takes nothing yet"
    assert nodes.future_idle[0].tolist() == [4000, 6000, 2000]


def test_the_pods_view_loses_evicted_pods_at_once_and_has_promised_ones() -> None:
    session = world()
    before = session.nodes.requested[0, 1]
    session.statement().evict(row_in(session, "run-1"))
    assert session.nodes.requested[0, 1] == before - 2000
    assert session.nodes.used[0, 1] == before


def test_a_selection_follows_its_rows_and_leaves_the_table_alone() -> None:
    session = world()
    at = session.nodes.at(np.array([2, 1]))
    assert at.idle[0].tolist() == [2000, 5000]
    assert at.allocatable.shape == (3, 2)
    at.used[:] = 0
    assert session.nodes.used[0, 1] == 3000


def test_a_ladder_imagines_further_tasks_one_step_after_the_other() -> None:
    session = world()
    request, scoring = np.array([1000, 0, 1]), np.array([100, 50])
    at = session.nodes.ladder(np.array([1, 2]), np.array([0, 1]), 3, request, scoring, pipelined=False)
    assert isinstance(at.rows, np.ndarray)
    assert at.rows.tolist() == [1, 1, 1, 2, 2, 2]
    assert at.added is not None
    assert at.added.tolist() == [1, 2, 3, 2, 3, 4]
    assert at.used[0].tolist() == [4000, 5000, 6000, 2000, 3000, 4000]
    assert at.requested[0].tolist() == at.used[0].tolist()
    assert at.scoring[0].tolist()[:3] == [session.nodes.scoring[0, 1] + 100 * step for step in (1, 2, 3)]
    assert not at.pipelined.any()


def test_a_ladder_of_promises_grows_promises() -> None:
    session = world()
    at = session.nodes.ladder(np.array([0]), np.array([0]), 2, np.array([1000, 0, 1]), np.zeros(2, dtype=np.int64), pipelined=True)
    assert at.pipelined[0].tolist() == [1000, 2000]
    assert not at.used.any()
    assert at.requested[0].tolist() == [1000, 2000], "to other pods a promised pod is there"


def test_statuses_are_untouched_by_looking() -> None:
    session = world()
    session.nodes.at(np.array([0])).future_idle.sum()
    assert session.status[row_in(session, "run-0")] == TaskStatus.RUNNING
