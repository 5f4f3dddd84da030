"""NUMA: keeps pods off nodes whose kubelet could not align them, and prefers nodes where a pod stays in one zone.

Reads NodeResourceTopology objects. Nodes with the policy `single-numa-node` or `restricted` refuse pods that cannot be aligned
there now. Every node is scored by how few zones the pod would span, 100 for one zone. The zones of each pod come from its
recorded or predicted placement, unless `reconstructAvailable` is off; then the reported figures are used.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change
from navarch.model.resources import BoolArray, FloatArray
from navarch.plugins.kai.numa_zones import Zones
from navarch.plugins.numa_policies import STRICT

SCORE = 100.0
CANNOT_ALIGN = "node cannot NUMA-align the pod's resources under its Topology Manager policy"


class Numa(Plugin):
    """Predicts how kubelets align pods with NUMA zones, and keeps pods off nodes that would refuse them"""

    name = "numa"
    arguments = (
        Argument("ignoreList", "str", "", "resources that are not looked at, comma separated"),
        Argument("reconstructAvailable", "bool", True, "count what is free from pods' placements instead of believing reports"),
    )

    def open(self) -> None:
        session = self.session
        found = session.snapshot.objects.get("NodeResourceTopology", {})
        ignored = frozenset(name.strip() for name in self.given.text("ignoreList").split(",") if name.strip())
        as_reported = not self.given.flag("reconstructAvailable")
        zones = Zones(session, {name: spec for (_, name), spec in found.items()}, ignored, as_reported=as_reported)
        self.zones: Zones | None = zones if zones.nodes else None

    def node_filters(self) -> list[NodeFilter]:
        return [] if self.zones is None else [Alignable(self.zones)]

    def node_scorers(self) -> list[NodeScorer]:
        return [] if self.zones is None else [FewestZones(self.zones)]

    def same_place(self, task: int, node: int) -> bool:
        return self.zones is None or self.zones.stays(task, node)

    def on_allocate(self, change: Change) -> None:
        if self.zones is not None:
            self.zones.on_allocate(change)

    def on_deallocate(self, change: Change) -> None:
        if self.zones is not None:
            self.zones.on_deallocate(change)


def _rows(at: Figures) -> Iterable[tuple[int, int, int]]:
    """(column, node row, how many tasks more are imagined on it)"""
    columns = at.used.shape[1]
    rows = range(columns) if isinstance(at.rows, slice) else at.rows.tolist()
    added = [0] * columns if at.added is None else at.added.tolist()
    return zip(range(columns), rows, added)


class Alignable(NodeFilter):
    name = "numa"
    scope = Scope.ROW
    resolvable = True

    def __init__(self, zones: Zones) -> None:
        self.zones = zones

    def applies(self, task: TaskClass) -> bool:
        return self.zones.concerns(task.shape)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        nodes = self.zones.nodes
        out: BoolArray = np.ones(at.used.shape[1], dtype=bool)
        for column, row, added in _rows(at):
            here = nodes.get(row)
            if here is not None and here.policy in STRICT:
                out[column] = self.zones.would_take(task, row, added) is not None
        return out

    def explain(self, task: TaskClass, at: Figures) -> list[Refusal]:
        return [Refusal(CANNOT_ALIGN, ~self.mask(task, at), code="NUMA")]


class FewestZones(NodeScorer):
    name = "numa"
    scope = Scope.ROW
    weight = SCORE

    def __init__(self, zones: Zones) -> None:
        self.zones = zones

    def applies(self, task: TaskClass) -> bool:
        return self.zones.concerns(task.shape)

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        out: FloatArray = np.full(at.used.shape[1], 1 / self.zones.most_zones)
        for column, row, added in _rows(at):
            here = self.zones.nodes.get(row)
            if here is None:
                continue
            if not here.accounts_for(task.shape):
                out[column] = 1 / len(here.names)
            elif not self.zones.is_aligned(task, row):
                out[column] = 1.0
            else:
                part = self.zones.would_take(task, row, added)
                out[column] = 0.0 if part is None else 1 / max(int(part.any(axis=1).sum()), 1)
        return out
