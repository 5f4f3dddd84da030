"""Static answers are computed once for equal shapes and kept across cycles until nodes change."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, open_session, row_in, shape, with_nodes

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Scope, TaskClass
from navarch.engine.placement import static_cache as static
from navarch.engine.plugin import Plugin
from navarch.model.cluster import Cluster
from navarch.model.resources import BoolArray
from navarch.model.spec import NodeSpec

asked: list[int] = []


class Even(NodeFilter):
    name = "even"
    scope = Scope.STATIC

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        asked.append(at.allocatable.shape[1])
        even: BoolArray = np.arange(at.allocatable.shape[1]) % 2 == 0
        return even


class EvenNodes(Plugin):
    name = "even"

    def node_filters(self) -> list[NodeFilter]:
        return [Even()]


@pytest.fixture(autouse=True)
def forget() -> None:
    asked.clear()


def world() -> Cluster:
    cluster = with_nodes(*((f"n{i}", {"cpu": 8}) for i in range(4)))
    add_job(cluster, "a", [shape(cpu=1)])
    add_job(cluster, "b", [shape(cpu=1)])
    add_job(cluster, "c", [shape(cpu=2)])
    return cluster


def look(cluster: Cluster) -> list[list[bool]]:
    session = open_session(cluster, EvenNodes)
    return [session.view(session.class_of(row_in(session, uid))).feasible().tolist() for uid in ("a-0", "b-0", "c-0")]


def test_one_question_a_shape_and_none_in_the_next_cycle() -> None:
    cluster = world()
    assert look(cluster) == [[True, False, True, False]] * 3
    assert len(asked) == 2
    look(cluster)
    assert len(asked) == 2


def test_a_changed_label_asks_again_and_changed_figures_do_not() -> None:
    cluster = world()
    look(cluster)
    node = cluster.nodes.specs[0]
    assert node is not None
    cluster.put_node(replace(node, allocatable=(("cpu", 1),)))
    look(cluster)
    assert len(asked) == 2
    cluster.put_node(replace(node, labels={"a": "b"}))
    look(cluster)
    assert len(asked) == 4


def test_a_new_node_asks_again() -> None:
    cluster = world()
    look(cluster)
    cluster.put_node(NodeSpec("n9", allocatable=(("cpu", 1000), ("pods", 10))))
    assert look(cluster)[0] == [True, False, True, False, True]


def test_an_answer_outlives_the_number_of_its_shape() -> None:
    cluster = world()
    look(cluster)
    cluster.remove_task("c-0")
    add_job(cluster, "d", [shape(cpu=3)])  # takes the number that cpu=2 had
    cluster.remove_job("ns/c")
    session = open_session(cluster, EvenNodes)
    session.view(session.class_of(row_in(session, "d-0")))
    assert len(asked) == 3


def test_the_memo_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "LIMIT", 8)
    cluster = with_nodes(("n", {"cpu": 8}))
    for i in range(30):
        add_job(cluster, f"j{i}", [shape(cpu=f"{i + 1}m")])
    session = open_session(cluster, EvenNodes)
    for i in range(30):
        session.view(session.class_of(row_in(session, f"j{i}-0")))
    assert len(cluster.memo) <= 8


def test_the_more_nodes_the_fewer_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "LIMIT_BYTES", 5 * 4)
    cluster = with_nodes(*((f"n{i}", {"cpu": 8}) for i in range(4)))
    for i in range(12):
        add_job(cluster, f"j{i}", [shape(cpu=f"{i + 1}m")])
    session = open_session(cluster, EvenNodes)
    for i in range(12):
        session.view(session.class_of(row_in(session, f"j{i}-0")))
    assert len(cluster.memo) == 5, "of four bytes each"
