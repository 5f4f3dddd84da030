"""Whatever queues request: none gets more than requested or allowed, nothing is given twice, nothing wanted is left over."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds.plugin_session import World, job_of

from navarch.engine.job import Job
from navarch.model.status import TaskStatus
from navarch.plugins.capacity.plugin import Capacity
from navarch.plugins.drf.share_tree import ShareTree
from navarch.plugins.proportion import Proportion
from navarch.plugins.queues.division import divide

AMOUNT = st.integers(min_value=0, max_value=10**6)
QUEUE = st.tuples(st.integers(min_value=1, max_value=100), AMOUNT, AMOUNT, AMOUNT, AMOUNT)
"""weight, then request and limit of two resources"""
CLOSE = 1e-3
NOTHING = 0.1
"""Below this an amount counts as nothing left to divide (thousandths of a core, bytes), so rounds may end that far apart."""


@given(st.lists(QUEUE, min_size=1, max_size=8), AMOUNT, AMOUNT)
def test_no_queue_gets_more_than_it_asks_for_may_have_or_is_there(
    queues: list[tuple[int, int, int, int, int]], first: int, second: int
) -> None:
    weight = np.array([q[0] for q in queues], dtype=np.float64)
    request = np.array([[q[1], q[2], 0.0] for q in queues])
    limit = np.array([[q[3], q[4], np.inf] for q in queues])
    total = np.array([first, second, 0])
    found = divide(total, weight, limit, request, np.zeros_like(request))
    assert (found >= 0).all()
    assert (found <= np.minimum(request, limit) + CLOSE).all()
    assert (found.sum(axis=0) <= total + CLOSE).all()
    backwards = divide(total, weight[::-1], limit[::-1], request[::-1], np.zeros_like(request))
    assert np.allclose(backwards[::-1], found, atol=NOTHING)


@given(st.lists(QUEUE, min_size=1, max_size=8), AMOUNT)
def test_nothing_of_one_resource_is_left_while_a_queue_requests_it(queues: list[tuple[int, int, int, int, int]], total: int) -> None:
    request = np.array([[q[1], 0.0, 0.0] for q in queues])
    limit = np.array([[q[3], np.inf, np.inf] for q in queues])
    weight = np.array([q[0] for q in queues], dtype=np.float64)
    found = divide(np.array([total, 0, 0]), weight, limit, request, np.zeros_like(request))
    wanted = float(np.minimum(request, limit).sum())
    assert abs(found[:, 0].sum() - min(float(total), wanted)) <= 1.0


STEP = st.tuples(st.sampled_from(["allocate", "pipeline", "evict", "back"]), st.integers(min_value=0, max_value=11))


@given(st.lists(STEP, max_size=25))
def test_a_history_that_is_undone_leaves_every_figure_as_it_was(steps: list[tuple[str, int]]) -> None:
    world = World().node("n", cpu=64, memory="64Gi").queue("root").queue("p").queue("a", parent="p").queue("b")
    for name, queue in (("x", "a"), ("y", "b")):
        world.job(name, queue).pods(name, 3, cpu=1, node="n").pods(name, 3, cpu=2, memory="1Gi")
    session = world.session(Proportion, Capacity, switches={"hierarchy": True})
    proportion, capacity = session.plugins
    assert isinstance(proportion, Proportion) and isinstance(capacity, Capacity)
    before = (proportion.ledger.allocated.copy(), capacity.ledger.allocated.copy())
    tasks = [*job_of(session, "x").tasks, *job_of(session, "y").tasks]
    statement = session.statement()
    for step, number in steps:
        task = tasks[number]
        job = session.job_of(task)
        assert job is not None
        if step == "back":
            statement.roll_back(max(statement.save_point() - 2, 0))
        elif step == "evict" and session.status[task] == TaskStatus.RUNNING:
            statement.evict(task)
        elif step in ("allocate", "pipeline") and session.status[task] == TaskStatus.PENDING:
            put = statement.allocate if step == "allocate" else statement.pipeline
            put(job, [task], [0], session.class_of(task))
        held = sum(int(j.allocated[0]) + _promised(j) for j in (job_of(session, "x"), job_of(session, "y")))
        assert capacity.ledger.allocated[session.queues["root"].number][0] == held
    statement.discard()
    assert np.array_equal(proportion.ledger.allocated, before[0])
    assert np.array_equal(capacity.ledger.allocated, before[1])


def _promised(job: Job) -> int:
    return sum(int(job.session.class_of(task).request[0]) for task in job.tasks_in(TaskStatus.PIPELINED))


@given(st.lists(st.tuples(st.integers(min_value=0, max_value=3), st.integers(min_value=-3, max_value=3)), max_size=20))
def test_a_tree_of_shares_repaired_by_change_equals_one_built_anew(changes: list[tuple[int, int]]) -> None:
    world = World().node("n", cpu=20, memory="64Gi").queue("root").queue("p", weight=2).queue("c")
    world.queue("a", parent="p").queue("b", parent="p")
    for number, queue in enumerate(("a", "b", "c", "c")):
        world.job(f"j{number}", queue).pods(f"j{number}", 3, cpu=1, node="n").pods(f"j{number}", 3, cpu=1)
    session = world.session()
    queues = {job.row: job.queue for job in session.all_jobs()}
    numbers = np.array([queues[row].number for row in range(4)])
    tree = ShareTree(session, numbers)
    for row, amount in changes:
        vector = np.zeros_like(session.total)
        vector[0] = max(1000 * amount, -int(tree.held[0, row]))
        tree.shift(queues[row], row, vector)
        tree.compare(session.queues["a"], session.queues["c"])
    fresh = ShareTree(session, numbers)
    for row in range(4):
        fresh.shift(queues[row], row, tree.held[:, row] - fresh.held[:, row])
    for left, right in (("a", "b"), ("a", "c"), ("c", "b")):
        pair = (session.queues[left], session.queues[right])
        assert tree.compare(*pair) == fresh.compare(*pair)
