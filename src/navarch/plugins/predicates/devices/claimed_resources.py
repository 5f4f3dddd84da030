"""Extended resources that a node offers only as devices to be claimed: such nodes are refused, with a reason that says so.

A pod may request devices of a class by an extended resource name. Where nodes report the resource they are treated like any other.
Where only published devices stand behind it, a controller would have to create a claim for the pod, which Navarch does not do.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.engine.session import Session
from navarch.model.objects.devices import DEVICE_CLASS
from navarch.model.resources import PODS, BoolArray
from navarch.plugins.predicates.devices.extended_resources import class_behind


class ClaimedResources(NodeFilter):
    name = "DynamicResources"
    scope = Scope.ROW
    figures_only = True

    def __init__(self, session: Session) -> None:
        self.session = session
        self._dims: dict[int, list[int]] = {}

    def _of(self, task: TaskClass) -> list[int]:
        found = self._dims.get(task.number)
        if found is None:
            snapshot = self.session.snapshot
            asked = [d for d in np.flatnonzero(task.request).tolist() if d > PODS] if DEVICE_CLASS in snapshot.objects else []
            found = [d for d in asked if class_behind(snapshot, snapshot.resource_names[d]) is not None]
            self._dims[task.number] = found
        return found

    def applies(self, task: TaskClass) -> bool:
        return bool(self._of(task))

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        out: BoolArray = np.ones(at.requested.shape[1], dtype=bool)
        for dim in self._of(task):
            out &= at.allocatable[dim] > 0
        return out

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        for dim in self._of(task):
            name = self.session.snapshot.resource_names[dim]
            text = f"node(s) offer {name} only as devices to be claimed, which Navarch does not support"
            yield Refusal(text, np.equal(at.allocatable[dim], 0), unresolvable=True, code="Unsupported")
