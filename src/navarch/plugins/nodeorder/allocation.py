"""NodeResourcesFit's scores: emptier nodes first, fuller nodes first, or by a curve over how full a node would be.

cpu and memory count with defaults for containers that ask for none (`Figures.scoring`), everything else as requested. A
resource takes part on a node that has it, and, unless it is cpu, memory or ephemeral storage, only if the pod asks for it.
All in whole numbers: each part is truncated, then their weighted mean.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.plugins.predicates.devices.extended_resources import DeviceCounts, class_behind

ALWAYS_SCORED = ("cpu", "memory", "ephemeral-storage")
CPU_AND_MEMORY = (("cpu", 1), ("memory", 1))
Shape = tuple[tuple[int, int], ...]


_EXACT = 1 << 46
"""Percentages of capacities below this are exact in floating point: 100 times as much has 53 bits."""


class NodeAmounts(Struct):
    """One resource for one class over some columns: capacity and use without the pod, and its request. `everywhere`: every column has
    some of it. `small`: every capacity is below `_EXACT`."""

    capacity: IntArray
    used: IntArray
    asked: int
    everywhere: bool
    small: bool

    @property
    def takes_part(self) -> BoolArray:
        return self.capacity > 0


def node_amounts(session: Session, task: TaskClass, at: Figures, resource: str, *, defaulted: bool) -> NodeAmounts | None:
    """None: the resource takes part nowhere."""
    dim = session.snapshot.space.find(resource)
    if dim is None or dim >= at.allocatable.shape[0]:
        return None
    if defaulted and dim < 2:
        asked, used = int(task.scoring[dim]), at.scoring[dim]
    else:
        asked, used = int(task.request[dim]), at.requested[dim]
    if not asked and resource not in ALWAYS_SCORED:
        return None
    capacity = at.allocatable[dim]
    least, most = session.nodes.extent(dim)
    everywhere, small = least > 0, least >= 0 and most < _EXACT
    if dim >= 2 and class_behind(session.snapshot, resource) is not None:
        devices = session.shared(DeviceCounts).of(resource)
        missing = capacity == 0
        capacity = np.where(missing, devices.total[at.rows], capacity)
        used = np.where(missing, devices.taken[at.rows], used)
        small = False
    return NodeAmounts(capacity, used, asked, everywhere or bool((capacity > 0).all()), small)


def curve(points: Shape, x: IntArray) -> IntArray:
    """Piecewise linear in whole numbers, constant beyond the ends; a falling step truncates toward zero."""
    out = np.full(x.shape, points[-1][1], dtype=np.int64)
    done = np.zeros(x.shape, dtype=bool)
    for number, (at, value) in enumerate(points):
        here = (x <= at) & ~done
        done |= here
        if number == 0:
            out[here] = value
        elif here.any():
            before_at, before = points[number - 1]
            rise = (value - before) * (x[here] - before_at)
            out[here] = before + np.where(rise < 0, -(-rise // (at - before_at)), rise // (at - before_at))
    return out


class Allocation(NodeScorer):
    """`strategy` is LeastAllocated, MostAllocated or RequestedToCapacityRatio; `shape` the last one's curve, 0 to 100."""

    name = "NodeResourcesFit"
    scope = Scope.ROW

    def __init__(
        self,
        session: Session,
        weight: float,
        strategy: str = "LeastAllocated",
        resources: Sequence[tuple[str, int]] = CPU_AND_MEMORY,
        shape: Shape = (),
    ) -> None:
        self.session = session
        self.weight = weight
        self.strategy = strategy
        self.resources = tuple(resources)
        self.shape = shape

    def identity(self) -> Hashable:
        return (Allocation, self.strategy, self.resources, self.shape)

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        size = at.requested.shape[1]
        parts = [node_amounts(self.session, task, at, resource, defaulted=True) for resource, _ in self.resources]
        if self.strategy != "RequestedToCapacityRatio" and (whole := self._everywhere(parts)) is not None:
            return whole
        total, weights = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        for found, (_, weight) in zip(parts, self.resources):
            if found is None:
                continue
            counts = found.takes_part
            capacity = found.capacity if found.everywhere else np.where(counts, found.capacity, 1)
            part = self._part(found.used + found.asked, capacity, found.small)
            if self.strategy == "RequestedToCapacityRatio":
                counts = counts & (part > 0)
            total += np.where(counts, weight * part, 0)
            weights += np.where(counts, weight, 0)
        some = weights > 0
        weights[~some] = 1
        if self.strategy == "RequestedToCapacityRatio":
            return np.where(some, np.floor(total / weights + 0.5), 0.0)
        return np.where(some, total // weights, 0).astype(float)

    def placement(self, tasks: Sequence[TaskClass], nodes: BoolArray) -> int | None:
        """How full the nodes become together, whatever the strategy says of single nodes."""
        at, total, weights = self.session.nodes, 0, 0
        for resource, weight in self.resources:
            dim = self.session.snapshot.space.find(resource)
            if dim is None or dim >= at.allocatable.shape[0]:
                continue
            asked = sum(int(task.scoring[dim] if dim < 2 else task.request[dim]) for task in tasks)
            has = nodes & (at.allocatable[dim] > 0)
            if not has.any() or (not asked and resource not in ALWAYS_SCORED):
                continue
            capacity = int(at.allocatable[dim][has].sum())
            used = int((at.scoring[dim] if dim < 2 else at.requested[dim])[has].sum())
            total, weights = total + weight * (min(used + asked, capacity) * 100 // capacity), weights + weight
        return total // weights if weights else 0

    def _everywhere(self, parts: Sequence[NodeAmounts | None]) -> FloatArray | None:
        """The score where every node has every resource, as in most clusters: the weights then are the same for all nodes. None: some
        node lacks a resource."""
        total, weights = None, 0
        for found, (_, weight) in zip(parts, self.resources):
            if found is None:
                continue
            if not found.everywhere:
                return None
            part = self._part(found.used + found.asked, found.capacity, found.small)
            if weight != 1:
                part = weight * part
            total, weights = part if total is None else total + part, weights + weight
        return None if total is None or weights <= 0 else (total // weights).astype(float)

    def _part(self, wanted: IntArray, capacity: IntArray, small: bool) -> IntArray:
        if self.strategy == "LeastAllocated":
            left = np.maximum(capacity - wanted, 0)
            left *= 100
            # Floating point numbers are divided in a fifth of the time.
            part: IntArray = (left / capacity).astype(np.int64) if small else left // capacity
            return part
        if self.strategy == "MostAllocated":
            return np.minimum(wanted, capacity) * 100 // capacity
        return curve(self.shape, np.where(wanted > capacity, 100, wanted * 100 // capacity))
