"""Refuses a pod that asks for parts of GPU cards which the policy does not give out.

The device plugin of such cards waits for annotations that name the card. Only the plugin deviceshare writes them. Without it the pod
would get a node and never start there.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Rejection, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.registered_cards import GPU_MEMORY, GPU_NUMBER, VGPU_MEMORY, VGPU_NUMBER
from navarch.model.resources import BoolArray

SERVED_BY = {
    VGPU_NUMBER: "deviceshare.VGPUEnable",
    VGPU_MEMORY: "deviceshare.VGPUEnable",
    GPU_MEMORY: "deviceshare.GPUSharingEnable",
    GPU_NUMBER: "deviceshare.GPUNumberEnable",
}
"""Resource -> the argument of deviceshare that serves it."""


class UnservedCards(NodeFilter):
    name = "UnservedCards"
    scope = Scope.ROW
    figures_only = True
    undone_by = (Event.POLICY_CHANGED, Event.POD_CHANGED)

    def __init__(self, session: Session) -> None:
        options = [option for tier in session.policy.tiers for option in tier if option.name == "deviceshare"]
        self._served = frozenset(name for option in options for name, value in option.arguments.items() if value is True)
        self._warnings = session.record.warnings if session.semantics.unserved_cards_pass else None

    def _unserved(self, task: TaskClass) -> tuple[str, str] | None:
        """The first such resource of the pod, and the argument that would serve it."""
        asked = (name for name, amount in task.shape.requests if amount)
        return next(((name, SERVED_BY[name]) for name in asked if name in SERVED_BY and SERVED_BY[name] not in self._served), None)

    def applies(self, task: TaskClass) -> bool:
        if task.shape.cards is None or self._unserved(task) is None:
            return False
        if self._warnings is not None and (text := f"pods are placed although {self._text(task)}") not in self._warnings:
            self._warnings.append(text)
        return self._warnings is None

    def _text(self, task: TaskClass) -> str:
        found = self._unserved(task)
        assert found is not None
        return f"the policy does not serve {found[0]}: its plugin deviceshare is absent, or {found[1]} is off"

    def reject(self, task: TaskClass) -> Rejection | None:
        return Rejection(self._text(task))

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        return np.zeros(at.requested.shape[1], dtype=bool)

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        return [Refusal(self._text(task), ~self.mask(task, at), unresolvable=True, code="UnservedCards")]
