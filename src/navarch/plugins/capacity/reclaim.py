"""Which tasks the capacity plugin lets a queue lose, one after another.

A task may go if its queue keeps its guarantee without it, and if one of these holds:

- the queue deserves none of the task's resources;
- the queue is above its deserved amount in a resource that the task holds. Unless the policy says otherwise, the reclaimer must
  request that resource.

Each task that goes lowers what its queue holds before the next one is judged. With ancestors counted, the same must
hold for the victim's ancestors, up to that many levels, that are not ancestors of the reclaimer too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from navarch.engine.node_functions import TaskClass
from navarch.engine.queue import ROOT
from navarch.model.resources import PODS, IntArray
from navarch.plugins.queues.amounts import fits

if TYPE_CHECKING:
    from navarch.plugins.capacity.plugin import Capacity


class ReclaimAttempt:
    """One search for victims. Without a reclaimer (whole-gang eviction), only the victim's own queue is checked."""

    def __init__(self, capacity: Capacity, reclaimer: TaskClass | None = None, queue: int = -1) -> None:
        self.capacity = capacity
        self.reclaimer = reclaimer
        self.queue = queue
        self.held: dict[int, IntArray] = {}
        """Queue number -> what it holds less what was taken."""

    def try_take(self, number: int, victim: TaskClass) -> bool:
        capacity = self.capacity
        if number in capacity.tree.broken or (self.reclaimer is not None and not _share_a_resource(victim, self.reclaimer)):
            return False
        held = self._of(number)
        if not fits(capacity.due.guarantee[number].values, held - victim.charge):
            return False
        if self._owed_nothing(number, victim):
            if self._both_owed_nothing_together(number):
                return False
        elif not self._above_deserved(number, victim):
            return False
        ancestors = self._ancestors_to_ask(number)
        for each in ancestors:
            if not self._owed_nothing(each, victim) and not self._above_deserved(each, victim):
                return False
        for each in (number, *ancestors):
            self.held[each] -= victim.charge
        return True

    def _of(self, number: int) -> IntArray:
        found = self.held.get(number)
        if found is None:
            found = self.held[number] = self.capacity.ledger.allocated[number].copy()
        return found

    def _owed_nothing(self, number: int, task: TaskClass) -> bool:
        """Nothing that the task holds is anything the queue deserves; pods count."""
        return not bool((self.capacity.counted[number] & (task.charge > 0)).any())

    def _above_deserved(self, number: int, victim: TaskClass) -> bool:
        capacity = self.capacity
        relevant = capacity.exceedable[number] & (victim.charge > 0)
        if self.reclaimer is not None and capacity.session.semantics.reclaim_minds_every_resource:
            relevant &= self.reclaimer.charge > 0
        return bool((relevant & (self._of(number) > capacity.due.deserved[number].values)).any())

    def _both_owed_nothing_together(self, number: int) -> bool:
        """Two queues under one near ancestor do not take from each other if neither deserves the resources."""
        capacity = self.capacity
        if self.reclaimer is None or not capacity.reclaim_level:
            return False
        mine, theirs = self._near(self.queue), self._near(number)
        return bool(mine & theirs) and self._owed_nothing(self.queue, self.reclaimer)

    def _near(self, number: int) -> set[int]:
        """Ancestors up to the level that counts, the root aside."""
        capacity = self.capacity
        near = (capacity.tree.above(number, depth) for depth in range(1, capacity.reclaim_level + 1))
        return {each for each in near if each is not None and capacity.queues[each].name != ROOT}

    def _ancestors_to_ask(self, number: int) -> list[int]:
        capacity = self.capacity
        if self.reclaimer is None:
            return []
        out = []
        for depth in range(1, capacity.reclaim_level + 1):
            theirs = capacity.tree.above(number, depth)
            if theirs is not None and capacity.queues[theirs].name != ROOT and theirs != capacity.tree.above(self.queue, depth):
                self._of(theirs)
                out.append(theirs)
        return out


def _share_a_resource(victim: TaskClass, reclaimer: TaskClass) -> bool:
    both = (victim.charge > 0) & (reclaimer.charge > 0)
    both[PODS] = False
    return bool(both.any())
