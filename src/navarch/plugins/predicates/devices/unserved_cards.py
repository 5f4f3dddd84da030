"""Refuses a pod that asks for parts of GPU cards or NPUs which the policy does not give out.

The device plugin of such cards waits for annotations that name the card. Only the plugin deviceshare writes them. Without it the pod
would get a node and never start there. Parts of Ascend NPUs (`huawei.com/Ascend310P-memory`, `huawei.com/npu-core`) are not given out
under any policy; whole NPUs are resources like any other.
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
NPU_ARGUMENTS = ("deviceshare.AscendMindClusterVNPUEnable", "deviceshare.AscendHAMiVNPUEnable")


def is_npu_part(resource: str) -> bool:
    """
    >>> [is_npu_part(f"huawei.com/{name}") for name in ("Ascend310P-memory", "npu-core", "Ascend910")]
    [True, True, False]
    """
    return resource == "huawei.com/npu-core" or (resource.startswith("huawei.com/Ascend") and resource.endswith("-memory"))


class UnservedCards(NodeFilter):
    name = "UnservedCards"
    scope = Scope.ROW
    figures_only = True
    undone_by = (Event.POLICY_CHANGED, Event.POD_CHANGED)

    def __init__(self, session: Session) -> None:
        options = [option for tier in session.policy.tiers for option in tier if option.name == "deviceshare"]
        self._served = frozenset(name for option in options for name, value in option.arguments.items() if value is True)
        self._passes = session.semantics.unserved_cards_pass
        self._warnings = session.record.warnings

    def _why(self, task: TaskClass) -> str:
        """Why the first such resource of the pod is not served; empty if there is none."""
        for name, amount in task.shape.requests:
            if amount and is_npu_part(name):
                return f"parts of Ascend NPUs are not given out here: {name}"
            if amount and task.shape.cards is not None and SERVED_BY.get(name, name) not in (name, *self._served):
                return f"the policy does not serve {name}: its plugin deviceshare is absent, or {SERVED_BY[name]} is off"
        return ""

    def applies(self, task: TaskClass) -> bool:
        why = self._why(task)
        if not why:
            return False
        expected = self._served.intersection(NPU_ARGUMENTS) and any(is_npu_part(name) for name, _ in task.shape.requests)
        if not self._passes or expected:  # a system that serves them would give them out: without that the pod never starts
            return True
        text = f"{why}; a pod that asks for it goes to any node with enough of it, and no card is chosen for it"
        if text not in self._warnings:
            self._warnings.append(text)
        return False

    def reject(self, task: TaskClass) -> Rejection | None:
        return Rejection(self._why(task), reason="UnservedCards")

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        return np.zeros(at.requested.shape[1], dtype=bool)

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        return [Refusal(self._why(task), ~self.mask(task, at), unresolvable=True, code="UnservedCards")]
