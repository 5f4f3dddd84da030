"""Taking the next task of a job: from a sorted list, or from a heap whose keys move."""

from __future__ import annotations

import pytest
from tests.worlds.plugin_session import World, job_of

from navarch.actions.task_heap import take_next
from navarch.engine.session import Session
from navarch.plugins.volcano.task_topology.annotations import ANTI_AFFINITY
from navarch.plugins.volcano.task_topology.plugin import ROLE, TaskTopology


def opened(pods: int) -> Session:
    """So many buckets with a pod of each of three roles."""
    made = World().queue("q").job("j", annotations={ANTI_AFFINITY: "ps;worker;eval"}).node("n0", cpu=64)
    for role in ("ps", "worker", "eval"):
        made.pods("j", pods, role=role, annotations={ROLE: role}, cpu=1)
    return made.session(TaskTopology, compat="volcano")


def waiting(session: Session) -> list[int]:
    return session.sorted_tasks(list(job_of(session, "j").tasks), reverse=True)


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_while_keys_stay_tasks_come_in_order(moving: bool, count: int) -> None:
    session = opened(6)
    wanted = session.sorted_tasks(list(job_of(session, "j").tasks))
    tasks, taken = waiting(session), list[int]()
    while tasks:
        taken += take_next(session, tasks, min(count, len(tasks)), moving=moving)
    assert taken == wanted


@pytest.mark.parametrize(("moving", "buckets"), [(False, [0, 0, 0, 1, 1, 1]), (True, [0, 0, 1, 1, 1, 0])])
def test_after_a_placement_fuller_buckets_come_first(moving: bool, buckets: list[int]) -> None:
    """The heap chooses the next task before the last one is placed, so the first bucket loses its turn after two."""
    session = opened(2)
    job, tasks, found = job_of(session, "j"), waiting(session), list[int]()
    (plugin,) = session.plugins
    assert isinstance(plugin, TaskTopology) and session.task_order_moves(job)
    while tasks:
        (task,) = take_next(session, tasks, 1, moving=moving)
        session.statement().allocate(job, [task], [0], session.class_of(task))
        found.append(plugin.jobs[job.row].bucket_of[task].index)
    assert found == buckets
