"""NodeVolumeLimits: a node attaches only so many volumes of a CSI driver."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Rejection, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.resources import BoolArray
from navarch.plugins.predicates.pods.placed_pods import watch_pods
from navarch.plugins.predicates.volumes.attachments import Attachable
from navarch.plugins.predicates.volumes.claims import find_claim, missing, ownership_problem, unusable

MESSAGE = "node(s) exceed max volume count"


class NodeVolumeLimits(NodeFilter):
    name = "NodeVolumeLimits"
    scope = Scope.GLOBAL
    undone_by = (Event.POD_REMOVED, Event.VOLUME_CHANGED, Event.NODE_ADDED)

    def __init__(self, session: Session) -> None:
        self.session = session
        watch_pods(session, lambda shape: shape.volumes)

    def applies(self, task: TaskClass) -> bool:
        return task.shape.volumes is not None

    def reject(self, task: TaskClass) -> Rejection | None:
        """A claim that belongs to another pod is an error of the attempt, found when the first node is filtered."""
        for name, ephemeral in task.shape.volumes.claims if task.shape.volumes else ():
            claim = find_claim(self.session.snapshot, task.namespace, name) if ephemeral else None
            if claim is not None and (problem := ownership_problem(self.session, task, claim)):
                return unusable(problem, error=True)
        return None

    def _missing(self, task: TaskClass) -> str:
        for name, _ in task.shape.volumes.claims if task.shape.volumes else ():
            if find_claim(self.session.snapshot, task.namespace, name) is None:
                return f"looking up PVC {task.namespace}/{name}: {missing(name)}"
        return ""

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        if self._missing(task):
            none: BoolArray = np.zeros(len(self.session.nodes), dtype=bool)[at.rows]
            return none
        out: BoolArray = ~self.session.shared(Attachable).too_many(task.shape.volumes, task.namespace)[at.rows]
        return out

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        problem = self._missing(task)
        code = "NodeVolumeLimits"
        return [Refusal(problem or MESSAGE, ~self.mask(task, at), unresolvable=bool(problem), code=code)]
