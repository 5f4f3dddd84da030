"""NodeAffinity's score: the sum of the weights of the preferred terms that a node meets, the scheduler's own included."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.model.label_syntax import aggregate
from navarch.model.resources import FloatArray
from navarch.model.selectors import term_errors
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NodeAffinity, NodeTerm
from navarch.plugins.nodeorder.normalise import default_normalise
from navarch.plugins.predicates.nodes.properties import node_properties


class PreferredNodes(NodeScorer):
    name = "NodeAffinity"
    scope = Scope.STATIC
    reads_only_node_rules = True
    normalises = True

    def __init__(self, snapshot: Snapshot, weight: float, added: NodeAffinity | None = None) -> None:
        self.snapshot = snapshot
        self.weight = weight
        self.added = added

    def identity(self) -> Hashable:
        return (PreferredNodes, self.added)

    def applies(self, task: TaskClass) -> bool:
        own = task.shape.node_affinity
        return bool(own and own.preferred) or bool(self.added and self.added.preferred)

    def problem(self, task: TaskClass) -> str:
        own = task.shape.node_affinity
        terms = enumerate(own.preferred if own else ())
        errors = [text for i, (weight, term) in terms if weight and _says(term) for text in term_errors(term, f"[{i}]")]
        return aggregate(errors) if errors else ""

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        columns = node_properties(self.snapshot)
        total: FloatArray = np.zeros(len(columns))
        for affinity in (task.shape.node_affinity, self.added):
            for weight, term in affinity.preferred if affinity else ():
                if weight and _says(term) and not term_errors(term):
                    total += weight * columns.term(term)
        found: FloatArray = total[at.rows]
        return found

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        return default_normalise(raw, high)


def _says(term: NodeTerm) -> bool:
    return bool(term.expressions or term.fields)
