"""Nominations: pods that are promised a node and wait for it. Other pods count them as if they were there.

A pod must fit a node both with and without the nominated pods of equal or higher priority: it may not take their place, and may not
rely on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from navarch.engine.figures import SelectedFigures
from navarch.engine.placement.class_view import ClassView
from navarch.engine.session import Session
from navarch.engine.victims.what_if import WhatIf
from navarch.model.resources import BoolArray, IntArray
from navarch.model.status import TaskStatus


class Nominations:
    """`priority` of a pod: its own, if no other rule is given."""

    def __init__(self, session: Session, priority: Callable[[int], int] | None = None) -> None:
        self.session = session
        self._priority = priority or (lambda row: session.task(row).pod_priority)
        self._at: dict[int, dict[int, None]] = {}
        """Node row -> the tasks nominated for it."""
        self._of: dict[int, int] = {}
        self._sums: dict[int, tuple[IntArray, IntArray]] = {}
        row_of = session.snapshot.nodes.row
        tasks = session.snapshot.tasks
        for task in np.flatnonzero(tasks.alive & tasks.nominated & (session.status == TaskStatus.PENDING)).tolist():
            node = row_of(session.task(task).nominated_node)
            if node is not None:
                self.put(task, node)

    def put(self, task: int, node: int) -> None:
        self.drop(task)
        self._at.setdefault(node, {})[task] = None
        self._of[task] = node
        self._count(task, node, 1)

    def drop(self, task: int) -> None:
        node = self._of.pop(task, None)
        if node is not None:
            del self._at[node][task]
            self._count(task, node, -1)

    def node_of(self, task: int) -> int | None:
        return self._of.get(task)

    def drop_lesser(self, node: int, priority: int) -> list[int]:
        """Drop nominations on a node for pods below a priority."""
        gone = [task for task in self._at.get(node, {}) if self._priority(task) < priority]
        for task in gone:
            self.drop(task)
        return gone

    def drop_lesser_than(self, task: int, node: int) -> None:
        """Drop nominations on the node for pods less important than this one."""
        self.drop_lesser(node, self._priority(task))

    def expected(self, task: int, node: int) -> list[int]:
        """Other tasks nominated for the node with equal or higher priority."""
        priority = self._priority(task)
        others = self._at.get(node, {})
        return [other for other in others if other != task and self._priority(other) >= priority]

    def nodes_with_others(self, task: int) -> Iterator[int]:
        for node in sorted(self._at):
            if self.expected(task, node):
                yield node

    def admits(self, view: ClassView, task: int, node: int) -> bool:
        """Whether the node takes the task with and without the other nominated pods."""
        others = self.expected(task, node)
        if others:
            with WhatIf(self.session) as trial:
                for other in others:
                    trial.add(other, node)
                if not view.admits(node):
                    return False
        return view.admits(node)

    def refusal_at(self, view: ClassView, task: int, node: int) -> tuple[list[str], bool]:
        others = self.expected(task, node)
        with WhatIf(self.session) as trial:
            for other in others:
                trial.add(other, node)
            said = view.refusal_at(node)
        return said if said[0] or not others else view.refusal_at(node)

    def refusals(self, view: ClassView, task: int, among: BoolArray) -> tuple[Counter[str], BoolArray, BoolArray]:
        """For nodes in `among` with other nominated pods: how many give each reason, which nodes they are, and where no eviction
        helps."""
        size = len(self.session.nodes)
        counts: Counter[str] = Counter()
        where, unresolvable = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        if not self._of:
            return counts, where, unresolvable
        if view.figures_only and task not in self._of:
            promised, pods = self.promised(self._priority(task))
            where = among & (pods > 0)
            nodes = np.flatnonzero(where)
            if len(nodes):
                at = SelectedFigures(self.session.nodes, nodes, {"requested": promised[:, nodes]}, None)
                unresolvable[nodes] = _said(self.session, view, at, counts)
            return counts, where, unresolvable
        for node in self.nodes_with_others(task):
            if among[node]:
                where[node] = True
                texts, unresolvable[node] = self.refusal_at(view, task, node)
                counts.update(texts)
        return counts, where, unresolvable

    def respected(self, view: ClassView, task: int, feasible: BoolArray) -> tuple[BoolArray, list[int]]:
        """The feasible nodes that remain with the nominations, and the feasible nodes that have nominations."""
        if not self._of:
            return feasible, []
        if view.figures_only and task not in self._of:
            return self._by_figures(view, task, feasible)
        looked_at = [node for node in self.nodes_with_others(task) if feasible[node]]
        if not looked_at:
            return feasible, looked_at
        out = feasible.copy()
        for node in looked_at:
            out[node] = self.admits(view, task, node)
        return out, looked_at

    def _by_figures(self, view: ClassView, task: int, feasible: BoolArray) -> tuple[BoolArray, list[int]]:
        """The same in one step over all nodes, where filters read only figures."""
        promised, pods = self.promised(self._priority(task))
        nodes = np.flatnonzero(feasible & (pods > 0))
        if not len(nodes):
            return feasible, []
        at = SelectedFigures(self.session.nodes, nodes, {"requested": promised[:, nodes]}, None)
        out = feasible.copy()
        for f in view.row_filters:
            out[nodes] &= f.mask(view.task, at)
        return out, nodes.tolist()

    def promised(self, priority: int) -> tuple[IntArray, IntArray]:
        """By node: the requests of nominated pods of at least this priority, and their number."""
        held = self._sums.get(priority)
        if held is None:
            session = self.session
            held = self._sums[priority] = np.zeros_like(session.nodes.requested), np.zeros(len(session.nodes), np.int64)
            for other, node in self._of.items():
                if self._priority(other) >= priority:
                    held[0][:, node] += session.class_of(other).request
                    held[1][node] += 1
        return held

    def promised_to_others(self, task: int) -> IntArray | None:
        """The requests of all nominated pods except the task; None: there are none."""
        if not self._of or (len(self._of) == 1 and task in self._of):
            return None
        sums, _ = self.promised(self._priority(task))
        node = self._of.get(task)
        if node is not None:
            sums = sums.copy()
            sums[:, node] -= self.session.class_of(task).request
        return sums

    def _count(self, task: int, node: int, step: int) -> None:
        priority, request = self._priority(task), self.session.class_of(task).request
        for least, (sums, pods) in self._sums.items():
            if priority >= least:
                sums[:, node] += step * request
                pods[node] += step


def _said(session: Session, view: ClassView, at: SelectedFigures, counts: Counter[str]) -> BoolArray:
    """Count the reasons of the first filter that refuses each column; True where no eviction helps."""
    open_: BoolArray = np.ones(at.requested.shape[1], dtype=bool)
    hopeless = np.zeros_like(open_)
    for f in session.filters_for(view.task):
        refusals = list(f.explain(view.task, at))
        for refusal in refusals:
            here = refusal.refused & open_
            counts[refusal.message] += int(here.sum())
            hopeless |= here & refusal.unresolvable
        for refusal in refusals:
            open_ = open_ & ~refusal.refused
    for text in [text for text, count in counts.items() if not count]:
        del counts[text]
    return hopeless
