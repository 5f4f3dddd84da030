"""Counts of matching pods on each node and in each topology domain, updated by changes.

A count is built when a rule first asks for it, and then follows placements. Each placement touches one node and one domain of the
counts that match the placed pods; counts are indexed by the identities and shapes they match. So the cost of a count does not grow
with the number of other counts. Reading is a gather over nodes. Cost: bench/predicates, `own label`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.node_functions import TaskClass
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, IntArray, RowArray
from navarch.plugins.predicates.nodes.properties import node_properties
from navarch.plugins.predicates.pods.placed_pods import placed_pods
from navarch.plugins.predicates.pods.selection import Selection, identities_meant
from navarch.plugins.predicates.pods.terms import CarriedTerm


class DomainCount:
    """Pods by domain. Nodes outside every domain have the last code, whose count stays zero."""

    __slots__ = ("codes", "counted", "counts", "outside", "total")

    def __init__(self, codes: Rows, size: int, pods: dict[int, int], counted: BoolArray | None = None) -> None:
        """`counted`: the nodes whose pods count; all of them if None. Every node reads the count of its domain."""
        self.codes = codes
        self.outside = size
        self.counted = counted
        self.counts: IntArray = np.zeros(size + 1, dtype=np.int64)
        if counted is not None:
            pods = {node: number for node, number in pods.items() if counted[node]}
        np.add.at(self.counts, codes[list(pods)], list(pods.values()))
        self.counts[size] = 0
        self.total = int(self.counts.sum())

    def at(self, rows: Rows | slice) -> IntArray:
        """For each of these nodes the count of its domain."""
        return self.counts[self.codes[rows]]

    def inside(self, rows: Rows | slice) -> BoolArray:
        return np.not_equal(self.codes[rows], self.outside)

    def move(self, node: int, step: int) -> None:
        code = self.codes[node]
        if code != self.outside and (self.counted is None or self.counted[node]):
            self.counts[code] += step
            self.total += step


class PodCount:
    """Pods of one kind, by node and, for rules that ask so, by domain."""

    def __init__(self, session: Session, where: RowArray, *, leaving: bool = True) -> None:
        self._session = session
        numbers = np.bincount(where, minlength=1)
        there = np.flatnonzero(numbers)
        self._pods: dict[int, int] = dict(zip(there.tolist(), numbers[there].tolist()))
        """Node -> pods: a job's own pods stand on few nodes."""
        self._nodes: IntArray | None = None
        self._domains: dict[Hashable, DomainCount] = {}
        self.leaving = leaving
        """Whether pods count whose deletion had been asked for."""

    @property
    def nodes(self) -> IntArray:
        """By node, as a column."""
        if self._nodes is None:
            self._nodes = np.zeros(len(self._session.nodes), dtype=np.int64)
            self._nodes[list(self._pods)] = list(self._pods.values())
        return self._nodes

    def by(
        self, key: str, within: BoolArray | None = None, named: Hashable = None, *, counted: BoolArray | None = None
    ) -> DomainCount:
        """By the values of a node label. Nodes outside `within` are in no domain; only pods on nodes `counted` count. `named` tells
        such masks apart."""
        found = self._domains.get((key, named))
        if found is None:
            column = node_properties(self._session.snapshot).label(key)
            codes = column.codes if within is None else np.where(within, column.codes, column.absent)
            found = self._domains[key, named] = DomainCount(codes, column.absent, self._pods, counted)
        return found

    def move(self, nodes: Sequence[int], step: int) -> None:
        for node in nodes:
            self._pods[node] = self._pods.get(node, 0) + step
            if self._nodes is not None:
                self._nodes[node] += step
            for domain in self._domains.values():
                domain.move(node, step)


class PodCounts:
    """One object a session: every count that some rule asked for."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.placed = placed_pods(session)
        self._selected: dict[tuple[tuple[Selection, ...], bool], PodCount] = {}
        self._carrying: dict[CarriedTerm, PodCount] = {}
        self._imagined: dict[str, PodCount] = {}
        self._of_identity: dict[int, list[PodCount]] = {}
        self._of_shape: dict[int, list[PodCount]] = {}
        self.version = 0
        """Changes whenever a count does."""
        self.placed.listen(self._moved)
        self.placed.listen_to_leaving(self._leaves)

    def selected(self, selections: tuple[Selection, ...], *, leaving: bool = True) -> PodCount:
        """Pods that all the selections mean. `leaving` False: those whose deletion had been asked for are left out."""
        found = self._selected.get((selections, leaving))
        if found is None:
            snapshot, placed = self.session.snapshot, self.placed
            identities = identities_meant(snapshot, selections[0])
            for each in selections[1:]:
                identities = [number for number in identities if each.means(snapshot, number)]
            rows = placed.rows_of_identities(identities)
            found = self._count(rows if leaving else rows[~placed.leaving[rows]], leaving=leaving)
            if not leaving:
                self._catch_up(found, frozenset(identities))
            self._selected[selections, leaving] = found
            for number in identities:
                self._of_identity.setdefault(number, []).append(found)
        return found

    def _catch_up(self, count: PodCount, identities: frozenset[int]) -> None:
        """A pod that was leaving when a trial took it away had not been counted; the trial moves the count all the same."""
        for task, rows, nodes, step in self.placed.moved_in_trial:
            if task.labels in identities:
                count.move([node for row, node in zip(rows, nodes) if self.placed.leaving[row]], step)

    def carrying(self, carried: CarriedTerm) -> PodCount:
        """Pods that carry a term."""
        found = self._carrying.get(carried)
        if found is None:
            found = self._carrying[carried] = self._count(self.placed.rows_of_shapes(carried.shapes))
            for number in carried.shapes:
                self._of_shape.setdefault(number, []).append(found)
        return found

    def imagined_in(self, namespace: str) -> PodCount:
        """Pods that a trial moves in a namespace, and no others: a selector that selects no pod still follows these."""
        found = self._imagined.get(namespace)
        if found is None:
            found = self._imagined[namespace] = PodCount(self.session, np.zeros(0, dtype=np.int32))
            for task, _, nodes, step in self.placed.moved_in_trial:
                if task.namespace == namespace:
                    found.move(nodes, step)
        return found

    def _count(self, rows: Rows, *, leaving: bool = True) -> PodCount:
        where = self.placed.where[rows]
        return PodCount(self.session, where[where >= 0], leaving=leaving)

    def _moved(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        counts = [*self._of_identity.get(task.labels, ()), *self._of_shape.get(task.shape_number, ())]
        if self._imagined and self.placed.journal is not None and task.namespace in self._imagined:
            counts.append(self._imagined[task.namespace])
        if counts:
            self.version += 1
            for count in counts:
                count.move(nodes, step)

    def _leaves(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        self.version += 1
        for count in self._of_identity.get(task.labels, ()):
            if not count.leaving:
                count.move(nodes, step)


def pod_counts(session: Session) -> PodCounts:
    return session.shared(PodCounts)
