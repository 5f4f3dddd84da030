"""The tree of domains that HyperNode objects describe.

Members are given by name, by pattern or by labels. Each has one parent. A second parent, a missing member and a cycle of members
are errors, which are reported and left out; the rest of the tree stays. The root is one domain with every node, a tier above all
others, so that a demand which no HyperNode fits differs from one that may spread over the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from navarch.engine.topology.domains import NOWHERE, DomainTree, kept_tree, tree_of
from navarch.model.objects.topologies import HyperNodeSpec
from navarch.model.patterns import compile_pattern
from navarch.model.selectors import selector_matches
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NodeSpec, TopologyDemand

TOP = "<cluster-top-hypernode>"


def hyper_tree(snapshot: Snapshot) -> DomainTree:
    """The cluster's tree, kept while nodes and HyperNodes stay as they are."""

    def build() -> DomainTree:
        found = snapshot.objects.get("HyperNode", {})
        return tree_of_hyper_nodes({name: spec for (_, name), spec in found.items()}, snapshot.nodes.specs)

    return kept_tree(snapshot, "HyperNode", snapshot.versions.get("HyperNode", 0), build)


def tree_of_hyper_nodes(specs: Mapping[str, HyperNodeSpec], nodes: Sequence[NodeSpec]) -> DomainTree:
    names = sorted(specs)
    number = {name: i for i, name in enumerate(names)}
    row_of = {node.name: row for row, node in enumerate(nodes)}
    mistakes: list[str] = []
    own = [_own_rows(specs[name], nodes, row_of) for name in names]
    parents = _parents(specs, names, number, mistakes)
    depth = [_depth(parents, i) for i in range(len(names))]
    rows = [set(each) for each in own]
    for i in sorted(range(len(names)), key=lambda i: -depth[i]):
        if parents[i] != NOWHERE:
            rows[parents[i]] |= rows[i]
    tiers = [specs[name].tier for name in names]
    top = len(names)
    return tree_of(
        names=[*names, TOP],
        tiers=[*tiers, max((tier + 1 for tier in tiers if tier >= 1), default=1)],
        parents=[*(top if parent == NOWHERE else parent for parent in parents), NOWHERE],
        rows=[*rows, range(len(nodes))],
        size=len(nodes),
        tier_names=_tier_names(specs, names, mistakes),
        mistakes=mistakes,
    )


def _own_rows(spec: HyperNodeSpec, nodes: Sequence[NodeSpec], row_of: Mapping[str, int]) -> list[int]:
    found: list[int] = []
    for member in spec.members:
        if not member.nodes:
            continue
        if member.name and member.name in row_of:
            found.append(row_of[member.name])
        if member.pattern is not None:
            pattern = compile_pattern(member.pattern)
            found += [row for row, node in enumerate(nodes) if pattern.search(node.name)]
        if member.selector is not None:
            found += [row for row, node in enumerate(nodes) if selector_matches(member.selector, node.labels)]
    return found


def _parents(specs: Mapping[str, HyperNodeSpec], names: Sequence[str], number: Mapping[str, int], mistakes: list[str]) -> list[int]:
    parents = [NOWHERE] * len(names)
    for i, name in enumerate(names):
        for member in specs[name].members:
            if member.nodes or not member.name:
                continue
            child = number.get(member.name)
            if child is None:
                mistakes.append(f"HyperNode {name}: its member {member.name} does not exist")
            elif parents[child] not in (NOWHERE, i):
                other = names[parents[child]]
                mistakes.append(f"HyperNode {name}: its member {member.name} already belongs to {other}")
            elif _is_above(parents, child, i):
                mistakes.append(f"HyperNode {name}: its member {member.name} holds it in turn")
            else:
                parents[child] = i
    return parents


def _is_above(parents: Sequence[int], upper: int, lower: int) -> bool:
    while lower not in (NOWHERE, upper):
        lower = parents[lower]
    return lower == upper


def _depth(parents: Sequence[int], domain: int) -> int:
    depth = 0
    while parents[domain] != NOWHERE:
        domain, depth = parents[domain], depth + 1
    return depth


def _tier_names(specs: Mapping[str, HyperNodeSpec], names: Sequence[str], mistakes: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        spec = specs[name]
        if spec.tier_name and found.setdefault(spec.tier_name, spec.tier) != spec.tier:
            known = found[spec.tier_name]
            mistakes.append(f"HyperNode {name}: tier {spec.tier} is called {spec.tier_name}, which is tier {known} elsewhere")
    return found


def bound_of(tree: DomainTree, demand: TopologyDemand | None) -> int | None:
    """The highest tier that a demand allows; None where it sets no bound.

    A soft demand allows every tier but tries low tiers first, as a hard demand with the root's tier does."""
    if demand is None or not demand.is_of_hyper_nodes:
        return None
    if not demand.hard:
        return int(tree.tier[tree.top])
    if demand.highest_tier is not None:
        return demand.highest_tier
    return tree.tier_names.get(demand.tier_name)
