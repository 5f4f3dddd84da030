"""The tree of domains: the same whether labels or HyperNodes describe it, and built once while they stay."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from navarch.engine.topology.domains import NOWHERE, DomainTree, kept_tree, tree_of_labels
from navarch.engine.topology.hyper_nodes import TOP, bound_of, hyper_tree, tree_of_hyper_nodes
from navarch.model.cluster import Cluster
from navarch.model.objects.topologies import HyperNodeSpec, MemberSpec
from navarch.model.resources import requests_from
from navarch.model.spec import LabelSelector, NodeSpec, Requirement, TopologyDemand

NODES = [
    NodeSpec(f"n{i}", labels={"zone": f"z{i // 4}", "rack": f"r{i // 2 % 2}", "kubernetes.io/hostname": f"n{i}"}) for i in range(8)
]


def hyper_node(name: str, tier: int, *members: str, tier_name: str = "") -> HyperNodeSpec:
    """Members that begin with n are nodes."""
    specs = tuple(MemberSpec(member.startswith("n"), member) for member in members)
    return HyperNodeSpec(name, tier, tier_name, specs)


def specs(*found: HyperNodeSpec) -> dict[str, HyperNodeSpec]:
    return {spec.name: spec for spec in found}


TWO_ZONES = specs(
    hyper_node("a", 1, "n0", "n1"),
    hyper_node("b", 1, "n2", "n3"),
    hyper_node("c", 1, "n4", "n5"),
    hyper_node("d", 1, "n6", "n7"),
    hyper_node("west", 2, "a", "b", tier_name="block"),
    hyper_node("east", 2, "c", "d", tier_name="block"),
)


def number(tree: DomainTree, name: str) -> int:
    return tree.names.index(name)


def rows_by_name(tree: DomainTree) -> dict[str, list[int]]:
    return {name: tree.rows(i).tolist() for i, name in enumerate(tree.names)}


def test_labels_make_a_tree_from_coarse_to_fine() -> None:
    tree = tree_of_labels(["zone", "rack"], [*NODES, NodeSpec("bare", labels={"zone": "z0"})])
    assert rows_by_name(tree) == {
        "": list(range(9)),
        "z0": [0, 1, 2, 3],
        "z0.r0": [0, 1],
        "z0.r1": [2, 3],
        "z1": [4, 5, 6, 7],
        "z1.r0": [4, 5],
        "z1.r1": [6, 7],
    }
    assert tree.at_tier(0).tolist()[-1] == NOWHERE, "a node that lacks a label is in no domain but the top"


def test_hyper_nodes_make_a_tree_below_one_top() -> None:
    tree = tree_of_hyper_nodes(TWO_ZONES, NODES)
    assert tree.tiers == [1, 2, 3]
    assert tree.names[tree.top] == TOP
    assert [tree.names[d] for d in tree.children[tree.top]] == ["east", "west"]
    assert rows_by_name(tree)["west"] == [0, 1, 2, 3]
    assert tree.names[tree.common(number(tree, "a"), number(tree, "b"))] == "west"
    assert tree.names[tree.common(number(tree, "a"), number(tree, "d"))] == TOP
    assert tree.common(NOWHERE, number(tree, "a")) == number(tree, "a")
    assert tree.names[tree.holding([0, 1])] == "a"
    assert tree.names[tree.holding([1, 2])] == "west"
    assert [tree.names[d] for d in tree.around(5).tolist()] == ["c", "east", TOP]
    assert not tree.mistakes


def test_members_are_found_by_name_pattern_and_labels() -> None:
    selector = LabelSelector((Requirement("zone", "In", ("z1",)),))
    found = specs(
        HyperNodeSpec("named", 1, "", (MemberSpec(name="n3"), MemberSpec(name="gone"))),
        HyperNodeSpec("numbered", 1, "", (MemberSpec(pattern="[01]$"),)),
        HyperNodeSpec("labelled", 1, "", (MemberSpec(selector=selector),)),
    )
    rows = rows_by_name(tree_of_hyper_nodes(found, NODES))
    assert (rows["named"], rows["numbered"], rows["labelled"]) == ([3], [0, 1], [4, 5, 6, 7])


def test_impossible_domains_are_reported_and_left_out() -> None:
    ring = specs(hyper_node("a", 1, "b", "n0"), hyper_node("b", 2, "a", "n1"), hyper_node("c", 3, "a", "x"))
    tree = tree_of_hyper_nodes(ring, NODES)
    assert tree.mistakes == (
        "HyperNode b: its member a holds it in turn",
        "HyperNode c: its member x does not exist",
    )
    assert rows_by_name(tree)["a"] == [0, 1]
    second = tree_of_hyper_nodes(TWO_ZONES | specs(hyper_node("zest", 3, "west", "a")), NODES)
    assert second.mistakes == ("HyperNode zest: its member a already belongs to west",)
    assert rows_by_name(second)["zest"] == [0, 1, 2, 3]
    clash = TWO_ZONES | specs(hyper_node("f", 4, tier_name="block"))
    assert "tier 4 is called block" in tree_of_hyper_nodes(clash, NODES).mistakes[0]


def test_a_demand_bounds_the_tier_of_its_domain() -> None:
    tree = tree_of_hyper_nodes(TWO_ZONES, NODES)
    assert bound_of(tree, None) is None
    assert bound_of(tree, TopologyDemand(highest_tier=2)) == 2
    assert bound_of(tree, TopologyDemand(tier_name="block")) == 2
    assert bound_of(tree, TopologyDemand(tier_name="galaxy")) is None
    assert bound_of(tree, TopologyDemand(hard=False, highest_tier=1)) == 3
    assert bound_of(tree, TopologyDemand(topology="labels", required="rack")) is None


def test_a_tree_is_built_again_only_when_something_changed() -> None:
    cluster = Cluster()
    for node in NODES:
        cluster.put_node(node)
    for name, spec in TWO_ZONES.items():
        cluster.put_object("HyperNode", "", name, spec)
    first = hyper_tree(cluster.snapshot())
    cluster.put_node(NodeSpec("n0", allocatable=requests_from({"cpu": 1}), labels=NODES[0].labels))
    assert hyper_tree(cluster.snapshot()) is first, "figures of a node are not part of the tree"
    cluster.put_object("HyperNode", "", "a", hyper_node("a", 1, "n0"))
    second = hyper_tree(cluster.snapshot())
    assert second is not first
    cluster.put_node(NodeSpec("n8"))
    assert hyper_tree(cluster.snapshot()).size == 9
    labels = cluster.snapshot()
    tree = kept_tree(labels, "mine", 0, lambda: tree_of_labels(["zone"], labels.nodes.specs))
    assert kept_tree(labels, "mine", 0, lambda: tree_of_labels(["rack"], labels.nodes.specs)) is tree


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30), st.data())
def test_sums_and_common_domains_agree_with_plain_python(places: list[tuple[int, int]], data: st.DataObject) -> None:
    nodes = [NodeSpec(f"n{i}", labels={"zone": str(z), "rack": str(r)}) for i, (z, r) in enumerate(places)]
    tree = tree_of_labels(["zone", "rack"], nodes)
    values = np.array(data.draw(st.lists(st.integers(-(2**60), 2**60), min_size=len(nodes), max_size=len(nodes))))
    assert tree.sums(values).tolist() == [sum(int(values[r]) for r in tree.rows(d).tolist()) for d in range(len(tree))]
    domain = data.draw(st.integers(0, len(tree) - 1))
    assert tree.common_with(domain).tolist() == [tree.common(other, domain) for other in range(len(tree))]
    for other in range(len(tree)):
        common = tree.common(domain, other)
        assert set(tree.rows(domain).tolist()) | set(tree.rows(other).tolist()) <= set(tree.rows(common).tolist())
