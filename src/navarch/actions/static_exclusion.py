"""Classes of tasks that the static filters of every node refuse, by a selector or a taint for example.

A task that its queue refuses is tried on no node. Without this check its owner would learn of the second obstacle only after the
queue has room.
"""

from __future__ import annotations

import numpy as np

from navarch.engine.node_functions import Scope, TaskClass
from navarch.engine.placement.static_cache import static_mask
from navarch.engine.reasons import Event, Reason
from navarch.engine.session import Session

_UNDONE_BY = (Event.NODE_ADDED, Event.NODE_CHANGED, Event.POD_CHANGED)


class StaticExclusion:
    """Only static filters are asked, because free resources change all the time. The answer is cached for each class, so a backlog of
    equal jobs costs one look-up a job."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[int, Reason | None] = {}

    def reason(self, task: TaskClass) -> Reason | None:
        """Why the static filters of every node refuse such a task; None if some node passes."""
        if task.number not in self._known:
            self._known[task.number] = self._find(task)
        return self._known[task.number]

    def _find(self, task: TaskClass) -> Reason | None:
        session = self._session
        left = np.ones(len(session.nodes), dtype=bool)
        for each in session.filters_for(task):
            if each.scope is Scope.STATIC:
                left &= static_mask(session, each, task)
        if left.any() or not len(left):
            return None
        errors = session.view(task).explain(resources=False)
        text = f"nor would any node take it: {errors.text(session.semantics)}"
        return Reason("Unschedulable", text, errors.nodes, {"nodes": errors.refused}, _UNDONE_BY)
