"""Where a class of tasks may go, which node is best, and why not: always as if placed one by one."""

from __future__ import annotations

import numpy as np
import pytest
from tests.worlds.small_cluster import add_job, job_in, open_session, row_in, shape, with_nodes

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.placement.class_view import ClassView
from navarch.engine.plugin import Plugin
from navarch.engine.semantics import Semantics
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.resources import CPU, BoolArray, FloatArray


class Emptiest(NodeScorer):
    name = "emptiest"
    scope = Scope.ROW

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        free: FloatArray = (at.allocatable[CPU] - at.requested[CPU]).astype(np.float64)
        return free


class Fullest(Emptiest):
    name = "fullest"
    weight = -1.0


class Spread(Plugin):
    name = "spread"

    def node_scorers(self) -> list[NodeScorer]:
        return [Emptiest()]


class Pack(Plugin):
    name = "pack"

    def node_scorers(self) -> list[NodeScorer]:
        return [Fullest()]


class NotB(NodeFilter):
    name = "not-b"
    scope = Scope.STATIC

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        others: BoolArray = np.arange(at.allocatable.shape[1]) != 1
        return others

    def explain(self, task: TaskClass, at: Figures) -> list[Refusal]:
        return [Refusal("b is not liked", ~self.mask(task, at), unresolvable=True)]


class AvoidB(Plugin):
    name = "avoid-b"

    def node_filters(self) -> list[NodeFilter]:
        return [NotB()]


def world(cpus: tuple[int, ...] = (4, 4, 4), waiting: int = 12) -> Cluster:
    cluster = with_nodes(*((chr(97 + i), {"cpu": cpu}) for i, cpu in enumerate(cpus)))
    add_job(cluster, "wait", [shape(cpu=1)] * waiting, minimum=1)
    return cluster


def view_of(session: Session, uid: str = "wait-0") -> ClassView:
    return session.view(session.class_of(row_in(session, uid)))


def test_without_scores_the_first_node_in_order_is_taken_until_it_is_full() -> None:
    session = open_session(world())
    assert view_of(session).choose(9) == ([0, 0, 0, 0, 1, 1, 1, 1, 2], False)


@pytest.mark.parametrize(("kind", "cpus", "nodes"), [(Spread, (4, 3, 2), [0, 0, 1, 0, 1, 2]), (Pack, (4, 3, 2), [2, 2, 1, 1, 1, 0])])
def test_scores_are_followed_step_by_step(kind: type[Plugin], cpus: tuple[int, ...], nodes: list[int]) -> None:
    session = open_session(world(cpus), kind)
    assert view_of(session).choose(6)[0] == nodes


@pytest.mark.parametrize("kind", [Spread, Pack])
def test_a_run_is_what_placing_one_by_one_gives(kind: type[Plugin]) -> None:
    cpus = (5, 3, 7, 2, 6, 1, 4, 9)
    together, single = open_session(world(cpus, 40), kind), open_session(world(cpus, 40), kind)
    found: list[int] = []
    while len(found) < 37:
        found += _place(together, 37 - len(found))
    assert found == [_place(single, 1)[0] for _ in range(37)]
    assert view_of(together).choose(1) == ([], False)


def _place(session: Session, count: int) -> list[int]:
    job = job_in(session, "wait")
    view = view_of(session)
    nodes, pipelined = view.choose(count)
    assert not pipelined
    waiting = [t for t in job.tasks if session.status[t] == 0][: len(nodes)]
    session.statement().allocate(job, waiting, nodes, view.task)
    return nodes


def test_a_view_follows_what_happens_to_nodes_and_forgets_what_was_undone() -> None:
    session = open_session(world((2, 1)))
    view, job = view_of(session), job_in(session, "wait")
    assert view.slots(9).tolist() == [2, 1]
    statement = session.statement()
    statement.allocate(job, list(job.tasks[:2]), [0, 1], view.task)
    assert view.slots(9).tolist() == [1, 0]
    assert view.choose(3) == ([0], False)
    statement.discard()
    assert view.slots(9).tolist() == [2, 1]
    assert view.slots(1).tolist() == [1, 1]


def test_releasing_resources_are_nominated_only_if_nothing_is_idle() -> None:
    cluster = world((1, 1), 3)
    add_job(cluster, "run", [shape(cpu=1)], node="a")
    session = open_session(cluster, Pack)
    session.statement().evict(row_in(session, "run-0"))
    view, job = view_of(session), job_in(session, "wait")
    assert view.choose(2) == ([1], False)
    session.statement().allocate(job, [job.tasks[0]], [1], view.task)
    assert view.choose(2) == ([0], True)


def test_idle_and_released_do_not_add_up_where_they_are_apart() -> None:
    cluster = with_nodes(("a", {"cpu": 3}), ("b", {"cpu": 9}))
    add_job(cluster, "run", [shape(cpu=2)], node="a")
    add_job(cluster, "busy", [shape(cpu=9)], node="b")
    add_job(cluster, "two", [shape(cpu=2)])
    add_job(cluster, "three", [shape(cpu=3)])
    for apart, three in ((False, ([0], True)), (True, ([], False))):
        session = open_session(cluster, semantics=Semantics(releasing_is_apart=apart))
        session.statement().evict(row_in(session, "run-0"))
        assert view_of(session, "three-0").choose(1) == three
        assert view_of(session, "two-0").choose(1) == ([0], True)


def test_the_better_node_wins_whether_idle_or_releasing() -> None:
    cluster = with_nodes(("a", {"cpu": 2}), ("b", {"cpu": 9}))
    add_job(cluster, "run", [shape(cpu=9)], node="b")
    add_job(cluster, "wait", [shape(cpu=1)] * 2)
    session = open_session(cluster, Spread, semantics=Semantics(releasing_is_apart=True))
    session.statement().evict(row_in(session, "run-0"))
    assert view_of(session).choose(2) == ([1], True)
    assert view_of(open_session(cluster, Spread, semantics=Semantics(releasing_is_apart=True))).choose(2) == ([0, 0], False)


