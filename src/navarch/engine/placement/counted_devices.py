"""Shared devices whose books are balanced by counting, as KAI keeps them (`devices_are_counted`).

`SharedDevices` derives what a group does to its node's whole devices from the group's three figures. Here every move changes the whole
devices by itself: a group takes an idle device for its first user, and gives it back when its last user is gone, if the idle
and the used devices of the node then add up. A promised device counts as used although it is idle, so the sums of a node with
promises can be off by one device, and stay off for the rest of the cycle. Decisions depend on that.

A group that a task has held in this cycle counts as there, also after the task was taken back.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.shared_devices import ONE, SharedDevices
from navarch.model.node_facts import labelled_gpu_counts
from navarch.model.resources import IntArray

if TYPE_CHECKING:
    from navarch.engine.session import Session

HOLDS: Final = 0
LEAVES: Final = 1
PROMISED: Final = 2


class CountedDevices(SharedDevices):
    def __init__(self, session: Session) -> None:
        self._taken = [0] * len(session.nodes)
        """Node -> devices that its groups have taken from what is idle."""
        self._promised_away = [0] * len(session.nodes)
        """Node -> devices that its groups have taken from what is being released."""
        self._all_leave: set[tuple[int, str]] = set()
        """Groups that count as one device being released."""
        self._held_before: set[tuple[int, str]] = set()
        self._forgotten: set[int] = set()
        """Tasks whose leaving share the node forgot when they were promised another device: it stays when they come back."""
        self._came_back: set[int] = set()
        """Tasks that were evicted several times, and the last eviction is taken back."""
        super().__init__(session)

    @cached_property
    def _count(self) -> list[int]:
        """Devices of each node, by its label or else by what it offers."""
        nodes = self.session.nodes
        whole = np.where(self.dim >= 0, nodes.allocatable[self.dim, np.arange(len(nodes))], 0)
        labelled = labelled_gpu_counts(self.session.snapshot)
        counts: list[int] = (np.where(labelled > 0, labelled, whole) // ONE).tolist()
        return counts

    # moves

    def _add_holder(self, kind: TaskClass, node: int, groups: tuple[str, ...], *, leaving: bool) -> None:
        self._add(kind, node, groups, LEAVES if leaving else HOLDS)

    def placed(self, kind: TaskClass, task: int, node: int, groups: tuple[str, ...], *, promised: bool) -> None:
        self.groups[task] = groups
        self._add(kind, node, groups, PROMISED if promised else HOLDS)

    def unplaced(self, kind: TaskClass, task: int, node: int, before: tuple[str, ...], *, promised: bool) -> None:
        self._remove(kind, node, self.groups.get(task, ()), PROMISED if promised else HOLDS)
        self.groups[task] = before

    def start_leaving(self, kind: TaskClass, task: int, node: int, *, promised: bool = False) -> None:
        groups = self.groups.get(task, ())
        self._remove(kind, node, groups, PROMISED if promised else HOLDS)
        self._add(kind, node, groups, LEAVES)

    def leave_again(self, kind: TaskClass, task: int, node: int) -> None:
        groups = self.groups.get(task, ())
        self._remove_leaving(kind, task, node, groups)
        self._add(kind, node, groups, LEAVES)

    def undo_leave_again(self, kind: TaskClass, task: int, node: int, *, promised: bool = False) -> None:
        self._come_back(kind, task, node, promised)
        self._came_back.add(task)

    def stop_leaving(self, kind: TaskClass, task: int, node: int, *, promised: bool = False) -> None:
        self._come_back(kind, task, node, promised)
        self._came_back.discard(task)

    def _come_back(self, kind: TaskClass, task: int, node: int, promised: bool) -> None:
        """The last eviction of a task that is taken back first puts it back; the others take it away and put it back again."""
        groups, held = self.groups.get(task, ()), PROMISED if promised else HOLDS
        if task in self._came_back:
            self._remove(kind, node, groups, held)
        else:
            self._remove_leaving(kind, task, node, groups)
        self._add(kind, node, groups, held)

    def keep_stale_share(self, kind: TaskClass, task: int, node: int) -> None:
        self._forgotten.add(task)

    def _remove_leaving(self, kind: TaskClass, task: int, node: int, groups: tuple[str, ...]) -> None:
        if task in self._forgotten:
            self._forgotten.discard(task)
        else:
            self._remove(kind, node, groups, LEAVES)

    # the books of one node

    def _add(self, kind: TaskClass, node: int, groups: tuple[str, ...], how: int) -> None:
        amount = int(self.amount(kind)[node])
        for group in groups:
            slot = self._slot(node, group)
            self.used[node, slot] += amount
            used = int(self.used[node, slot])
            if how == PROMISED:
                self.releasing[node, slot] -= amount
                if used - amount == int(self.releasing[node, slot]) + amount:
                    self._promise_away(node, 1)
            else:
                self._held_before.add((node, group))
                self.allocated[node, slot] += amount
                if how == LEAVES:
                    self.releasing[node, slot] += amount
                    if used == int(self.releasing[node, slot]):
                        self._mark(node, group)
                        self._take_surplus(node)
                else:
                    if used <= amount:
                        self._take_surplus(node)
                    self._unmark(node, group)

    def _remove(self, kind: TaskClass, node: int, groups: tuple[str, ...], how: int) -> None:
        amount = int(self.amount(kind)[node])
        for group in groups:
            slot = self._slot(node, group)
            self.used[node, slot] -= amount
            used = int(self.used[node, slot])
            if how == PROMISED:
                self.releasing[node, slot] += amount
                releasing = int(self.releasing[node, slot])
                if used + amount == releasing - amount or (used == 0 and releasing == 0):
                    self._promise_away(node, -1)
            else:
                self.allocated[node, slot] -= amount
                if how == LEAVES:
                    self.releasing[node, slot] -= amount
                if used <= 0 and self._count[node] >= self._idle(node) + self._in_use(node):
                    self._take(node, -1)
                if how == LEAVES:
                    if used <= 0:
                        self._unmark(node, group)
                elif used and used == int(self.releasing[node, slot]):
                    self._mark(node, group)
            if not (self.used[node, slot] or self.allocated[node, slot] or self.releasing[node, slot]):
                self._names[node][slot] = ""

    def _mark(self, node: int, group: str) -> None:
        if (node, group) not in self._all_leave:
            self._all_leave.add((node, group))
            self._release(node, 1)

    def _unmark(self, node: int, group: str) -> None:
        if (node, group) in self._all_leave:
            self._all_leave.discard((node, group))
            self._release(node, -1)

    def _take_surplus(self, node: int) -> None:
        """Take one idle device, if more devices are idle or used than the node has."""
        if self._count[node] < self._idle(node) + self._in_use(node):
            self._take(node, 1)

    def _idle(self, node: int) -> int:
        nodes, dim = self.session.nodes, int(self.dim[node])
        return int((int(nodes.allocatable[dim, node]) - int(nodes.used[dim, node])) / ONE) if dim >= 0 else 0

    def _in_use(self, node: int) -> int:
        """Whole devices that tasks hold or are promised, and groups that are used."""
        nodes, dim = self.session.nodes, int(self.dim[node])
        whole = 0
        if dim >= 0:
            held = int(nodes.used[dim, node]) + int(nodes.pipelined[dim, node])
            whole = held // ONE - self._taken[node] - self._promised_away[node]
        return whole + int((self.used[node] > 0).sum())

    def _take(self, node: int, count: int) -> None:
        dim = int(self.dim[node])
        if dim >= 0:
            self._taken[node] += count
            self.session.nodes.count_devices(dim, node, used=ONE * count)

    def _release(self, node: int, count: int) -> None:
        dim = int(self.dim[node])
        if dim >= 0:
            self.session.nodes.count_devices(dim, node, releasing=ONE * count)

    def _promise_away(self, node: int, count: int) -> None:
        dim = int(self.dim[node])
        if dim >= 0:
            self._promised_away[node] += count
            self.session.nodes.count_devices(dim, node, pipelined=ONE * count)

    # choosing

    def _spare(self, free: IntArray) -> IntArray:
        """What the books lack is taken from what groups have room for."""
        return self.whole(free)

    def _only_promised(self, node: int, slot: int, group: str, amount: int) -> bool:
        return (node, group) not in self._held_before or int(self.memory[node]) - int(self.allocated[node, slot]) < amount
