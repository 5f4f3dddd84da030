"""The search for victims over all nodes at once, where only resources decide.

The requests of all less important pods are removed in one sum for each node. Then, in step k, the k-th most important pod of every
node is added back where the pod still fits. So a search over a thousand nodes costs a few array operations for each step, and
there are as many steps as pods on the fullest node. Cost: bench/predicates, "preemption".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.engine.figures import Figures, Rows, SelectedFigures
from navarch.engine.node_functions import NodeFilter, Scope, TaskClass
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.model.status import ON_NODE

OFFSET = 1 << 31
"""Added to each priority before they are summed, so that more victims always weigh more."""


class Reprieve:
    def __init__(self, session: Session) -> None:
        self.session = session
        self._ranks: tuple[IntArray, FloatArray] | None = None
        self._known: Rows = np.zeros(0, dtype=np.intp)

    def applies(self, task: TaskClass) -> bool:
        """Whether every filter that applies to the class reads only figures or labels."""
        return all(f.figures_only for f in self.session.filters_for(task) if f.scope is not Scope.STATIC)

    def _order(self) -> tuple[IntArray, FloatArray]:
        """Priority and start of every task; and all tasks on nodes, by node and importance. Computed once a cycle."""
        if self._ranks is None:
            session, tasks = self.session, self.session.snapshot.tasks
            priority, started = tasks.pod_priority, np.where(np.isinf(tasks.started), session.now, tasks.started)
            there = np.flatnonzero(tasks.alive & (session.node >= 0))
            columns = started[there], -priority[there], session.node[there]
            order = np.lexsort(columns)
            equal = np.logical_and.reduce([column[order][1:] == column[order][:-1] for column in columns])
            self._ranks, self._known = (priority, started), there[order]
            self._settle(equal)
        return self._ranks

    def _settle(self, equal: BoolArray) -> None:
        """Order pods of one node with equal priority and start by name. `equal`: equal to the next."""
        borders = np.flatnonzero(np.diff(equal, prepend=False, append=False))
        for first, last in zip(borders[::2].tolist(), borders[1::2].tolist(), strict=True):
            tied = self._known[first : last + 1]
            tied[:] = sorted(tied.tolist(), key=lambda row: self.session.task(row).key)

    def outranks_anyone(self, priority: int) -> bool:
        """Whether any pod on any node is less important."""
        tasks = self.session.snapshot.tasks
        return bool((tasks.pod_priority[tasks.alive & (self.session.node >= 0)] < priority).any())

    def run(self, row: int, nodes: Sequence[int], expected: IntArray | None = None) -> VictimSearch:
        """Results for these nodes, except those that labels or taints exclude.

        `expected`, by node, counts as used already; if resources suffice with it, they suffice without it."""
        session = self.session
        task, own = session.class_of(row), session.task(row).pod_priority
        priority, started = self._order()
        wanted = np.array(nodes, dtype=np.intp)
        wanted = wanted[session.view(task).static[wanted]]
        chosen = np.zeros(len(session.nodes), dtype=bool)
        chosen[wanted] = True
        known = self._known
        lesser = known[(priority[known] < own) & chosen[session.node[known]] & ON_NODE[session.status[known]]]
        where = session.node[lesser].astype(np.intp)
        occupied = where[np.flatnonzero(np.diff(where, prepend=-1))]
        empty = np.setdiff1d(wanted, occupied, assume_unique=True)
        search = VictimSearch(occupied, empty, lesser, priority[lesser], started[lesser], np.searchsorted(occupied, where))
        if len(occupied):
            self._search(task, search, expected)
        return search

    def _search(self, task: TaskClass, search: VictimSearch, expected: IntArray | None) -> None:
        session, nodes, lesser, place = self.session, search.nodes, search.lesser, search.place
        filters = [f for f in session.filters_for(task) if f.scope is not Scope.STATIC]
        requests = session.snapshot.shape_request[:, session.shape[lesser]]
        gone = np.zeros((requests.shape[0], len(nodes)), dtype=np.int64)
        for resource in np.flatnonzero(requests.any(axis=1)).tolist():
            gone[resource] = np.bincount(place, weights=requests[resource], minlength=len(nodes)).astype(np.int64)
        if expected is not None:
            gone -= expected[:, nodes]
        emptied = SelectedFigures(session.nodes, nodes, {"requested": -gone}, None)
        fits = search.fits = _passes(filters, task, emptied)
        victims = search.victims
        start = search.start
        for step in range(int(np.max(start[1:] - start[:-1]))):
            turn = np.flatnonzero(fits & (start[:-1] + step < start[1:]))
            if not len(turn):
                continue
            candidates = start[turn] + step
            back = gone[:, turn] - requests[:, candidates]
            stays = _passes(filters, task, SelectedFigures(session.nodes, nodes[turn], {"requested": -back}, None))
            gone[:, turn[stays]] = back[:, stays]
            victims[candidates[stays]] = False
        if not fits.all():
            search.texts = [(text, refused & ~fits) for text, refused in _texts(filters, task, emptied)]


class VictimSearch:
    """The result of a search: `nodes` have possible victims, `empty` ones have none."""

    def __init__(self, nodes: Rows, empty: Rows, lesser: Rows, priority: IntArray, started: FloatArray, place: Rows) -> None:
        self.nodes = nodes
        self.empty = empty
        self.lesser = lesser
        """Possible victims, node by node, the most important first; `place` numbers their nodes."""
        self.priority = priority
        self.started = started
        self.place = place
        self.start: Rows = np.searchsorted(place, np.arange(len(nodes) + 1))
        self.fits: BoolArray = np.zeros(len(nodes), dtype=bool)
        """Whether the pod fits once all less important pods are gone."""
        self.victims: BoolArray = np.ones(len(lesser), dtype=bool)
        self.texts: list[tuple[str, BoolArray]] = []
        """Reasons of the nodes where it does not fit even then."""

    def victims_on(self, number: int) -> tuple[int, ...]:
        mine = slice(int(self.start[number]), int(self.start[number + 1]))
        found: list[int] = self.lesser[mine][self.victims[mine]].tolist()
        return tuple(found)

    def candidates(self) -> Rows:
        """Numbers of the nodes that an eviction can open, in node order."""
        if not len(self.nodes):
            return self.nodes
        return np.flatnonzero(self.fits & (np.add.reduceat(self.victims, self.start[:-1]) > 0))

    def unneeded(self) -> list[int]:
        """Nodes where no victim is needed: the pod was refused for a reason that an eviction does not change."""
        if not len(self.nodes):
            return []
        found: list[int] = self.nodes[self.fits & (np.add.reduceat(self.victims, self.start[:-1]) == 0)].tolist()
        return found

    def best(self, candidates: Rows) -> int:
        """Of these, the number of the node whose victims cost least."""
        first, victims, priority = self.start[:-1], self.victims, self.priority
        lowest = np.iinfo(np.int64).min
        highest = np.maximum.reduceat(np.where(victims, priority, lowest), first)
        total = np.add.reduceat(np.where(victims, priority + OFFSET, 0), first)
        count = np.add.reduceat(victims.astype(np.int64), first)
        top = victims & (priority == highest[self.place])
        started = np.minimum.reduceat(np.where(top, self.started, np.inf), first)
        c = candidates
        order = np.lexsort((self.nodes[c], -started[c], count[c], total[c], highest[c]))
        return int(c[order[0]])


def _passes(filters: Sequence[NodeFilter], task: TaskClass, at: Figures) -> BoolArray:
    out: BoolArray = np.ones(at.requested.shape[1], dtype=bool)
    for f in filters:
        out &= f.mask(task, at)
    return out


def _texts(filters: Sequence[NodeFilter], task: TaskClass, at: Figures) -> list[tuple[str, BoolArray]]:
    """Each reason with its nodes; the first filter that refuses a node gives its reason."""
    out = []
    open_: BoolArray = np.ones(at.requested.shape[1], dtype=bool)
    for f in filters:
        said = list(f.explain(task, at))
        out += [(refusal.message, refusal.refused & open_) for refusal in said]
        for refusal in said:
            open_ = open_ & ~refusal.refused
    return out
