"""Topology domains: a tree over the node rows.

Levels of node labels (zone, block, rack) and HyperNode objects both give such a tree. A domain has a tier: nodes of a lower tier
are closer to each other. The root is one domain that holds every node. The sum of a column over each domain is one pass over its
rows (`sums`), so "does the gang fit in this rack" is a comparison. A tree is built when labels or objects change and cached in
the cluster's memo until then. Cost: bench/topology.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from navarch.model.memo import memoised
from navarch.model.resources import BoolArray, IntArray
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NodeSpec

NOWHERE = -1
"""No domain: the parent of the root, or the domain of a node outside all domains."""


class DomainTree(Struct, frozen=True, eq=False):
    names: tuple[str, ...]
    tier: IntArray
    parent: IntArray
    children: tuple[tuple[int, ...], ...]
    """In the order of their names."""
    top: int
    held: IntArray
    """Node rows of domain 0, then of domain 1, and so on, each ascending."""
    starts: IntArray
    """Where each domain's rows begin in `held`; one entry more than there are domains."""
    size: int
    """How many nodes there are."""
    tier_names: Mapping[str, int] = field(default_factory=dict)
    mistakes: tuple[str, ...] = ()
    """Invalid parts of the objects, which were left out."""
    _masks: dict[int, BoolArray] = field(default_factory=dict)
    _at_tier: dict[int, IntArray] = field(default_factory=dict)
    _around: list[IntArray] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def tiers(self) -> list[int]:
        """Every tier that some domain has, closest first; the last is the top's."""
        return sorted(set(self.tier.tolist()))

    def rows(self, domain: int) -> IntArray:
        return self.held[self.starts[domain] : self.starts[domain + 1]]

    def mask(self, domain: int) -> BoolArray:
        found = self._masks.get(domain)
        if found is None:
            found = self._masks[domain] = np.zeros(self.size, dtype=bool)
            found[self.rows(domain)] = True
        return found

    def sums(self, values: IntArray) -> IntArray:
        """For each domain, the sum over its nodes: (..., nodes) becomes (..., domains). Exact."""
        picked = values[..., self.held]
        running = np.zeros((*picked.shape[:-1], picked.shape[-1] + 1), dtype=np.int64)
        np.cumsum(picked, axis=-1, out=running[..., 1:])
        total: IntArray = running[..., self.starts[1:]] - running[..., self.starts[:-1]]
        return total

    def at_tier(self, tier: int) -> IntArray:
        """For each node, the domain of this tier that holds it (the first by name), or NOWHERE."""
        found = self._at_tier.get(tier)
        if found is None:
            found = self._at_tier[tier] = np.full(self.size, NOWHERE, dtype=np.int64)
            for domain in np.flatnonzero(self.tier == tier)[::-1].tolist():
                found[self.rows(domain)] = domain
        return found

    def around(self, row: int) -> IntArray:
        """Every domain that holds the node."""
        if not self._around:
            owners = np.repeat(np.arange(len(self)), np.diff(self.starts))[np.argsort(self.held, kind="stable")]
            counts = np.bincount(self.held, minlength=self.size)
            self._around.extend(np.split(owners, np.cumsum(counts)[:-1]))
        return self._around[row]

    def ancestors(self, domain: int) -> list[int]:
        """The domain, the one that holds it, and so on up to the top."""
        chain = []
        while domain != NOWHERE:
            chain.append(domain)
            domain = int(self.parent[domain])
        return chain

    def common(self, left: int, right: int) -> int:
        """The lowest domain above (or equal to) both; NOWHERE beside a domain changes nothing."""
        if left == NOWHERE or right == NOWHERE:
            return max(left, right)
        above = set(self.ancestors(left))
        return next((domain for domain in self.ancestors(right) if domain in above), NOWHERE)

    def common_with(self, domain: int) -> IntArray:
        """For every domain, the lowest one above (or equal to) both it and this."""
        above = np.zeros(len(self) + 1, dtype=bool)
        above[self.ancestors(domain)] = True
        meets = np.arange(len(self))
        while (outside := ~above[meets]).any():
            meets[outside] = self.parent[meets[outside]]
        return meets

    def within(self, domain: int, other: int) -> bool:
        return other in self.ancestors(domain)

    def below(self, domain: int) -> list[int]:
        """The domain and all inside it, outer before inner."""
        found = [domain]
        for each in found:
            found.extend(self.children[each])
        return found

    def holding(self, rows: Iterable[int]) -> int:
        """The domain of the lowest tier that holds all these nodes; the first by name among equals."""
        wanted = np.unique(np.fromiter(rows, dtype=np.int64))
        if not len(wanted):
            return NOWHERE
        inside = np.zeros(self.size, dtype=np.int64)
        inside[wanted] = 1
        candidates = np.flatnonzero(self.sums(inside) == len(wanted))
        return int(candidates[np.argmin(self.tier[candidates])]) if len(candidates) else NOWHERE


