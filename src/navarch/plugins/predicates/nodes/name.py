"""NodeName: a pod that names its node goes there and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.model.resources import BoolArray
from navarch.model.snapshot import Snapshot
from navarch.plugins.predicates.nodes.properties import node_properties

MISMATCH = "node(s) didn't match the requested node name"


class NodeName(NodeFilter):
    name = "NodeName"
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def applies(self, task: TaskClass) -> bool:
        return bool(task.shape.node_name)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        found: BoolArray = node_properties(self.snapshot).named((task.shape.node_name,))[at.rows]
        return found

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        return [Refusal(MISMATCH, ~self.mask(task, at), unresolvable=True, code="NodeName")]
