"""Tasks by node: built when an evicting action first asks, then updated by changes.

One sort over the task column groups all tasks by node; only the nodes that changed since differ from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.figures import Rows
from navarch.model.status import ON_NODE, TaskStatus

if TYPE_CHECKING:
    from navarch.engine.session import Session


class TasksByNode:
    def __init__(self, session: Session) -> None:
        self.session = session
        self._order: Rows | None = None
        self._start: Rows | None = None
        self._edited: dict[int, list[int]] = {}

    def on(self, node: int) -> list[int]:
        """Rows of the tasks that occupy the node or are promised to it, evicted ones included while they leave."""
        edited = self._edited.get(node)
        if edited is not None:
            return edited
        if self._order is None or self._start is None:
            self._build()
        assert self._order is not None and self._start is not None
        return [int(t) for t in self._order[self._start[node] : self._start[node + 1]]]

    def _build(self) -> None:
        session = self.session
        tasks = session.snapshot.tasks
        there = ON_NODE[session.status] | (session.status == TaskStatus.PIPELINED)
        where = np.where(tasks.alive & there, session.node, -1)
        order = np.argsort(where, kind="stable")
        self._order = order
        self._start = np.searchsorted(where[order], np.arange(len(session.nodes) + 1))

    def moved(self, tasks: Sequence[int], nodes: Sequence[int], *, joined: bool) -> None:
        """Update the lists of nodes after a placement. Before the first question there is nothing to update."""
        if self._order is None:
            return
        for task, node in zip(tasks, nodes):
            here = self._edited.get(node)
            if here is None:
                here = self._edited[node] = self.on(node)
            if joined:
                here.append(task)
            elif task in here:
                here.remove(task)
