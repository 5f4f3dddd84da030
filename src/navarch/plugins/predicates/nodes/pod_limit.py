"""Pod number: a node takes no more pods than it allows. Pods that are being evicted no longer count, promised ones do."""

from __future__ import annotations

from collections.abc import Iterable

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.model.resources import PODS, BoolArray

MESSAGE = "node(s) pod number exceeded"


class PodNumber(NodeFilter):
    name = "PodNumber"
    scope = Scope.ROW
    figures_only = True
    resolvable = True
    undone_by = (Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        out: BoolArray = at.requested[PODS] < at.allocatable[PODS]
        return out

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        return [Refusal(MESSAGE, ~self.mask(task, at), code="PodNumber")]
