"""NodeAffinity: the nodes that a pod demands by selector and by required affinity, and those its scheduler demands for all."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Rejection, Scope, TaskClass
from navarch.model.resources import BoolArray
from navarch.model.selectors import EVERYTHING, pinned_nodes
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NodeAffinity as Demand
from navarch.model.spec import Shape
from navarch.plugins.predicates.nodes.properties import NodeProperties, node_properties

MISMATCH = "node(s) didn't match Pod's node affinity/selector"
NOT_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"


def demanded_nodes(columns: NodeProperties, shape: Shape) -> BoolArray:
    """Nodes that meet the shape's node selector and required node affinity; spread rules ask for this too."""
    required = shape.node_affinity.required if shape.node_affinity else None
    found = columns.terms(required) if required is not None else columns.selector(EVERYTHING)
    for key, value in shape.node_selector:
        found &= columns.label(key).equals((value,))
    return found


def has_demand(shape: Shape) -> bool:
    return bool(shape.node_selector) or (shape.node_affinity is not None and shape.node_affinity.required is not None)


class NodeAffinity(NodeFilter):
    name = "NodeAffinity"
    selects_nodes = True
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, snapshot: Snapshot, added: Demand | None = None) -> None:
        self.snapshot = snapshot
        self.added = added

    def identity(self) -> Hashable:
        return (NodeAffinity, self.added)

    def applies(self, task: TaskClass) -> bool:
        return has_demand(task.shape) or (self.added is not None and self.added.required is not None)

    def reject(self, task: TaskClass) -> Rejection | None:
        names = self.named_nodes(task)
        return Rejection(CONFLICT) if names is not None and not names else None

    def named_nodes(self, task: TaskClass) -> frozenset[str] | None:
        affinity = task.shape.node_affinity
        return pinned_nodes(affinity.required) if affinity is not None and affinity.required else None

    def _enforced(self, columns: NodeProperties) -> BoolArray | None:
        if self.added is None or self.added.required is None:
            return None
        return columns.terms(self.added.required)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        columns = node_properties(self.snapshot)
        found = demanded_nodes(columns, task.shape)
        enforced = self._enforced(columns)
        if enforced is not None:
            found &= enforced
        out: BoolArray = found[at.rows]
        return out

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        columns = node_properties(self.snapshot)
        found, enforced = ~demanded_nodes(columns, task.shape)[at.rows], self._enforced(columns)
        if enforced is None:
            return [Refusal(MISMATCH, found, unresolvable=True, code="NodeAffinity")]
        first = ~enforced[at.rows]
        return [
            Refusal(NOT_ENFORCED, first, unresolvable=True, code="NodeAffinity"),
            Refusal(MISMATCH, found & ~first, unresolvable=True, code="NodeAffinity"),
        ]
