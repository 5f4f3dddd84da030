"""NUMA zones of nodes: the free resources of each zone, and the zones that a pod would get.

Kubelets align cpus, memory and devices of a pod by a policy. The scheduler predicts the result, so that it sends no pod to a node
that would refuse it. The accounts are exact within a cycle: placements and promises take from the zones at once, evictions give
back at once, and undo restores both. Resources that no zone of the node reports are not aligned there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from navarch.engine.node_functions import TaskClass
from navarch.engine.points.protocols import Change
from navarch.model.objects.numa import NodeNumaSpec
from navarch.model.resources import IntArray, in_bytes
from navarch.model.spec import Requests, Shape
from navarch.model.status import TaskStatus
from navarch.plugins.numa_policies import NONE, RESTRICTED, SINGLE, fewest_zones

if TYPE_CHECKING:
    from navarch.engine.session import Session

_HOLDING: Final = frozenset(int(s) for s in (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING))


class NodeZones:
    """The zones of one node: (zones, resources) of what they have and what is free."""

    def __init__(self, spec: NodeNumaSpec, ignored: frozenset[str], *, as_reported: bool) -> None:
        self.policy = spec.policy
        self.scope = spec.scope
        self.names = [zone.name for zone in spec.zones]
        self.resources = sorted({name for zone in spec.zones for name, _ in zone.allocatable} - ignored)
        self.units = np.array([1 if name == "cpu" or in_bytes(name) else 1000 for name in self.resources])
        self.allocatable = self._table([zone.allocatable for zone in spec.zones])
        self.free = self._table([zone.available for zone in spec.zones]) if as_reported else self.allocatable.copy()
        self.kind = (self.policy, self.scope, tuple(self.resources), self.allocatable.tobytes())
        """Nodes of one kind with the same free zones have the same answers."""

    def _table(self, zones: Sequence[Requests]) -> IntArray:
        amounts = [dict(zone) for zone in zones]
        return np.array([[each.get(name, 0) for name in self.resources] for each in amounts], dtype=np.int64)

    def recorded(self, placement: Sequence[tuple[str, Requests]]) -> IntArray | None:
        """What a recorded placement holds in each zone; None if it names a zone that is not there."""
        held = np.zeros_like(self.allocatable)
        for zone, requests in placement:
            if zone not in self.names:
                return None
            for name, amount in requests:
                if name in self.resources:
                    held[self.names.index(zone), self.resources.index(name)] += amount
        return held

    def amounts(self, part: IntArray, zones: Sequence[int]) -> tuple[tuple[str, Requests], ...]:
        """The placement as it is recorded: by the names of zones, without what is zero."""
        named = [tuple((name, int(n)) for name, n in zip(self.resources, part[zone].tolist()) if n) for zone in zones]
        return tuple(zip((self.names[zone] for zone in zones), named))

    def accounts_for(self, shape: Shape) -> bool:
        """Whether the pod takes from the zones: its kubelet aligns something of it, or would if the amounts were whole."""
        if self.policy == NONE:
            return False
        return is_guaranteed(shape) or any(name in self.resources and not _is_basic(name) for name, _ in shape.requests)

    def place(self, needs: Sequence[tuple[bool, IntArray]]) -> IntArray | None:
        """What the pod would take of each zone; None if its kubelet would refuse it. `needs`: (passing, amounts) one after
        the other; a passing need is met from what is free now and given back before the next."""
        taken = np.zeros_like(self.free)
        for passing, need in needs:
            if not need.any():
                continue
            part = self._align(need, self.free - taken)
            if part is None:
                return None
            if not passing:
                taken += part
        return taken

    def _align(self, need: IntArray, free: IntArray) -> IntArray | None:
        zones = self._zones_for(need, free)
        if zones is None:
            return None
        part, left = np.zeros_like(free), need.copy()
        for zone in zones:
            part[zone] = np.minimum(left, np.maximum(free[zone], 0))
            left = left - part[zone]
        return part

    def _zones_for(self, need: IntArray, free: IntArray) -> Sequence[int] | None:
        asked = need > 0
        if self.policy == SINGLE:
            return next(((zone,) for zone in range(len(free)) if (free[zone] >= need)[asked].all()), None)
        if self.policy == RESTRICTED:
            widths = {fewest_zones(int(need[r]), self.allocatable[:, r].tolist()) for r in np.flatnonzero(asked).tolist()}
            if len(widths) != 1 or 0 in widths:
                return None
            every = combinations(range(len(free)), widths.pop())
            return next((zones for zones in every if (free[list(zones)].sum(axis=0) >= need)[asked].all()), None)
        return self._greedy(need, free)

    def _greedy(self, need: IntArray, free: IntArray) -> list[int] | None:
        """Zones that cover most of what is missing, in the order in which they are chosen; None if all zones are too little. A count
        of devices weighs as little beside bytes and millicores as it does in KAI's sum."""
        missing, chosen = need.copy(), list[int]()
        while missing.any():
            covered = np.minimum(missing, np.maximum(free, 0)) / self.units
            gains = [0.0 if zone in chosen else float(gain) for zone, gain in enumerate(covered.sum(axis=1))]
            best = int(np.argmax(gains))
            if not gains[best]:
                return None
            chosen.append(best)
            missing = missing - np.minimum(missing, np.maximum(free[best], 0))
        return chosen