def tree_of(
    names: Sequence[str],
    tiers: Sequence[int],
    parents: Sequence[int],
    rows: Sequence[Iterable[int]],
    size: int,
    tier_names: Mapping[str, int] | None = None,
    mistakes: Sequence[str] = (),
) -> DomainTree:
    """A tree from its domains; the one without a parent is the top. `rows` are all nodes of a domain, not just its own."""
    children: list[list[int]] = [[] for _ in names]
    for domain in sorted(range(len(names)), key=lambda d: names[d]):
        if parents[domain] != NOWHERE:
            children[parents[domain]].append(domain)
    held = [np.unique(np.fromiter(each, dtype=np.int64)) for each in rows]
    starts = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in held], out=starts[1:])
    return DomainTree(
        names=tuple(names),
        tier=np.array(tiers, dtype=np.int64),
        parent=np.array(parents, dtype=np.int64),
        children=tuple(tuple(each) for each in children),
        top=list(parents).index(NOWHERE),
        held=np.concatenate(held) if held else np.zeros(0, dtype=np.int64),
        starts=starts,
        size=size,
        tier_names=tier_names or {},
        mistakes=tuple(mistakes),
    )


def tree_of_labels(labels: Sequence[str], nodes: Sequence[NodeSpec]) -> DomainTree:
    """Nodes with equal values of the labels, coarse to fine, lie together. Nodes that lack one are in the top alone.

    The finest level has tier 0. A domain is called by its values from the top, joined by dots; the top is called "".

    >>> tree = tree_of_labels(["zone", "rack"], [NodeSpec("a", labels={"zone": "z", "rack": "r"}), NodeSpec("b")])
    >>> tree.names, tree.tier.tolist(), tree.rows(tree.top).tolist()
    (('', 'z', 'z.r'), [2, 1, 0], [0, 1])
    """
    at: dict[tuple[str, ...], list[int]] = {(): list(range(len(nodes)))}
    for row, node in enumerate(nodes):
        values = tuple(node.labels[label] for label in labels if label in node.labels)
        if len(values) == len(labels):
            for depth in range(1, len(labels) + 1):
                at.setdefault(values[:depth], []).append(row)
    paths = sorted(at)
    number = {path: i for i, path in enumerate(paths)}
    return tree_of(
        names=[".".join(path) for path in paths],
        tiers=[len(labels) - len(path) for path in paths],
        parents=[number[path[:-1]] if path else NOWHERE for path in paths],
        rows=[at[path] for path in paths],
        size=len(nodes),
    )


def label_tree(snapshot: Snapshot, label: str) -> DomainTree:
    """The domains of one label: tier 0 has one for each value."""
    return kept_tree(snapshot, ("label", label), 0, lambda: tree_of_labels([label], snapshot.nodes.specs))


def kept_tree(snapshot: Snapshot, name: Hashable, version: Hashable, build: Callable[[], DomainTree]) -> DomainTree:
    """The tree of this name, built again only when nodes, their labels or `version` changed."""
    return memoised(snapshot, ("domains", name), (snapshot.nodes.version, version), build)
