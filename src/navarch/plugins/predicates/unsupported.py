"""Refuses a pod that needs a feature that Navarch does not model, with a reason. It is never placed by guess."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Rejection, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.model.resources import BoolArray


class Unsupported(NodeFilter):
    name = "Unsupported"
    scope = Scope.STATIC
    reads_only_node_rules = True
    undone_by = (Event.POD_CHANGED,)

    def applies(self, task: TaskClass) -> bool:
        return bool(task.shape.unsupported)

    def reject(self, task: TaskClass) -> Rejection | None:
        return Rejection(message(task), reason="Unsupported")

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        return np.zeros(at.requested.shape[1], dtype=bool)

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        return [Refusal(message(task), ~self.mask(task, at), unresolvable=True, code="Unsupported")]


def message(task: TaskClass) -> str:
    return f"the pod needs what Navarch does not support: {', '.join(task.shape.unsupported)}"
