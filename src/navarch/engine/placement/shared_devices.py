"""Devices that tasks share: the users of each, how full each is, and the effect on a node's whole devices.

A *group* is one device of one node that several tasks share, known by a name; its figures are in units of device memory. A task
asks for the same amount on `count` devices. Per node there are as many slots as groups, each a column entry:

    used        of all tasks, promised ones included
    allocated   of all but promised ones
    releasing   of those that leave, less what is promised to others (so it may be negative)

These three figures of a group determine its effect on the node's whole devices: its first placed user takes one device, one
device is released once everything used of it is released, and one device is promised while the group has only promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from navarch.engine.figures import Rows
from navarch.engine.node_functions import TaskClass
from navarch.engine.points.gang_protocols import DeviceChoice, DeviceOrder
from navarch.model.gpus import GPU_RESOURCES, gpu_portion, mig_gpus
from navarch.model.node_facts import gpu_memories
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.model.status import ON_NODE, TaskStatus

if TYPE_CHECKING:
    from navarch.engine.session import Session

ONE: Final = 1000
"""A whole device in the model's units."""
_PIPELINED, _RELEASING = int(TaskStatus.PIPELINED), int(TaskStatus.RELEASING)
UNSHARED: Final = "the pod asks for a part of a GPU (gpu-fraction or gpu-memory), and this policy places whole GPUs only"
Select = Rows | slice
Slots = npt.NDArray[np.int64]


def shares_devices(task: TaskClass) -> bool:
    devices = task.shape.devices
    return devices is not None and bool(devices.fraction or devices.memory)