class Zones:
    """All nodes that report zones, and what each task holds there. It follows every change in the session."""

    def __init__(self, session: Session, specs: Mapping[str, NodeNumaSpec], ignored: frozenset[str], *, as_reported: bool) -> None:
        self.session = session
        self.nodes: dict[int, NodeZones] = {}
        for name, spec in sorted(specs.items()):
            row = session.snapshot.nodes.row(name)
            if row is not None and spec.zones:
                self.nodes[row] = NodeZones(spec, ignored, as_reported=as_reported)
        self.reported = frozenset(name for zones in self.nodes.values() for name in zones.resources)
        self.most_zones = max((len(zones.names) for zones in self.nodes.values()), default=1)
        self._held: dict[int, list[tuple[int, IntArray]]] = {}
        """Task row -> (node, amounts) of where it is, and below it of where it was before it was moved."""
        self._needs: dict[tuple[int, int], list[tuple[bool, IntArray]]] = {}
        self._answers: dict[tuple[object, ...], IntArray | None] = {}
        tasks = session.snapshot.tasks
        for task in np.flatnonzero(tasks.alive & (session.node >= 0)).tolist():
            here = self.nodes.get(int(session.node[task]))
            if here is None or int(session.status[task]) not in _HOLDING:
                continue
            held = here.recorded(session.task(task).numa_placement)
            if held is None or not held.any():
                continue
            if not as_reported:
                here.free -= held
            if here.accounts_for(session.task(task).shape):
                self._held[task] = [(int(session.node[task]), held)]

    # questions

    def concerns(self, shape: Shape) -> bool:
        """Whether any of the pod's resources is aligned on some node."""
        return is_guaranteed(shape) or any(name in self.reported and not _is_basic(name) for name, _ in shape.requests)

    def would_take(self, task: TaskClass, row: int, already: int = 0) -> IntArray | None:
        """What a task of the class would take on a node with zones; `already`: after this many further tasks of the class."""
        here = self.nodes[row]
        if not already:
            key = (task.shape_number, here.kind, here.free.tobytes())
            if key not in self._answers:
                self._answers[key] = here.place(self._needs_of(task.shape, task.shape_number, row))
            return self._answers[key]
        needs = self._needs_of(task.shape, task.shape_number, row)
        before = here.free
        here.free = before.copy()
        try:
            for _ in range(already):
                part = here.place(needs)
                if part is None:
                    return None
                here.free -= part
            return here.place(needs)
        finally:
            here.free = before

    def is_aligned(self, task: TaskClass, row: int) -> bool:
        """Whether anything that the task asks for is aligned on the node."""
        return any(need.any() for _, need in self._needs_of(task.shape, task.shape_number, row))

    def stays(self, task: int, row: int) -> bool:
        """Whether an evicted task, put back on this node, would get the very zones that it had."""
        held = self._held.get(task)
        if row not in self.nodes or not held or held[-1][0] != row:
            return True
        part = self.would_take(self.session.class_of(task), row)
        return part is not None and bool((part == held[-1][1]).all())

    def _needs_of(self, shape: Shape, number: int, row: int) -> list[tuple[bool, IntArray]]:
        found = self._needs.get((number, row))
        if found is None:
            here = self.nodes[row]
            found = self._needs[number, row] = needs_of(shape, here.scope, here.resources)
        return found

    # what moves

    def on_allocate(self, change: Change) -> None:
        for task, row in zip(change.tasks, change.nodes):
            if change.undone:
                self._move(task, -1)
            elif row in self.nodes and self.nodes[row].accounts_for(change.task.shape):
                part = self.would_take(change.task, row)
                if part is not None:
                    self._held.setdefault(task, []).append((row, part))
                    self._move(task, -1)
                    self._note(task)

    def on_deallocate(self, change: Change) -> None:
        for task, row in zip(change.tasks, change.nodes):
            held = self._held.get(task)
            if not held or held[-1][0] != row:
                continue
            self._move(task, 1)
            if change.undone:
                held.pop()
                self._note(task)

    def _note(self, task: int) -> None:
        """Tell the session which zones the task is given, and what it takes of each."""
        held = self._held[task]
        row, part = held[-1] if held else (-1, np.zeros((0, 0), dtype=np.int64))
        zones = tuple(np.flatnonzero(part.any(axis=1)).tolist()) if held else ()
        self.session.zones[task] = zones
        self.session.numa_placements[task] = self.nodes[row].amounts(part, zones) if zones else ()

    def _move(self, task: int, sign: int) -> None:
        held = self._held.get(task)
        if held:
            row, part = held[-1]
            self.nodes[row].free += sign * part


