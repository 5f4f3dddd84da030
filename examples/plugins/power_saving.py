"""A plugin of your own: keep nodes that are to be switched off tonight free of new work, and fill the others.

A filter that reads nothing but the labels of nodes is `static`: it is computed once per shape and kept across cycles. A score that
reads a node's figures is `row`: after a placement it is computed again for that one node.

    navarch policy plugins power-saving --plugin-dir examples/plugins
    navarch plan -f examples/two-queues.yaml --policy examples/power-saving.conf --plugin-dir examples/plugins
    navarch up --policy examples/power-saving.conf --plugin-dir examples/plugins
"""

from __future__ import annotations

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.model.resources import PODS, BoolArray, FloatArray


class PowerSaving(Plugin):
    """Keeps nodes free that are to be switched off, and prefers those that are busy already"""

    name = "power-saving"
    arguments = (
        Argument("label", "str", "example.com/switch-off", "nodes with this label are to be switched off"),
        Argument("weight", "int", 1, "weight of the score", minimum=0),
    )

    def node_filters(self) -> list[NodeFilter]:
        label = self.given.text("label")
        going = np.array([label in spec.labels for spec in self.session.nodes.specs], dtype=bool)
        return [Staying(label, going)]

    def node_scorers(self) -> list[NodeScorer]:
        return [Busiest(self.given.integer("weight"))]


class Staying(NodeFilter):
    name = "power-saving"
    scope = Scope.STATIC

    def __init__(self, label: str, going: BoolArray) -> None:
        self.label = label
        self.going = going

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        return ~self.going[at.rows]

    def explain(self, task: TaskClass, at: Figures) -> list[Refusal]:
        return [Refusal("node(s) are to be switched off", self.going[at.rows], unresolvable=True)]

    def identity(self) -> tuple[str, str]:
        return (type(self).__name__, self.label)


class Busiest(NodeScorer):
    name = "power-saving"
    scope = Scope.ROW

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        """The part of the node's room for pods that is taken, 0 to 100."""
        room = np.maximum(at.allocatable[PODS], 1)
        return np.asarray(100.0 * at.requested[PODS] / room)
