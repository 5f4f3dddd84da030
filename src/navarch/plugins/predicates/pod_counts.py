"""How many pods of a kind stand on each node and in each domain of a topology, kept by change.

A count is built when a rule first asks for it, by one pass over columns, and then follows placements: each touches one node
and one domain of the counts that mean the placed pods. Asking is a gather over nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.node_functions import TaskClass
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, IntArray
from navarch.model.spec import Shape
from navarch.plugins.predicates.node_columns import node_columns
from navarch.plugins.predicates.placed_pods import placed_pods
from navarch.plugins.predicates.selection import Selection, selected


class DomainCount:
    """Pods by domain. Nodes outside every domain have the last code, whose count stays zero."""

    __slots__ = ("codes", "counts", "outside", "total")

    def __init__(self, codes: Rows, size: int, nodes: IntArray) -> None:
        self.codes = codes
        self.outside = size
        self.counts: IntArray = np.bincount(codes, weights=nodes, minlength=size + 1).astype(np.int64)
        self.counts[size] = 0
        self.total = int(self.counts.sum())

    def at(self, rows: Rows | slice) -> IntArray:
        """For each of these nodes the count of its domain."""
        return self.counts[self.codes[rows]]

    def inside(self, rows: Rows | slice) -> BoolArray:
        return np.not_equal(self.codes[rows], self.outside)

    def move(self, node: int, step: int) -> None:
        code = self.codes[node]
        if code != self.outside:
            self.counts[code] += step
            self.total += step


class PodCount:
    """Pods of one kind, by node and, for rules that ask so, by domain."""

    def __init__(self, session: Session, nodes: IntArray) -> None:
        self._session = session
        self.nodes = nodes
        self._domains: dict[Hashable, DomainCount] = {}

    def by(self, key: str, within: BoolArray | None = None, named: Hashable = None) -> DomainCount:
        """By the values of a node label; only nodes `within` count, if given, and `named` tells such masks apart."""
        found = self._domains.get((key, named))
        if found is None:
            column = node_columns(self._session.snapshot).label(key)
            codes = column.codes if within is None else np.where(within, column.codes, column.absent)
            found = self._domains[key, named] = DomainCount(codes, column.absent, self.nodes)
        return found

    def move(self, nodes: Sequence[int], step: int) -> None:
        for node in nodes:
            self.nodes[node] += step
            for domain in self._domains.values():
                domain.move(node, step)


class PodCounts:
    """One object a session: every count that some rule asked for."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.placed = placed_pods(session)
        self._counts: dict[Hashable, tuple[PodCount, Callable[[TaskClass], bool]]] = {}
        self._of_class: dict[int, list[PodCount]] = {}
        self.version = 0
        """Changes whenever a count does."""
        self._changing = False
        """Some counts follow trials only."""
        self._without_leaving: list[tuple[PodCount, Callable[[TaskClass], bool]]] = []
        self.placed.listen(self._moved)
        self.placed.listen_to_leaving(self._leaves)

    def _leaves(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        self.version += 1
        for count, means in self._without_leaving:
            if means(task):
                count.move(nodes, step)

    def selected(self, selections: tuple[Selection, ...], *, leaving: bool = True) -> PodCount:
        """Pods that all the selections mean. `leaving` False: those whose deletion had been asked for are left out."""
        snapshot = self.session.snapshot

        def means(task: TaskClass) -> bool:
            return all(selected(snapshot, each)[task.labels] for each in selections)

        def rows() -> BoolArray:
            flags = selected(snapshot, selections[0])
            for each in selections[1:]:
                flags = flags & selected(snapshot, each)
            found: BoolArray = flags[snapshot.tasks.labels]
            return found if leaving else found & ~self.placed.leaving

        known = (selections, leaving) in self._counts
        found = self._count((selections, leaving), means, rows)
        if not leaving and not known:
            self._without_leaving.append((found, means))
        return found

    def imagined_in(self, namespace: str) -> PodCount:
        """Pods that a trial moves in a namespace, and no others: what a selector that selects nobody still follows."""
        key = ("imagined", namespace)
        if key not in self._counts:
            found = PodCount(self.session, np.zeros(len(self.session.nodes), dtype=np.int64))
            self._counts[key] = found, lambda task: self.placed.journal is not None and task.namespace == namespace
            self._of_class.clear()
            self._changing = True
            for task, nodes, step in self.placed.moved_in_trial:
                if task.namespace == namespace:
                    found.move(nodes, step)
        return self._counts[key][0]

    def carrying(self, key: Hashable, has: Callable[[Shape], bool]) -> PodCount:
        """Pods whose shape has something; `key` names what."""

        def rows() -> BoolArray:
            flags = np.array([has(shape) for shape in self.session.snapshot.shapes], dtype=bool)
            found: BoolArray = flags[self.session.shape]
            return found

        return self._count(("carrying", key), lambda task: has(task.shape), rows)

    def _count(self, key: Hashable, means: Callable[[TaskClass], bool], rows: Callable[[], BoolArray]) -> PodCount:
        found = self._counts.get(key)
        if found is None:
            where = self.placed.where
            there = where[(where >= 0) & rows()]
            nodes = np.bincount(there, minlength=len(self.session.nodes)).astype(np.int64)
            found = self._counts[key] = PodCount(self.session, nodes), means
            self._of_class.clear()
        return found[0]

    def _moved(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        number = task.number if self.placed.journal is None or not self._changing else -1 - task.number
        counts = self._of_class.get(number)
        if counts is None:
            counts = self._of_class[number] = [count for count, means in self._counts.values() if means(task)]
        if counts:
            self.version += 1
            for count in counts:
                count.move(nodes, step)


def pod_counts(session: Session) -> PodCounts:
    return session.shared(PodCounts)
