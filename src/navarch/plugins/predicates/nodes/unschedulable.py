"""NodeUnschedulable: a cordoned node takes only pods that tolerate the taint of cordoned nodes."""

from __future__ import annotations

from collections.abc import Iterable

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.model.resources import BoolArray
from navarch.model.selectors import tolerated
from navarch.model.snapshot import Snapshot
from navarch.model.spec import Taint
from navarch.plugins.predicates.nodes.properties import node_properties

CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
MESSAGE = "node(s) were unschedulable"


class NodeUnschedulable(NodeFilter):
    name = "NodeUnschedulable"
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.any_cordoned = bool(node_properties(snapshot).unschedulable.any())

    def applies(self, task: TaskClass) -> bool:
        return self.any_cordoned and not tolerated(CORDONED, task.shape.tolerations)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        open_: BoolArray = ~node_properties(self.snapshot).unschedulable[at.rows]
        return open_

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        return [Refusal(MESSAGE, ~self.mask(task, at), unresolvable=True, code="NodeUnschedulable")]
