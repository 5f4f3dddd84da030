"""Nodegroup: which groups of nodes a queue's pods may use, prefer and fill."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds.plugin_session import World, job_of, place

from navarch.engine.session import Session
from navarch.plugins.volcano.nodegroup import LABEL, LIMITS, NodeGroup, group_allowed, group_score

AFFINITY = {
    "affinity.required": ("g1", "g3"),
    "affinity.preferred": ("g3",),
    "anti.required": ("g2", "g4"),
    "anti.preferred": ("g4",),
}


def world(**queue: Any) -> World:
    made = World().queue("q", **queue)
    for i in range(1, 5):
        made.node(f"n{i}", {LABEL: f"g{i}"}, cpu=4, memory="8Gi")
    return made.node("n5", cpu=4, memory="8Gi").job("j").pods("j", 4, cpu=1)


def feasible(session: Session, job: str = "j") -> dict[str, float]:
    """Node -> score of the nodes that pass."""
    view = session.view(session.class_of(job_of(session, job).tasks[0]))
    mask = view.feasible()
    totals = view.totals(mask)
    return {session.nodes.names[i]: float(totals[i]) for i in np.flatnonzero(mask).tolist()}


def why_not(session: Session) -> dict[str, int]:
    return session.view(session.class_of(job_of(session, "j").tasks[0])).explain().nodes


def test_required_and_preferred_groups_pass_and_score_and_avoided_ones_come_last() -> None:
    session = world(node_groups=AFFINITY).session(NodeGroup)
    assert feasible(session) == {"n1": 100, "n3": 150, "n4": -1}
    assert why_not(session) == {
        "node does not satisfy the node group affinity": 1,
        "node group label not found": 1,
    }


@pytest.mark.parametrize(("strict", "nodes"), [(True, set()), (False, {"n5"})])
def test_a_queue_without_affinity_uses_at_most_nodes_without_a_group(strict: bool, nodes: set[str]) -> None:
    session = world().session(NodeGroup, arguments={"strict": strict})
    assert set(feasible(session)) == nodes
    assert why_not(session)["node group affinity not specified"] == 4


def test_preferred_groups_may_score_by_their_place() -> None:
    session = world(node_groups={"affinity.preferred": ("g1", "g3")}).session(NodeGroup, arguments={"enablePreferredOrder": True})
    assert feasible(session) == {"n1": 50, "n3": 25}


@pytest.mark.parametrize(("hierarchy", "nodes"), [(True, {"n1", "n3", "n4"}), (False, set())])
def test_affinity_is_inherited_from_the_nearest_ancestor_that_has_one(hierarchy: bool, nodes: set[str]) -> None:
    made = world(parent="middle").queue("middle", parent="top").queue("top", node_groups=AFFINITY)
    made.queue("root", node_groups={"affinity.required": ("g2",)})
    assert set(feasible(made.session(NodeGroup, switches={"hierarchy": hierarchy}))) == nodes


def test_the_root_is_an_ancestor_even_if_no_queue_names_it() -> None:
    session = world().queue("root", node_groups={"affinity.required": ("g2",)}).session(NodeGroup, switches={"hierarchy": True})
    assert set(feasible(session)) == {"n2"}


def test_equal_pods_of_two_queues_go_to_their_own_groups() -> None:
    made = world(node_groups={"affinity.required": ("g1",)}).queue("other", node_groups={"affinity.required": ("g2",)})
    session = made.job("k", "other").pods("k", cpu=1).session(NodeGroup)
    assert (set(feasible(session, "j")), set(feasible(session, "k"))) == ({"n1"}, {"n2"})


def limited(text: str) -> World:
    return world(node_groups={"affinity.required": ("g1", "g2")}, annotations={LIMITS: text})


def test_a_queue_fills_a_group_up_to_its_limit_on_the_named_resources() -> None:
    session = limited('{"g1": {"cpu": "2"}}').session(NodeGroup)
    assert set(feasible(session)) == {"n1", "n2"}
    place(session, "j", "n1", 2)
    assert set(feasible(session)) == {"n2"}
    assert why_not(session)["node group resource limit exceeded"] == 1


def test_only_tasks_of_the_queue_count_for_a_node_group() -> None:
    made = limited('{"g1": {"cpu": "2"}}').queue("other").job("foreign", "other").pods("foreign", 2, cpu=1, node="n1")
    assert "n1" in feasible(made.session(NodeGroup))
    made.job("own").pods("own", 2, cpu=1, node="n1")
    assert "n1" not in feasible(made.session(NodeGroup))


def test_an_undone_placement_makes_room_again() -> None:
    session = limited('{"g1": {"cpu": "1"}}').session(NodeGroup)
    job = job_of(session, "j")
    statement = session.statement()
    statement.allocate(job, job.tasks[:1], [0], session.class_of(job.tasks[0]))
    assert "n1" not in feasible(session)
    statement.discard()
    assert "n1" in feasible(session)


@pytest.mark.parametrize("text", ['{"g1": {"cpu":', '{"g1": {"cpu": "lots"}}', '["g1"]', '{"g1": 3}'])
def test_a_limit_that_cannot_be_read_refuses_every_node(text: str) -> None:
    session = limited(text).session(NodeGroup)
    assert feasible(session) == {}
    assert why_not(session)["node group resource limit annotation invalid"] == 2


def test_what_should_be_avoided_wins_over_what_must() -> None:
    assert group_allowed(AFFINITY, "g4") and not group_allowed(AFFINITY, "g2")
    assert group_score(AFFINITY, "g2") == 0


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from([None, "g1", "g3", "g4", "g0"])), min_size=1, max_size=12))
def test_groups_kept_between_cycles_follow_the_node_labels(changes: list[tuple[int, str | None]]) -> None:
    made = world(node_groups=AFFINITY)
    for node, group in changes:
        made.node(f"n{node}", {} if group is None else {LABEL: group}, cpu=4)
        session = made.session(NodeGroup)
        groups = {name: spec.labels.get(LABEL) for name, spec in zip(session.nodes.names, session.nodes.specs)}
        assert feasible(session) == {
            name: group_score(AFFINITY, group) for name, group in groups.items() if group and group_allowed(AFFINITY, group)
        }