def is_guaranteed(shape: Shape) -> bool:
    """The class of service that the pod's status tells, else the one its containers make."""
    return dict(shape.hints).get("qosClass", shape.qos) == "Guaranteed"


def needs_of(shape: Shape, scope: str, resources: Sequence[str]) -> list[tuple[bool, IntArray]]:
    """What is aligned at once, in order: the pod as a whole, or each container; (is given back before the next, amounts)."""
    guaranteed = is_guaranteed(shape)
    parts = [(part.phase, _aligned(part.requests, resources, guaranteed)) for part in shape.parts]
    whole = _aligned(shape.requests, resources, guaranteed)
    if not parts:
        return [(False, whole)]
    if scope == "container":
        return [(True, need) for phase, need in parts if phase == "init"] + [(False, need) for phase, need in parts if phase != "init"]
    if "cpu" in resources and guaranteed:
        whole[resources.index("cpu")] = _peak(parts, resources.index("cpu"))
    return [(False, whole)]


def _aligned(requests: Requests, resources: Sequence[str], guaranteed: bool) -> IntArray:
    """Only whole cpus are pinned, and cpu and memory only for guaranteed pods."""
    found = dict(requests)
    amounts = [found.get(name, 0) if guaranteed or not _is_basic(name) else 0 for name in resources]
    return np.array([0 if name == "cpu" and n % 1000 else n for name, n in zip(resources, amounts)], dtype=np.int64)


def _peak(parts: Sequence[tuple[str, IntArray]], dim: int) -> int:
    """Containers and sidecars add up; an init container runs beside the sidecars before it."""
    total = sum(int(need[dim]) for phase, need in parts if phase != "init")
    sidecars = peak = 0
    for phase, need in parts:
        if phase == "sidecar":
            sidecars += int(need[dim])
            peak = max(peak, sidecars)
        elif phase == "init":
            peak = max(peak, sidecars + int(need[dim]))
    return max(total, peak)


def _is_basic(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")
