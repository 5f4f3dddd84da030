"""TaintToleration: a node's hard taints keep out every pod that does not tolerate all of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.model.resources import BoolArray
from navarch.model.selectors import HARD_EFFECTS, first_untolerated
from navarch.model.snapshot import Snapshot
from navarch.model.spec import Shape
from navarch.plugins.predicates.nodes.properties import NodeProperties, node_properties

MESSAGE = "node(s) had untolerated taint(s)"


def tolerated_nodes(columns: NodeProperties, shape: Shape) -> BoolArray:
    """Nodes without a hard taint that the shape does not tolerate."""
    untolerated = columns.per_taints(lambda taints: first_untolerated(taints, shape.tolerations) is not None)
    return np.equal(untolerated, 0)


class TaintToleration(NodeFilter):
    name = "TaintToleration"
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        _, lists = node_properties(snapshot).taints
        self.any_hard = any(taint.effect in HARD_EFFECTS for taints in lists for taint in taints)

    def applies(self, task: TaskClass) -> bool:
        return self.any_hard

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        found: BoolArray = tolerated_nodes(node_properties(self.snapshot), task.shape)[at.rows]
        return found

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        return [Refusal(MESSAGE, np.logical_not(self.mask(task, at)), unresolvable=True, code="TaintToleration")]
