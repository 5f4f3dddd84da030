"""How far down the tree of queues each unit is owed: the order behind every eviction of strict mode.

A unit starts and ends together: the minimum of a gang, or one pod beyond it. The units of a queue are walked by rank, and each that
fits into what is left of what the queue is owed counts as owed by it; then the same in each ancestor, units that are owed further
down first. So each unit has a depth:

    2 + level   owed down to the queue at this level, 0 being a queue at the top
    1           owed in a lump: of all it asks, at least half is left of what its queue is owed
    0           borrowed

Ranks and amounts are all that counts, never what was placed first. So an eviction by this order makes the owed sets better, and
evictions end (docs/evictions.md has the proof). What a pod count limits is not owed: a walk leaves pods aside.

The arrays of units are in the order of rank. The answers for queues that a waiting unit does not touch are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from navarch.engine.figures import Rows
from navarch.model.resources import BoolArray, IntArray

BORROWED, LUMP, TOP = 0, 1, 2


@dataclass(frozen=True, slots=True)
class QueueShares:
    """What queues are owed. `amounts`: (queues, resources). `lines[number]`: the numbers of a queue's line from the top down to the
    queue itself; () for one that is owed nothing."""

    amounts: IntArray
    lines: Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Units:
    """What runs or is promised a place, in the order of rank: their numbers say who comes first."""

    queue: Rows
    job: Rows
    surplus: BoolArray
    amount: IntArray
    """(units, resources)"""


@dataclass(frozen=True, slots=True)
class WaitingUnit:
    """A unit that waits, to be asked as though it ran: it comes before unit number `before`."""

    before: int
    queue: int
    job: int
    surplus: bool
    amount: IntArray


@dataclass(frozen=True, slots=True)
class Members:
    """Units of a queue and of those below it by rank, also one that waits. `index`: their numbers, that of a waiting unit the last."""

    index: Rows
    amount: IntArray
    job: Rows
    surplus: BoolArray


class OwedUnits:
    def __init__(self, units: Units, shares: QueueShares, total: IntArray) -> None:
        self.units = units
        self._shares = shares
        self._total = total
        lines = shares.lines
        inner = {number for line in lines for number in line[:-1]}
        self._levels = sorted({(len(line), line) for line in lines if line}, reverse=True)
        """Queues with what leads to them, those furthest down first."""
        self._leaves = [number for number, line in enumerate(lines) if line and number not in inner]
        self._below: dict[int, list[int]] = {}
        """Queue -> itself and those below it."""
        for number, line in enumerate(lines):
            for above in line:
                self._below.setdefault(above, []).append(number)
        self._by_queue: Rows = np.argsort(units.queue, kind="stable")
        self._first_of: list[int] = np.searchsorted(units.queue[self._by_queue], np.arange(len(lines) + 1)).tolist()
        self._within = self._queues_within_share(inner)
        self._indices: dict[int, Rows] = {}
        self._counted: dict[int, Rows] = {}
        self._lumps: dict[int, int | None] = {}
        self._depth: IntArray | None = None

    def _queues_within_share(self, inner: set[int]) -> frozenset[int]:
        """Queues at the end of their line that are owed all that runs in them: most queues, and they need no walk."""
        amounts, lines = self._shares.amounts, self._shares.lines
        end = np.array([line[-1] if line and line[-1] not in inner else -1 for line in lines], dtype=np.intp)[self.units.queue]
        sums = np.zeros_like(amounts)
        np.add.at(sums, end[end >= 0], self.units.amount[end >= 0])
        return frozenset(np.flatnonzero(((sums <= amounts) | (sums == 0)).all(axis=1)).tolist()) - inner

    def depths(self, waiting: WaitingUnit | None = None) -> IntArray:
        """The depth of each unit; the last is that of the one that waits. What its job holds of it already is a part of it."""
        if self._depth is None:
            self._depth = np.zeros(len(self.units.queue) + 1, dtype=np.int64)
            for _, line in self._levels:
                self._count(line, self._depth, None)
        depth = self._depth.copy()
        mine = () if waiting is None else self._shares.lines[waiting.queue]
        if mine:
            depth[self._members(mine[0])] = BORROWED
            for _, line in self._levels:
                if line[0] == mine[0]:
                    self._count(line, depth, waiting if line[-1] in mine else None)
        self._deal_lumps(depth, waiting, mine)
        return depth

    def _count(self, line: tuple[int, ...], depth: IntArray, waiting: WaitingUnit | None) -> None:
        """Note the units that the queue at the end of the line is owed."""
        number = line[-1]
        found = self._counted.get(number) if waiting is None else None
        if found is None and waiting is None and number in self._within:
            found = self._counted[number] = self._members(number)
        elif found is None:
            members = self._with(number, waiting)
            found = members.index[walk(members, self._shares.amounts[number], depth[members.index] > BORROWED)]
            if waiting is None:
                self._counted[number] = found
        depth[found] = np.maximum(depth[found], TOP + len(line) - 1)

    def _members(self, number: int) -> Rows:
        found = self._indices.get(number)
        if found is None:
            parts = [self._by_queue[self._first_of[each] : self._first_of[each + 1]] for each in self._below.get(number, ())]
            found = self._indices[number] = parts[0] if len(parts) == 1 else np.sort(np.concatenate([self._by_queue[:0], *parts]))
        return found

    def _with(self, number: int, waiting: WaitingUnit | None) -> Members:
        units, index = self.units, self._members(number)
        if waiting is None:
            return Members(index, units.amount[index], units.job[index], units.surplus[index])
        if not waiting.surplus:
            index = index[(units.job[index] != waiting.job) | units.surplus[index]]
        at = int(np.searchsorted(index, waiting.before))
        return Members(
            np.insert(index, at, len(units.queue)),
            np.insert(units.amount[index], at, waiting.amount, axis=0),
            np.insert(units.job[index], at, waiting.job),
            np.insert(units.surplus[index], at, waiting.surplus),
        )

    def _deal_lumps(self, depth: IntArray, waiting: WaitingUnit | None, mine: tuple[int, ...]) -> None:
        """Of each queue the first unit of which at least half is left of what the queue is owed, queue by queue, as far as the cluster
        has more than all owed units take. `mine`: the line of the waiting unit; below its first queue depths are not those without
        the unit."""
        owed = depth >= TOP
        taken = self.units.amount[owed[:-1]].sum(axis=0)
        if waiting is not None and owed[-1]:
            taken = taken + waiting.amount
        for number in self._leaves:
            own = waiting if waiting is not None and waiting.queue == number else None
            if number in self._within and own is None and number not in mine:
                continue
            if self._shares.lines[number][0] in mine[:1]:
                first = self._first_lump(number, depth, own)
            else:
                if number not in self._lumps:
                    self._lumps[number] = self._first_lump(number, depth, None)
                first = self._lumps[number]
            if first is None:
                continue
            asked = waiting.amount if waiting is not None and first == len(self.units.queue) else self.units.amount[first]
            if ((taken + asked <= self._total) | (asked == 0)).all():
                depth[first] = LUMP
                taken = taken + asked

    def _first_lump(self, number: int, depth: IntArray, waiting: WaitingUnit | None) -> int | None:
        members = self._with(number, waiting)
        owed = depth[members.index] > BORROWED
        left = self._shares.amounts[number] - members.amount[owed].sum(axis=0)
        fits = ~owed & ((2 * left >= members.amount) | (members.amount == 0)).all(axis=1)
        if members.surplus.any():
            fits &= ~(members.surplus & np.isin(members.job, members.job[~members.surplus & ~owed]))
        return int(members.index[fits.argmax()]) if fits.any() else None


def walk(members: Members, limit: IntArray, first: BoolArray) -> BoolArray:
    """Which units count: those in `first` all, then each in turn that fits into what is left. A pod beyond the minimum of a gang
    counts only where the minimum does."""
    amount, counted = members.amount, first.copy()
    left = limit - amount[first].sum(axis=0)
    at = np.flatnonzero(~first)
    while len(at):
        alone = ((amount[at] <= left) | (amount[at] == 0)).all(axis=1)
        broken = members.job[at[~alone & ~members.surplus[at]]]
        if len(broken):
            alone &= ~(members.surplus[at] & np.isin(members.job[at], broken))
        at = at[alone]
        sums = amount[at].cumsum(axis=0)
        fits = ((sums <= left) | (sums == 0)).all(axis=1)
        end = len(at) if fits.all() else int(fits.argmin())
        counted[at[:end]] = True
        if end:
            left = left - sums[end - 1]
        at = at[end:]
    return counted
