"""Who can stay, on all nodes at once: the search for victims where nothing but resources decides.

All that less important pods hold is taken off in one sum a node. Then, in step k, the k-th most important of every node comes
back wherever the pod would still fit. So a search over a thousand nodes costs a few array operations for each step, and there are
as many steps as pods on the fullest node. Cost: bench/predicates, "preemption".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.engine.figures import Figures, Rows, Selected
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
        """Whether every filter that concerns the class reads nothing but figures, labels aside."""
        return all(f.figures_only for f in self.session.filters_for(task) if f.scope is not Scope.STATIC)

    def _order(self) -> tuple[IntArray, FloatArray]:
        """Of every task priority and start; and all that stood on nodes, node by node and by importance. Once a cycle."""
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
        """Pods of one node that are as important and began together (`equal`: as the next) stand by their names."""
        borders = np.flatnonzero(np.diff(equal, prepend=False, append=False))
        for first, last in zip(borders[::2].tolist(), borders[1::2].tolist(), strict=True):
            tied = self._known[first : last + 1]
            tied[:] = sorted(tied.tolist(), key=lambda row: self.session.task(row).key)

    def outranks_anyone(self, priority: int) -> bool:
        """Whether any pod on any node is less important."""
        tasks = self.session.snapshot.tasks
        return bool((tasks.pod_priority[tasks.alive & (self.session.node >= 0)] < priority).any())

    def run(self, row: int, nodes: Sequence[int], expected: IntArray | None = None) -> Searched:
        """Answers for these nodes, except for those whose labels or taints alone refuse the pod.

        `expected`, by node, counts as if it stood there already; resources that suffice with it suffice without."""
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
        searched = Searched(occupied, empty, lesser, priority[lesser], started[lesser], np.searchsorted(occupied, where))
        if len(occupied):
            self._search(task, searched, expected)
        return searched

    def _search(self, task: TaskClass, searched: Searched, expected: IntArray | None) -> None:
        session, nodes, lesser, place = self.session, searched.nodes, searched.lesser, searched.place
        filters = [f for f in session.filters_for(task) if f.scope is not Scope.STATIC]
        requests = session.snapshot.shape_request[:, session.shape[lesser]]
        gone = np.zeros((requests.shape[0], len(nodes)), dtype=np.int64)
        for resource in np.flatnonzero(requests.any(axis=1)).tolist():
            gone[resource] = np.bincount(place, weights=requests[resource], minlength=len(nodes)).astype(np.int64)
        if expected is not None:
            gone -= expected[:, nodes]
        emptied = Selected(session.nodes, nodes, {"requested": -gone}, None)
        fits = searched.fits = _passes(filters, task, emptied)
        victims = searched.victims
        start = searched.start
        for step in range(int(np.max(start[1:] - start[:-1]))):
            turn = np.flatnonzero(fits & (start[:-1] + step < start[1:]))
            if not len(turn):
                continue
            who = start[turn] + step
            back = gone[:, turn] - requests[:, who]
            stays = _passes(filters, task, Selected(session.nodes, nodes[turn], {"requested": -back}, None))
            gone[:, turn[stays]] = back[:, stays]
            victims[who[stays]] = False
        if not fits.all():
            searched.texts = [(text, refused & ~fits) for text, refused in _texts(filters, task, emptied)]


class Searched:
    """What a search found: on `nodes` there is somebody to evict, on `empty` ones nobody."""

    def __init__(self, nodes: Rows, empty: Rows, lesser: Rows, priority: IntArray, started: FloatArray, place: Rows) -> None:
        self.nodes = nodes
        self.empty = empty
        self.lesser = lesser
        """Tasks that could go, node by node, the most important first; `place` numbers their nodes."""
        self.priority = priority
        self.started = started
        self.place = place
        self.start: Rows = np.searchsorted(place, np.arange(len(nodes) + 1))
        self.fits: BoolArray = np.zeros(len(nodes), dtype=bool)
        """The pod fits once everybody less important is gone."""
        self.victims: BoolArray = np.ones(len(lesser), dtype=bool)
        self.texts: list[tuple[str, BoolArray]] = []
        """Reasons of the nodes where it does not fit even so."""

    def victims_on(self, number: int) -> tuple[int, ...]:
        mine = slice(int(self.start[number]), int(self.start[number + 1]))
        found: list[int] = self.lesser[mine][self.victims[mine]].tolist()
        return tuple(found)

    def candidates(self) -> Rows:
        """Numbers of the nodes that can be opened by evicting somebody, in node order."""
        if not len(self.nodes):
            return self.nodes
        return np.flatnonzero(self.fits & (np.add.reduceat(self.victims, self.start[:-1]) > 0))

    def unneeded(self) -> list[int]:
        """Nodes where everybody may stay: the pod was refused for a reason that evicting does not touch."""
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
    """Each reason with the nodes that give it; of several filters the first that refuses a node speaks."""
    out = []
    open_: BoolArray = np.ones(at.requested.shape[1], dtype=bool)
    for f in filters:
        said = list(f.explain(task, at))
        out += [(refusal.message, refusal.refused & open_) for refusal in said]
        for refusal in said:
            open_ = open_ & ~refusal.refused
    return out