class SharedDevices:
    def __init__(self, session: Session) -> None:
        self.session = session
        nodes = session.nodes
        size = len(nodes)
        self.memory: IntArray = gpu_memories(session.snapshot)
        """Of each device of the node."""
        names = session.snapshot.resource_names
        whole = [names.index(name) for name in GPU_RESOURCES if name in names]
        self.dims: list[int] = whole
        """Resources that are whole devices."""
        self.slices: list[tuple[int, int]] = [(i, n) for i, name in enumerate(names) if (n := mig_gpus(name))]
        """Resources that are slices of devices, and how many devices one counts for."""
        self.dim: IntArray = np.full(size, whole[0] if whole else -1, dtype=np.int64)
        for dim in whole[1:]:
            self.dim = np.where((nodes.allocatable[whole[0]] == 0) & (nodes.allocatable[dim] > 0), dim, self.dim)
        width = max([1, *(int(nodes.allocatable[dim].max(initial=0)) // ONE for dim in whole)])
        self.used: Slots = np.zeros((size, width), dtype=np.int64)
        self.allocated: Slots = np.zeros((size, width), dtype=np.int64)
        self.releasing: Slots = np.zeros((size, width), dtype=np.int64)
        self._names: dict[int, list[str]] = {}
        """Node -> the group of each of its slots, empty where there is none; nodes without a group are not in it."""
        self.groups: dict[int, tuple[str, ...]] = {}
        """Task row -> the groups that it holds or is promised."""
        self._made = 0
        self._needs: dict[int, IntArray] = {}
        tasks, shapes = session.snapshot.tasks, session.snapshot.shapes
        sharing = np.array([s.devices is not None and bool(s.devices.fraction or s.devices.memory) for s in shapes], dtype=bool)
        self.any_shared = bool(sharing.any())
        there = tasks.alive & ON_NODE[session.status] & (session.node >= 0)
        for task in np.flatnonzero(there & sharing[session.shape]).tolist() if self.any_shared else ():
            groups = session.task(task).gpu_groups
            kind = session.class_of(task)
            if groups:
                node = int(session.node[task])
                self.groups[task] = groups
                self._add_holder(kind, node, groups, leaving=session.status[task] == _RELEASING and task not in session.stuck)

    # moves

    def _add_holder(self, kind: TaskClass, node: int, groups: tuple[str, ...], *, leaving: bool) -> None:
        """A task that the snapshot has on its groups."""
        self._hold(kind, node, groups, 1)
        if leaving:
            self._leave(kind, node, groups, 1)

    def placed(self, kind: TaskClass, task: int, node: int, groups: tuple[str, ...], *, promised: bool) -> None:
        self.groups[task] = groups
        (self._promise if promised else self._hold)(kind, node, groups, 1)

    def unplaced(self, kind: TaskClass, task: int, node: int, before: tuple[str, ...], *, promised: bool) -> None:
        """A placement is taken back; the task holds what it held before."""
        (self._promise if promised else self._hold)(kind, node, self.groups.get(task, ()), -1)
        self.groups[task] = before

    def start_leaving(self, kind: TaskClass, task: int, node: int, *, promised: bool = False) -> None:
        """A task is evicted from its groups. `promised`: they were only promised to it; it stands there as leaving all the same."""
        groups = self.groups.get(task, ())
        if promised:
            self._promise(kind, node, groups, -1)
            self._hold(kind, node, groups, 1)
        self._leave(kind, node, groups, 1)

    def stop_leaving(self, kind: TaskClass, task: int, node: int, *, promised: bool = False) -> None:
        """The opposite of `start_leaving`."""
        groups = self.groups.get(task, ())
        self._leave(kind, node, groups, -1)
        if promised:
            self._hold(kind, node, groups, -1)
            self._promise(kind, node, groups, 1)

    def _hold(self, kind: TaskClass, node: int, groups: tuple[str, ...], sign: int) -> None:
        amount = sign * int(self.amount(kind)[node])
        for group in groups:
            self._change(node, group, amount, amount, 0)

    def _leave(self, kind: TaskClass, node: int, groups: tuple[str, ...], sign: int) -> None:
        amount = sign * int(self.amount(kind)[node])
        for group in groups:
            self._change(node, group, 0, 0, amount)

    def _promise(self, kind: TaskClass, node: int, groups: tuple[str, ...], sign: int) -> None:
        amount = sign * int(self.amount(kind)[node])
        for group in groups:
            self._change(node, group, amount, 0, -amount)

    def _change(self, node: int, group: str, used: int, allocated: int, releasing: int) -> None:
        slot = self._slot(node, group)
        before = self._whole(node, slot)
        self.used[node, slot] += used
        self.allocated[node, slot] += allocated
        self.releasing[node, slot] += releasing
        after = self._whole(node, slot)
        dim = int(self.dim[node])
        if dim >= 0 and before != after:
            grown = [ONE * (now - was) for was, now in zip(before, after, strict=True)]
            self.session.nodes.count_devices(dim, node, used=grown[0], releasing=grown[1], pipelined=grown[2])
        if not (self.used[node, slot] or self.allocated[node, slot] or self.releasing[node, slot]):
            self._names[node][slot] = ""

    def _whole(self, node: int, slot: int) -> tuple[int, int, int]:
        used, allocated, releasing = self.used[node, slot], self.allocated[node, slot], self.releasing[node, slot]
        return int(allocated > 0), int(allocated > 0 and releasing >= used), int(used > 0 and allocated == 0)

    def _slot(self, node: int, group: str) -> int:
        names = self._names_on(node)
        if group in names:
            return names.index(group)
        if "" not in names:
            self._widen()
        slot = names.index("")
        names[slot] = group
        return slot

    def _names_on(self, node: int) -> list[str]:
        found = self._names.get(node)
        if found is None:
            found = self._names[node] = [""] * self.used.shape[1]
        return found

    def _widen(self) -> None:
        more = np.zeros((len(self.used), 4), dtype=np.int64)
        self.used, self.allocated, self.releasing = (np.hstack([a, more]) for a in (self.used, self.allocated, self.releasing))
        for names in self._names.values():
            names += [""] * 4

    # figures

    def amount(self, kind: TaskClass) -> IntArray:
        """(N,): what a task of the class takes of each of its devices, on each node: all of a whole one, nothing of none."""
        found = self._needs.get(kind.shape_number)
        if found is None:
            devices = kind.shape.devices
            if devices is not None and devices.memory:
                found = np.full(len(self.memory), devices.memory)
            elif devices is not None and devices.fraction:
                found = devices.fraction * self.memory // ONE
            else:
                found = self.memory if any(kind.request[dim] for dim in self.dims) else np.zeros_like(self.memory)
            self._needs[kind.shape_number] = found
        return found

    def portion(self, kind: TaskClass) -> FloatArray:
        """(N,): the same as a part of a device, in hundredths rounded up."""
        out: FloatArray = np.ceil(100 * self.amount(kind) / self.memory) / 100
        return out

    def group_fits(self, kind: TaskClass, rows: Select = slice(None)) -> BoolArray:
        """(M, slots): groups with room for the task, perhaps only once others have left."""
        used, allocated, releasing = self.used[rows], self.allocated[rows], self.releasing[rows]
        room = (self.memory[rows] - self.amount(kind)[rows])[:, None] - allocated + releasing
        fits: BoolArray = (used != 0) & (room >= 0) & (allocated != releasing)
        return fits

    def whole(self, at: IntArray) -> IntArray:
        """Whole devices in a resource table of nodes, rounded down."""
        total: IntArray = np.sum([at[dim] for dim in self.dims], axis=0) if self.dims else np.zeros(at.shape[1], dtype=np.int64)
        return total // ONE

    def fits(self, kind: TaskClass, free: IntArray, rows: Select) -> BoolArray:
        """Nodes with enough devices for the task, given a table of free resources of these rows."""
        devices = kind.shape.devices
        assert devices is not None
        groups = np.minimum(self.group_fits(kind, rows).sum(axis=1), devices.count)
        portion = self.portion(kind)[rows]
        sound = (portion <= 1) | (portion == np.floor(portion))
        fits: BoolArray = sound & (self._spare(free) + groups >= devices.count)
        return fits

    def _spare(self, free: IntArray) -> IntArray:
        """Whole devices that shares may open."""
        return np.maximum(self.whole(free), 0)

    def fits_on(self, kind: TaskClass, node: int) -> bool:
        """Whether the node has enough devices for the task, those that are being released counted."""
        rows = np.array([node])
        return bool(self.fits(kind, self.session.nodes.future_idle[:, rows], rows)[0])

    def freed_by(self, tasks: Sequence[int]) -> IntArray:
        """(R,): the most whole devices that are free once these tasks left. A device is free only when all its users left, so this
        is a bound."""
        freed: IntArray = np.zeros(self.session.nodes.allocatable.shape[0], dtype=np.int64)
        for task in tasks:
            groups = self.groups.get(task)
            if groups and (dim := int(self.dim[self.session.node[task]])) >= 0:
                freed[dim] += ONE * len(groups)
        return freed

    def may_stay(self, kind: TaskClass, task: int, node: int) -> bool:
        """Whether a task that leaves could stay: its devices have room for it beside what is promised of them, and none of them is
        promised as a whole."""
        amount, needed = int(self.amount(kind)[node]), 0
        for group in self.groups.get(task, ()):
            slot = self._slot(node, group)
            if int(self.allocated[node, slot] - self.releasing[node, slot]) + amount > int(self.memory[node]):
                return False
            needed += self._whole(node, slot)[1]
        dim = int(self.dim[node])
        return not needed or dim < 0 or int(self.session.nodes.future_idle[dim, node]) >= ONE * needed

    def idle_parts(self) -> FloatArray:
        """(N,): devices that are free, parts of shared ones and slices counted."""
        nodes = self.session.nodes
        free = self._counted(nodes.allocatable - nodes.used)
        if not self.any_shared:
            return free
        memory = self.memory[:, None]
        parts = np.where(self.allocated > 0, 1 - np.ceil(100 * self.allocated / memory) / 100, 0.0)
        out: FloatArray = free + parts.sum(axis=1)
        return out

    def releasing_parts(self) -> FloatArray:
        """(N,): devices that are being released, parts of shared ones and slices counted."""
        nodes = self.session.nodes
        free = self._counted(nodes.releasing - nodes.pipelined)
        if not self.any_shared:
            return free
        partly = (self.releasing > 0) & ((self.used <= 0) | (self.releasing != self.used))
        parts = np.where(partly, np.ceil(100 * self.releasing / self.memory[:, None]) / 100, 0.0)
        out: FloatArray = free + parts.sum(axis=1)
        return out

    def _counted(self, table: IntArray) -> FloatArray:
        out: FloatArray = np.zeros(table.shape[1])
        for dim in self.dims:
            out += table[dim] / ONE
        for dim, count in self.slices:
            out += count * table[dim] / ONE
        return out

    def gpus_of(self, kind: TaskClass, memory: int) -> float:
        """Devices that a task counts for. `memory` is that of the device by which shares of it are measured; 0: not at all."""
        devices = kind.shape.devices
        total = sum(int(kind.request[dim]) for dim in self.dims) / ONE
        total += sum(count * int(kind.request[dim]) for dim, count in self.slices) / ONE
        if devices is not None and devices.fraction:
            total += devices.count * devices.fraction / ONE
        elif devices is not None and devices.memory and memory:
            total += devices.count * gpu_portion(devices.memory, memory)
        return total

    def wants_gpu(self, kind: TaskClass) -> bool:
        return shares_devices(kind) or self.gpus_of(kind, 0) > 0

    # choosing

    def choose(self, kind: TaskClass, node: int, now: bool) -> tuple[tuple[str, ...], bool] | None:
        """Groups for a task on the node, and whether it can only be promised them. `now`: the node has room at once."""
        session, nodes = self.session, self.session.nodes
        devices = kind.shape.devices
        assert devices is not None
        rows = np.array([node])
        fits = np.flatnonzero(self.group_fits(kind, rows)[0]).tolist()
        idle = nodes.allocatable[:, rows] - nodes.used[:, rows]
        leaving = nodes.releasing[:, rows] - nodes.pipelined[:, rows]
        whole = _trunc(self.whole_sum(idle)) + _trunc(self.whole_sum(leaving))
        scoring = session.implementing(DeviceOrder)
        memory, names = int(self.memory[node]), self._names_on(node)
        by_slot, by_whole = self._choice(kind, node)
        entries = [
            (-by_slot[slot] - sum(p.device_score(int(self.used[node, slot]) / memory) for p in scoring), 0, names[slot], slot)
            for slot in fits
        ]
        entries += [(-by_whole - sum(p.whole_score() for p in scoring), 1, "", -1)] * max(whole, 0)
        chosen = sorted(entries)[: devices.count]
        if len(chosen) < devices.count:
            return None
        amount = int(self.amount(kind)[node])
        promised = not now
        groups: list[str] = []
        for _, _, name, slot in chosen:
            if slot < 0:
                name = self._new_name()
            elif self._only_promised(node, slot, name, amount):
                promised = True
            groups.append(name)
        return tuple(groups), promised

    def _only_promised(self, node: int, slot: int, group: str, amount: int) -> bool:
        """Whether a task can have a share of the group only once others have left."""
        allocated = int(self.allocated[node, slot])
        return not allocated or int(self.memory[node]) - allocated < amount

    def _choice(self, kind: TaskClass, node: int) -> tuple[list[float], float]:
        """What plugins that look at the pod and its node add: for every slot, and for a whole device."""
        by_slot, by_whole = np.zeros(self.used.shape[1]), 0.0
        for plugin in self.session.implementing(DeviceChoice):
            slots, whole = plugin.device_scores(kind, node)
            by_slot, by_whole = by_slot + slots, by_whole + whole
        return by_slot.tolist(), by_whole

    @cached_property
    def _known(self) -> frozenset[str]:
        specs = self.session.snapshot.tasks.specs
        return frozenset(group for spec in specs if spec is not None for group in spec.gpu_groups)

    def _new_name(self) -> str:
        """A name that no group has or had, in this cycle or in another: binders know a device by it, on whichever node it is. So
        it begins with what the session was given for that."""
        while True:
            self._made += 1
            name = f"{self.session.devices_named}-{self._made}"
            if name not in self._known:
                return name

    def whole_sum(self, table: IntArray) -> int:
        return sum(int(table[dim, 0]) for dim in self.dims)


def _trunc(amount: int) -> int:
    return int(amount / ONE)