def test_only_nodes_of_the_domain_are_chosen() -> None:
    session = open_session(world())
    within = np.array([False, False, True])
    assert view_of(session).choose(9, within) == ([2, 2, 2, 2], False)
    assert view_of(session).choose(1, np.zeros(3, dtype=bool)) == ([], False)


def test_filters_rule_nodes_out_and_say_why() -> None:
    session = open_session(world((4, 4, 0)), AvoidB)
    view = view_of(session)
    assert view.feasible().tolist() == [True, False, True]
    assert [view.passes(row) for row in range(3)] == [True, False, True]
    assert view.unresolvable().tolist() == [False, True, False]
    session.statement().allocate(job_in(session, "wait"), list(job_in(session, "wait").tasks[:4]), [0] * 4, view.task)
    errors = view.explain()
    assert errors.nodes == {"Insufficient cpu": 2, "b is not liked": 1}
    assert errors.refused == 3
    assert errors.unresolvable.tolist() == [False, True, False]


def test_an_explanation_is_kept_while_nothing_changes() -> None:
    session = open_session(world((0, 0, 1)))
    view, job = view_of(session), job_in(session, "wait")
    session.statement().allocate(job, [job.tasks[0]], [2], view.task)
    first = view.explain()
    assert view.explain() is first
    session.statement().allocate(job, [job.tasks[1]], [1], view.task)
    assert view.explain() is not first


def test_each_node_names_the_first_thing_it_lacks() -> None:
    cluster = with_nodes(
        ("a", {"cpu": 1, "memory": "1Gi"}), ("b", {"cpu": 4, "memory": "1Gi"}), ("c", {"cpu": 4, "memory": "8Gi", "pods": 0})
    )
    add_job(cluster, "wait", [shape(cpu=2, memory="2Gi")])
    session = open_session(cluster)
    assert view_of(session).explain().nodes == {"Insufficient cpu": 1, "Insufficient memory": 1, "Insufficient pods": 1}


def test_negative_room_is_no_room() -> None:
    cluster = with_nodes(("a", {"cpu": 1}))
    add_job(cluster, "fat", [shape(cpu=4)], node="a")
    add_job(cluster, "wait", [shape(cpu="1m"), shape(memory=1)])
    session = open_session(cluster)
    assert view_of(session, "wait-0").slots(5).tolist() == [0]
    assert view_of(session, "wait-0").choose(1) == ([], False)


def test_no_nodes_at_all() -> None:
    cluster = with_nodes()
    add_job(cluster, "wait", [shape(cpu=1)])
    view = view_of(open_session(cluster, Spread))
    assert view.choose(3) == ([], False)
    assert view.explain().nodes == {}
    assert view.slots(3).tolist() == []


@pytest.mark.parametrize(
    ("mode", "nodes"), [("hard", [([1], False), ([], False), ([], False)]), ("soft", [([1], False), ([0], False), ([], False)])]
)
def test_a_scheduler_looks_at_its_own_nodes_first_or_only(mode: str, nodes: list[tuple[list[int], bool]]) -> None:
    cluster = world((1, 1), 3)
    session = open_session(cluster)
    session.shard, session.shard_is_hard = np.array([False, True]), mode == "hard"
    view, job = view_of(session), job_in(session, "wait")
    for number, expected in enumerate(nodes):
        found = view.choose(1)
        assert found == expected
        if found[0]:
            session.statement().allocate(job, [job.tasks[number]], found[0], view.task)


class Halved(NodeScorer):
    """A score that is rescaled over the feasible nodes: the widest range decides."""

    name = "halved"
    scope = Scope.STATIC
    normalises = True

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        return np.array([0.0, 10.0, 100.0])[at.rows]

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        return np.zeros_like(raw) if high == low else 100 * (raw - low) / (high - low)


class Preferring(Plugin):
    name = "preferring"

    def node_scorers(self) -> list[NodeScorer]:
        return [Halved()]


def test_a_normalised_score_is_combined_again_when_the_feasible_nodes_change() -> None:
    session = open_session(world((2, 2, 2)), Preferring)
    view, job = view_of(session), job_in(session, "wait")
    assert view.totals(np.ones(3, dtype=bool)).tolist() == [0.0, 10.0, 100.0]
    order = []
    while (found := view.choose(6))[0]:
        waiting = [t for t in job.tasks if session.status[t] == 0][: len(found[0])]
        session.statement().allocate(job, waiting, found[0], view.task)
        order += found[0]
    assert order == [2, 2, 1, 1, 0, 0]
    assert view.totals(np.array([True, True, False])).tolist()[:2] == [0.0, 100.0]


class Fifty(NodeScorer):
    name = "fifty"
    scope = Scope.STATIC

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        return np.array([50.0, 0.0, 0.0])[at.rows]


class Torn(Plugin):
    name = "torn"

    def node_scorers(self) -> list[NodeScorer]:
        return [Fifty(), Halved()]


def test_a_run_ends_where_the_best_of_a_normalised_score_is_used_up() -> None:
    session = open_session(world((1, 1, 1)), Torn)
    view, job = view_of(session), job_in(session, "wait")
    order = []
    while (found := view.choose(3))[0]:
        waiting = [t for t in job.tasks if session.status[t] == 0][: len(found[0])]
        session.statement().allocate(job, waiting, found[0], view.task)
        order += found[0]
    assert order == [2, 1, 0], "without the third node the second is the best of those left, by the rescaled score"
