"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes to nodes that declare it in `status.declaredFeatures`."""

from __future__ import annotations

from collections.abc import Iterable

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.model.resources import BoolArray
from navarch.model.snapshot import Snapshot
from navarch.plugins.predicates.nodes.properties import node_properties

MESSAGE = "node(s) didn't match Pod's required features"


class NodeDeclaredFeatures(NodeFilter):
    name = "NodeDeclaredFeatures"
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def applies(self, task: TaskClass) -> bool:
        return bool(task.shape.features)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        out: BoolArray = node_properties(self.snapshot).declares(task.shape.features)[at.rows]
        return out

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        return [Refusal(MESSAGE, ~self.mask(task, at), unresolvable=True, code="NodeDeclaredFeatures")]
