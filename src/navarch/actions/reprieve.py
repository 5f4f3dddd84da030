"""Who can stay, on all nodes at once: the search for victims where nothing but resources decides.

All that less important pods hold is taken off in one sum a node. Then, in step k, the k-th most important of every node comes
back wherever the pod would still fit. So a search over a thousand nodes costs a few array operations for each step, and there are
as many steps as pods on the fullest node. Cost: bench/predicates, "preemption".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from navarch.engine.figures import Figures, Rows, Selected
from navarch.engine.node_functions import NodeFilter, Scope, TaskClass
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.model.status import ON_NODE

Answer = tuple[int, tuple[int, ...] | None, tuple[str, ...]]
"""(node, victims or None if there is nobody to evict, what refuses the pod even on the emptied node)."""


class Reprieve:
    def __init__(self, session: Session) -> None:
        self.session = session
        self._ranks: tuple[IntArray, FloatArray, IntArray] | None = None

    def applies(self, task: TaskClass) -> bool:
        """Whether every filter that concerns the class reads nothing but figures, labels aside."""
        filters = [f for f in self.session.filters if f.scope is not Scope.STATIC and f.applies(task)]
        return all(f.figures_only for f in filters)

    def _order(self) -> tuple[IntArray, FloatArray, IntArray]:
        """Of every task: priority, start, and its place in the order of names. Read once a cycle."""
        if self._ranks is None:
            session, tasks = self.session, self.session.snapshot.tasks
            size = len(tasks.specs)
            priority, started, rank = np.zeros(size, np.int64), np.zeros(size), np.zeros(size, np.int64)
            there = np.flatnonzero(tasks.alive & (session.node >= 0)).tolist()
            there.sort(key=lambda row: session.task(row).key)
            for number, row in enumerate(there):
                spec = session.task(row)
                priority[row], rank[row] = spec.pod_priority, number
                started[row] = session.now if spec.started is None else spec.started
            self._ranks = priority, started, rank
            self._known = np.zeros(size, dtype=bool)
            self._known[there] = True
        return self._ranks

    def outranks_anyone(self, priority: int) -> bool:
        """Whether any pod on any node is less important."""
        found = self._order()[0][self._known]
        return bool(found.size) and int(found.min()) < priority

    def run(self, row: int, nodes: Sequence[int]) -> Iterator[Answer]:
        """Answers for these nodes, except for those whose labels or taints alone refuse the pod."""
        session = self.session
        task, own = session.class_of(row), session.task(row).pod_priority
        priority, started, rank = self._order()
        open_ = session.view(task).static
        nodes = [node for node in nodes if open_[node]]
        chosen = np.zeros(len(session.nodes), dtype=bool)
        chosen[nodes] = True
        there = session.snapshot.tasks.alive & ON_NODE[session.status] & (session.node >= 0) & self._known
        lesser = np.flatnonzero(there & (priority < own))
        lesser = lesser[chosen[session.node[lesser]]]
        where = session.node[lesser].astype(np.intp)
        order = np.lexsort((rank[lesser], started[lesser], -priority[lesser], where))
        lesser, where = lesser[order], where[order]
        occupied = np.unique(where)
        some = set(occupied.tolist())
        for node in nodes:
            if node not in some:
                yield node, None, ()
        if not len(occupied):
            return
        yield from self._on_nodes(task, lesser, where, occupied)

    def _on_nodes(self, task: TaskClass, lesser: Rows, where: Rows, nodes: Rows) -> Iterator[Answer]:
        session = self.session
        filters = [f for f in session.filters if f.scope is not Scope.STATIC and f.applies(task)]
        place = np.searchsorted(nodes, where)
        requests = session.snapshot.shape_request[:, session.shape[lesser]]
        gone = np.zeros((requests.shape[0], len(nodes)), dtype=np.int64)
        for resource in np.flatnonzero(requests.any(axis=1)).tolist():
            gone[resource] = np.bincount(place, weights=requests[resource], minlength=len(nodes)).astype(np.int64)
        emptied = Selected(session.nodes, nodes, {"requested": -gone}, None)
        fits = _passes(filters, task, emptied)
        victims = np.ones(len(lesser), dtype=bool)
        start = np.searchsorted(place, np.arange(len(nodes) + 1))
        for step in range(int(np.max(start[1:] - start[:-1]))):
            turn = np.flatnonzero(fits & (start[:-1] + step < start[1:]))
            if not len(turn):
                continue
            who = start[turn] + step
            back = gone[:, turn] - requests[:, who]
            stays = _passes(filters, task, Selected(session.nodes, nodes[turn], {"requested": -back}, None))
            gone[:, turn[stays]] = back[:, stays]
            victims[who[stays]] = False
        texts = _texts(filters, task, emptied) if not fits.all() else []
        for number, node in enumerate(nodes.tolist()):
            if not fits[number]:
                yield node, (), tuple(text for text, refused in texts if refused[number])
            else:
                mine = slice(int(start[number]), int(start[number + 1]))
                yield node, tuple(lesser[mine][victims[mine]].tolist()), ()


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
