"""NodeName, NodeUnschedulable and SchedulingGates: the one-line refusals."""

from __future__ import annotations

from tests.reference.cluster import Object, name_of
from tests.reference.plugin import Plugin
from tests.reference.status import SUCCESS, Status, unresolvable

from navarch.model.selectors import read_toleration, tolerated
from navarch.model.spec import Taint


class NodeName(Plugin):
    def filter(self, node: Object) -> Status:
        wanted = self.pod["spec"].get("nodeName")
        if wanted and wanted != name_of(node):
            return unresolvable("node(s) didn't match the requested node name")
        return SUCCESS


class NodeUnschedulable(Plugin):
    def filter(self, node: Object) -> Status:
        if not (node.get("spec") or {}).get("unschedulable"):
            return SUCCESS
        taint = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
        if tolerated(taint, [read_toleration(t) for t in self.pod["spec"].get("tolerations") or ()]):
            return SUCCESS
        return unresolvable("node(s) were unschedulable")


def scheduling_gates(pod: Object) -> Status:
    gates = [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]
    return unresolvable(f"waiting for scheduling gates: [{' '.join(gates)}]") if gates else SUCCESS
