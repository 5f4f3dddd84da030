"""A job whose queue is full may be ruled out by every node as well: by a selector that no node has, a taint on all of them.

No node is asked for a task that its queue refuses, so without this its owner would wait for the queue and then learn of the next
obstacle. Only what labels and taints say is looked at, room on nodes comes and goes: masks that are kept across cycles, once for
each class of tasks in a cycle, so that a backlog of equal jobs in a full queue costs one dictionary look-up a job.
"""

from __future__ import annotations

import numpy as np

from navarch.engine.node_functions import Scope, TaskClass
from navarch.engine.placement.static_cache import static_mask
from navarch.engine.reasons import Event, Reason
from navarch.engine.session import Session

_UNDONE_BY = (Event.NODE_ADDED, Event.NODE_CHANGED, Event.POD_CHANGED)


class RuledOut:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[int, Reason | None] = {}

    def everywhere(self, task: TaskClass) -> Reason | None:
        """Why no node can ever take such a task as things stand; None: some might."""
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
