"""Where a search puts back what it evicted."""

from __future__ import annotations

import numpy as np
from tests.worlds.plugin_session import World, job_of

from navarch.actions.kai.placing import ChunkPlacement
from navarch.engine.session import Session
from navarch.model.status import TaskStatus


def moved() -> tuple[Session, int]:
    """A pod that runs on n1 and was promised n2."""
    session = World().queue("q").node("n1", cpu=4).node("n2", cpu=4).job("r").pods("r", 1, "n1", cpu=1).session(compat="kai")
    job = job_of(session, "r")
    (task,) = job.tasks
    statement = session.statement()
    statement.evict(task)
    statement.pipeline(job, [task], [1], session.class_of(task))
    statement.commit()
    return session, task


def test_a_moved_pod_that_is_evicted_again_and_finds_its_old_node_keeps_its_promise() -> None:
    session, task = moved()
    statement = session.statement()
    statement.evict(task)
    only_first = np.array([True, False])
    assert ChunkPlacement(session, statement, only_first, {task}).place(job_of(session, "r"))
    assert (session.node[task], session.status[task]) == (1, TaskStatus.PIPELINED)
    statement.discard()
    assert (session.node[task], session.status[task]) == (1, TaskStatus.PIPELINED)
