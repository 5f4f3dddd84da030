"""Topology: node sets by levels of labels, the tightest domain that holds the pods first."""

from __future__ import annotations

import numpy as np
from tests.worlds.plugin_session import World, job_of

from navarch.engine.points.gang_protocols import NodeSet, NoNodeSet
from navarch.engine.session import Session
from navarch.model.objects.topologies import LevelSpec, TopologySpec
from navarch.model.spec import TopologyDemand
from navarch.plugins.kai.topology import SCORE, Topology

LEVELS = (LevelSpec("zone", "z"), LevelSpec("rack"))


def world(demand: TopologyDemand, pods: int = 2, cpu: int = 4) -> World:
    """Racks r0 and r1 of two nodes in zone east, r2 in zone west; n0 and n2 are half taken; n6 has no rack."""
    made = World().queue("q")
    made.cluster.put_object("Topology", "", "net", TopologySpec("net", LEVELS))
    for i in range(6):
        made.node(f"n{i}", {"zone": "east" if i < 4 else "west", "rack": f"r{i // 2}"}, cpu=4)
    made.node("n6", {"zone": "west"}, cpu=64)
    made.job("old").pods("old", 1, "n0", cpu=2).pods("old", 1, "n2", cpu=1)
    return made.job("new", topology=demand, min_member=pods).pods("new", pods, cpu=cpu)


def sets(session: Session, job: str = "new", nodes: str = "") -> list[NodeSet] | NoNodeSet:
    found = job_of(session, job)
    tasks = [task for task in found.tasks if session.node[task] < 0]
    at_hand = np.array([not nodes or name in nodes.split() for name in session.nodes.names])
    (plugin,) = [p for p in session.plugins if isinstance(p, Topology)]
    answer = plugin.node_sets(found, found.tree.root, tasks, at_hand)
    return answer if isinstance(answer, NoNodeSet) else list(answer)


def shown(session: Session, found: list[NodeSet] | NoNodeSet) -> list[str]:
    assert not isinstance(found, NoNodeSet), found
    return [" ".join(np.array(session.nodes.names)[each.nodes]) for each in found]


def asked(demand: TopologyDemand, pods: int = 2, cpu: int = 4, nodes: str = "") -> list[str]:
    session = world(demand, pods, cpu).session(Topology)
    return shown(session, sets(session, nodes=nodes))


def test_a_required_level_offers_its_domains_tightest_first() -> None:
    assert asked(TopologyDemand("net", required="rack"), 2, 1) == ["n4 n5", "n0 n1", "n2 n3"], "the tighter zone, then its racks"
    assert asked(TopologyDemand("net", required="rack"), 2, 4) == ["n4 n5"], "only there are two whole nodes"


def test_a_preferred_level_comes_before_coarser_ones() -> None:
    both = TopologyDemand("net", required="z", preferred="rack")
    assert asked(both, 2, 3) == ["n4 n5", "n2 n3", "n4 n5", "n0 n1 n2 n3"], "zone west is as large as its only rack"
    alone = TopologyDemand("net", preferred="rack")
    assert asked(alone, 2, 4) == ["n4 n5", "n4 n5", "n0 n1 n2 n3", "n0 n1 n2 n3 n4 n5"]


def test_domains_of_the_preferred_level_are_scored_the_roomiest_highest() -> None:
    session = world(TopologyDemand("net", preferred="rack"), 6, 1).session(Topology)
    found = sets(session)
    assert not isinstance(found, NoNodeSet)
    scores = found[-1].scores
    assert scores is not None
    by_node = dict(zip(session.nodes.names, (scores / SCORE).tolist()))
    assert [by_node[name] for name in ("n4", "n0", "n2")] == [3.0, 6.0, 10.0], "west is tighter than east, so it comes first"
    assert np.isnan(by_node["n6"]), "a node outside the topology is not used"


def test_pods_that_run_tie_the_part_to_their_domain() -> None:
    made = world(TopologyDemand("net", required="rack"), 1, 1).pods("new", 1, "n3", cpu=1)
    session = made.session(Topology)
    assert shown(session, sets(session)) == ["n2 n3"]


def test_the_nodes_at_hand_bound_the_search() -> None:
    assert asked(TopologyDemand("net", required="rack"), 1, 4, nodes="n0 n1 n6") == ["n0 n1"]
    assert asked(TopologyDemand("net", required="rack"), 1, 4, nodes="n6 n1") == ["n1"], "n6 carries no rack"


def test_pods_that_differ_are_compared_by_their_sum() -> None:
    made = world(TopologyDemand("net", required="rack"), 1, 4).node("big", {"zone": "west", "rack": "r9"}, cpu=8, gpu=1)
    session = made.pods("new", 1, cpu=4, gpu=1).session(Topology)
    assert shown(session, sets(session)) == ["big"]


def test_a_missing_topology_is_a_reason() -> None:
    for demand, code in (
        (TopologyDemand("other", required="rack"), "TopologyNotFound"),
        (TopologyDemand("net", required="row"), "TopologyLevelNotFound"),
        (TopologyDemand("net"), "TopologyLevelNotFound"),
    ):
        found = sets(world(demand).session(Topology))
        assert isinstance(found, NoNodeSet)
        assert found.reasons[0].code == code


def said(demand: TopologyDemand, pods: int, cpu: int, nodes: str = "") -> list[str]:
    found = sets(world(demand, pods, cpu).session(Topology), nodes=nodes)
    assert isinstance(found, NoNodeSet)
    assert all(reason.undone_by for reason in found.reasons)
    return [reason.message for reason in found.reasons]


def test_a_job_without_room_names_the_domains_that_are_too_small() -> None:
    whole = "topology net, requirement rack couldn't be satisfied for job <ns/new>"
    rack = TopologyDemand("net", required="rack")
    assert said(rack, 3, 4) == [
        whole,
        "node-group west.r2 can allocate only 2 of 3 required pods",
        "node-group east.r0 can allocate only 1 of 3 required pods",
        "node-group east.r1 can allocate only 1 of 3 required pods",
    ]
    assert said(rack, 9, 4) == [f"{whole}: not enough resources in the cluster to allocate the job"]
    assert said(rack, 1, 1, nodes="n6") == [f"{whole}: no node at hand carries all labels of the topology"]


def test_a_part_without_a_demand_keeps_its_nodes() -> None:
    session = world(TopologyDemand("net", required="rack")).session(Topology)
    assert shown(session, sets(session, "old")) == ["n0 n1 n2 n3 n4 n5 n6"]
