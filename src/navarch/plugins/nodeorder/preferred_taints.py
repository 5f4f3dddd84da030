"""TaintToleration's score: the fewer soft taints that a pod does not tolerate, the better."""

from __future__ import annotations

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.model.resources import FloatArray
from navarch.model.selectors import tolerated
from navarch.model.snapshot import Snapshot
from navarch.model.spec import Taint
from navarch.plugins.nodeorder.normalise import default_normalise
from navarch.plugins.predicates.nodes.properties import node_properties

SOFT = "PreferNoSchedule"


class PreferredTaints(NodeScorer):
    name = "TaintToleration"
    scope = Scope.STATIC
    reads_only_node_rules = True
    normalises = True

    def __init__(self, snapshot: Snapshot, weight: float) -> None:
        self.snapshot = snapshot
        self.weight = weight

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        tolerations = [t for t in task.shape.tolerations if t.effect in ("", SOFT)]

        def count(taints: tuple[Taint, ...]) -> int:
            return sum(taint.effect == SOFT and not tolerated(taint, tolerations) for taint in taints)

        return node_properties(self.snapshot).per_taints(count)[at.rows].astype(float)

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        return default_normalise(raw, high, reverse=True)
