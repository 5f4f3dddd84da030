"""A run over several classes gives the nodes of placing its tasks one by one, as far as it is sure."""

from __future__ import annotations

from random import Random

import pytest
from tests.worlds.small_cluster import add_job, job_in, open_session, shape, with_nodes

from navarch.engine.placement.mixed_run import MixedRuns
from navarch.engine.session import Session
from navarch.model.status import TaskStatus
from navarch.plugins.binpack import Binpack
from navarch.plugins.nodeorder.plugin import NodeOrder
from navarch.plugins.predicates.plugin import Predicates


def world(seed: int, scorer: type) -> Session:
    draw = Random(seed)
    cluster = with_nodes(*((f"n{i}", {"cpu": draw.choice((2, 4)), "memory": draw.choice(("4Gi", "8Gi"))}) for i in range(6)))
    kinds = [shape(cpu="500m", memory="1Gi"), shape(cpu="250m", memory="2Gi"), shape(cpu=1)]
    for number in range(3):
        add_job(cluster, f"j{number}", [draw.choice(kinds) for _ in range(8)], minimum=1)
    return open_session(cluster, Predicates, scorer)


def tasks_in_turns(session: Session) -> list[int]:
    waiting = [job_in(session, f"j{number}").tasks_in(TaskStatus.PENDING) for number in range(3)]
    return [task for turn in zip(*waiting) for task in turn]


@pytest.mark.parametrize("scorer", [Binpack, NodeOrder])
def test_the_same_nodes_as_one_by_one(scorer: type) -> None:
    lengths: list[int] = []
    for seed in range(30):
        session, other = world(seed, scorer), world(seed, scorer)
        runs, left, alone = MixedRuns(), tasks_in_turns(session), tasks_in_turns(other)
        while left:
            views = [session.view(session.class_of(task)) for task in left]
            assert all(view.can_mix() for view in views)
            rows = runs.choose(views)
            lengths.append(len(rows))
            expected: list[int] = []
            for task in alone[: max(len(rows), 1)]:
                kind = other.class_of(task)
                chosen, _ = other.view(kind).choose(1)
                expected += chosen
                if chosen:
                    job = other.job_of(task)
                    assert job is not None
                    other.statement().allocate(job, [task], chosen, kind)
            assert rows == expected
            if not rows:
                break
            jobs = [session.job_of(task) for task in left[: len(rows)]]
            placed = [job for job in jobs if job is not None]
            session.statement().allocate_each(placed, left[: len(rows)], rows, [session.class_of(task) for task in left[: len(rows)]])
            runs.placed(rows)
            left, alone = left[len(rows) :], alone[len(rows) :]
    assert max(lengths) > 5 and sum(lengths) > 2 * len(lengths)
