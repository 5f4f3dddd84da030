"""A statement that is discarded leaves every byte of the session as it was, whatever was tried in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds.small_cluster import add_job, open_session, shape, with_nodes

from navarch.engine.session import Session
from navarch.model.status import TaskStatus
from navarch.plugins.gang import Gang
from navarch.plugins.priority import Priority

SHAPES = [shape(cpu="1", memory="1Gi"), shape(cpu="2"), shape(cpu="500m", memory="3Gi"), shape()]
Step = tuple[str, int, int]


def world() -> Session:
    capacity: dict[str, str | int] = {"cpu": 8, "memory": "32Gi"}
    cluster = with_nodes(*((f"n{i}", capacity) for i in range(4)))
    for i in range(3):
        add_job(cluster, f"running{i}", SHAPES, node=f"n{i}", minimum=1)
        add_job(cluster, f"waiting{i}", SHAPES * 2, minimum=2)
    return open_session(cluster, Gang, Priority)


def picture(session: Session) -> list[bytes]:
    nodes = session.nodes
    arrays: list[np.ndarray[Any, Any]] = [
        nodes.used,
        nodes.releasing,
        nodes.pipelined,
        nodes.requested,
        nodes.scoring,
        session.status,
        session.node,
    ]
    jobs = sorted(session.touched_jobs, key=lambda job: job.key)
    counts = np.array([[*job.counts, job.best_effort_pending] for job in jobs])
    return [a.tobytes() for a in arrays] + [counts.tobytes()] + [job.allocated.tobytes() for job in jobs]


steps = st.lists(st.tuples(st.sampled_from(["allocate", "pipeline", "evict", "back"]), st.integers(0, 99), st.integers(0, 3)))


@given(steps)
def test_discard_restores_every_byte(script: list[Step]) -> None:
    session = world()
    assert session.all_jobs(), "all jobs are opened before the first picture"
    before = picture(session)
    statement = session.statement()
    marks = [statement.save_point()]
    for kind, number, node in script:
        if kind == "back":
            statement.roll_back(min(marks.pop() if len(marks) > 1 else marks[0], len(statement)))
            continue
        wanted = TaskStatus.RUNNING if kind == "evict" else TaskStatus.PENDING
        rows = [t for job in session.all_jobs() for t in job.tasks_in(wanted)]
        if not rows:
            continue
        task = rows[number % len(rows)]
        job = session.job_of(task)
        assert job is not None
        marks.append(statement.save_point())
        if kind == "evict":
            statement.evict(task)
        elif kind == "allocate":
            statement.allocate(job, [task], [node], session.class_of(task))
        else:
            statement.pipeline(job, [task], [node], session.class_of(task))
    statement.discard()
    assert picture(session) == before
