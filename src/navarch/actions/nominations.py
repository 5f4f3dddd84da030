"""Pods that were promised a node and wait for it: others count them as if they stood there already.

A pod is judged on a node with the promised pods of at least its own importance, and again without them: a promise may not be
broken by whoever comes later, and may not be relied upon either.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from navarch.engine.placement import ClassView
from navarch.engine.session import Session
from navarch.engine.trial import Trial
from navarch.model.resources import BoolArray
from navarch.model.status import TaskStatus


class Nominations:
    def __init__(self, session: Session) -> None:
        self.session = session
        self._at: dict[int, dict[int, None]] = {}
        """Node row -> the tasks that were promised it."""
        self._of: dict[int, int] = {}
        row_of = session.snapshot.nodes.row
        for task in np.flatnonzero(session.snapshot.tasks.alive & (session.status == TaskStatus.PENDING)).tolist():
            name = session.task(task).nominated_node
            node = row_of(name) if name else None
            if node is not None:
                self.put(task, node)

    def put(self, task: int, node: int) -> None:
        self.drop(task)
        self._at.setdefault(node, {})[task] = None
        self._of[task] = node

    def drop(self, task: int) -> None:
        node = self._of.pop(task, None)
        if node is not None:
            del self._at[node][task]

    def node_of(self, task: int) -> int | None:
        return self._of.get(task)

    def drop_lesser(self, node: int, priority: int) -> list[int]:
        """Promises on a node to pods below a priority are off."""
        gone = [task for task in self._at.get(node, {}) if self.session.task(task).pod_priority < priority]
        for task in gone:
            self.drop(task)
        return gone

    def expected(self, task: int, node: int) -> list[int]:
        """Who else was promised the node and is at least as important."""
        priority = self.session.task(task).pod_priority
        others = self._at.get(node, {})
        return [other for other in others if other != task and self.session.task(other).pod_priority >= priority]

    def nodes_with_others(self, task: int) -> Iterator[int]:
        for node in sorted(self._at):
            if self.expected(task, node):
                yield node

    def admits(self, view: ClassView, task: int, node: int) -> bool:
        """Whether the node takes the task with and without those whom it was promised to."""
        others = self.expected(task, node)
        if others:
            with Trial(self.session) as trial:
                for other in others:
                    trial.add(other, node)
                if not view.admits(node):
                    return False
        return view.admits(node)

    def refusal_at(self, view: ClassView, task: int, node: int) -> tuple[list[str], bool]:
        others = self.expected(task, node)
        with Trial(self.session) as trial:
            for other in others:
                trial.add(other, node)
            said = view.refusal_at(node)
        return said if said[0] or not others else view.refusal_at(node)

    def respected(self, view: ClassView, task: int, feasible: BoolArray) -> tuple[BoolArray, list[int]]:
        """The nodes that remain when promises are kept, and those among them and the lost ones that had to be looked at."""
        looked_at = [node for node in self.nodes_with_others(task) if feasible[node]]
        if not looked_at:
            return feasible, looked_at
        out = feasible.copy()
        for node in looked_at:
            out[node] = self.admits(view, task, node)
        return out, looked_at
