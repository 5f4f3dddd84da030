"""Who may evict whom in strict mode: one rule for preempt, reclaim, gangpreempt and gangreclaim.

A unit of a job (its minimum, or one pod beyond it) may evict another unit

- of the same queue if its depth (`owed`) is greater, or equal and its rank better;
- of another queue if it is owed further down, counted only to the level where the two queues part.

The rank is priority, then minimum before surplus, then age and name. It follows from what jobs are, never from what they hold now.
Plugins say what queues are owed (`QueuesOwed`), and may spare victims. They never add one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.job import Job
from navarch.engine.points.protocols import QueuesOwed
from navarch.engine.queue import Queue
from navarch.engine.reasons import Event, Reason
from navarch.engine.victims.owed import TOP, OwedUnits, QueueShares, Units, WaitingUnit
from navarch.model.resources import PODS, BoolArray, IntArray
from navarch.model.status import IS_ACTIVE, TaskStatus

if TYPE_CHECKING:
    from navarch.engine.session import Session

_ACTIVE = tuple(TaskStatus(status) for status in np.flatnonzero(IS_ACTIVE).tolist())
_ACTIVE_MASK = IS_ACTIVE.astype(np.int64)
_FREED = (Event.POD_REMOVED, Event.QUEUE_CHANGED, Event.NODE_ADDED, Event.NODE_CHANGED)
Rank = tuple[int, bool, float, str, int]
Unit = tuple[Rank, int, int, bool, IntArray, int]
"""Rank, queue, job, whether beyond the minimum, amount, number of tasks."""


class EvictionRule:
    """Made for an action. `changed` tells it what the action decided."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._shares = self._owed_by_plugins()
        self._unit: list[Unit] | None = None
        """In the order of rank."""
        self._owed: OwedUnits | None = None
        self._numbers: dict[int, tuple[int | None, list[int], int]] = {}
        """Job row -> the unit of its minimum, those beyond it, and of how many tasks all are."""

    def _owed_by_plugins(self) -> QueueShares:
        session = self.session
        for plugin in session.implementing(QueuesOwed):
            return plugin.queues_owed()
        queues = session.queues.values()
        return QueueShares(np.zeros((len(queues), len(session.snapshot.resource_names)), dtype=np.int64), [()] * len(queues))

    def of(self, job: Job, tasks: Sequence[int]) -> Standing:
        """What a job may evict for these waiting tasks: those that it lacks to start, or one that it has beyond its minimum."""
        owed = self._units()
        charge = self._charge(tasks)
        surplus = not job.is_starving
        if not surplus:
            charge = charge + self._charge(job.tasks_in(*_ACTIVE))
        rank = self._rank(job, surplus, max((self.session.task(task).priority for task in tasks), default=0))
        assert self._unit is not None
        before = bisect_right(self._unit, rank, key=lambda unit: unit[0])
        depths = owed.depths(WaitingUnit(before, job.queue.number, job.row, surplus, charge))
        return Standing(self, job.queue, int(depths[-1]), self._weaker(job, before, depths))

    def _weaker(self, job: Job, before: int, depths: IntArray) -> BoolArray:
        """Which units one of the job may evict that comes before unit number `before`; its depth is the last."""
        units, queue, lines = self._units().units, job.queue.number, self._shares.lines
        queues, mine, theirs = units.queue, int(depths[-1]), depths[:-1]
        own = lines[queue] or (-1,)
        shared = [sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(own, line))) for line in lines]
        parting = TOP + np.array(shared, dtype=np.int64)[queues]
        behind = np.arange(len(queues)) >= before
        own_minimum = (units.job == job.row) & ~units.surplus
        inside: BoolArray = (theirs < mine) | ((theirs == mine) & behind)
        weaker: BoolArray = np.where(queues == queue, inside, theirs < np.minimum(mine, parting)) & ~own_minimum
        return weaker

    def units_of(self, job: Job) -> tuple[int | None, list[int]]:
        """The number of the job's minimum, and those of what it has beyond, less those that an attempt under way has evicted."""
        minimum, surplus, held = self._numbers.get(job.row, (None, [], 0))
        gone = held - sum(job.counts[status] for status in _ACTIVE)
        return minimum, surplus[: max(len(surplus) - gone, 0)]

    def running(self) -> list[RunningUnit]:
        """What runs or is promised a place, first by rank first."""
        depths = self._units().depths().tolist()
        assert self._unit is not None
        lines = self._shares.lines
        return [RunningUnit(rank, lines[queue], depth) for (rank, queue, *_), depth in zip(self._unit, depths)]

    def changed(self, jobs: Iterable[Job]) -> None:
        """These jobs hold other tasks than before."""
        if self._unit is None:
            return
        rows = {job.row: job for job in jobs}
        self._unit = [unit for unit in self._unit if unit[2] not in rows]
        for job in rows.values():
            self._unit += self._units_of(job)
        self._unit.sort(key=_by_rank)
        self._owed = None

    def _units(self) -> OwedUnits:
        if self._unit is None:
            session = self.session
            counts = session.snapshot.jobs.counts @ _ACTIVE_MASK
            rows = set(np.flatnonzero(counts).tolist()) | {job.row for job in session.touched_jobs if job.version}
            self._unit = [unit for row in sorted(rows) if (job := session.job(row)) is not None for unit in self._units_of(job)]
            self._unit.sort(key=_by_rank)
        if self._owed is None:
            found = self._unit
            self._numbers = {}
            for number, (_, _, row, surplus, _, tasks) in enumerate(found):
                minimum, beyond, held = self._numbers.get(row, (None, [], 0))
                if surplus:
                    beyond.append(number)
                self._numbers[row] = minimum if surplus else number, beyond, held + tasks
            amount = np.array([unit[4] for unit in found], dtype=np.int64).reshape(len(found), len(self.session.total))
            units = Units(
                np.array([unit[1] for unit in found], dtype=np.intp),
                np.array([unit[2] for unit in found], dtype=np.intp),
                np.array([unit[3] for unit in found], dtype=bool),
                amount,
            )
            self._owed = OwedUnits(units, self._shares, self.session.total)
        return self._owed

    def _units_of(self, job: Job) -> list[Unit]:
        tasks = job.tasks_in(*_ACTIVE)
        if not tasks:
            return []
        needed = max(job.min_member - job.best_effort_pending - job.counts[TaskStatus.SUCCEEDED], 0)
        session, queue = self.session, job.queue.number
        if len(tasks) > needed:
            columns = session.snapshot.tasks
            tasks.sort(key=lambda task: (-int(columns.priority[task]), int(columns.index[task]), session.task(task).name))
        out: list[Unit] = []
        if needed:
            out.append((self._rank(job, False, 0), queue, job.row, False, self._charge(tasks[:needed]), len(tasks[:needed])))
        for task in tasks[needed:]:
            rank = self._rank(job, True, session.task(task).priority)
            out.append((rank, queue, job.row, True, self._charge([task]), 1))
        return out

    def _rank(self, job: Job, surplus: bool, priority: int) -> Rank:
        return -job.priority, surplus, job.spec.created, job.key, -priority if surplus else 0

    def _charge(self, tasks: Sequence[int]) -> IntArray:
        session = self.session
        total: IntArray = session.snapshot.shape_charge[:, session.shape[list(tasks)]].sum(axis=1)
        total[PODS] = 0
        return total


@dataclass(frozen=True, slots=True)
class RunningUnit:
    rank: Rank
    line: tuple[int, ...]
    """The numbers of its queue and of those above it, from the top down."""
    depth: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A unit of a job as though it ran."""

    rule: EvictionRule
    queue: Queue
    depth: int
    weaker: BoolArray
    """Which units it may evict."""

    def refusal(self) -> Reason:
        """Why a job that its queue is not owed takes nothing from other queues."""
        text = f"queue {self.queue.name} is not owed all that the job asks for, so nothing of other queues is evicted for it"
        return Reason("OverFairShare", text, figures={"queue": self.queue.name}, undone_by=_FREED)

    def may_evict(self, candidates: Sequence[int]) -> list[int]:
        """Those of the candidates that may go. They are in the order of eviction: a job loses what is beyond its minimum first."""
        units: dict[int, tuple[int | None, list[int]]] = {}
        out = []
        for task in candidates:
            other = self.rule.session.job_of(task)
            if other is None:
                continue
            minimum, surplus = units.get(other.row) or units.setdefault(other.row, self.rule.units_of(other))
            unit = surplus.pop() if surplus else minimum
            if unit is not None and self.weaker[unit]:
                out.append(task)
        return out


def _by_rank(unit: Unit) -> Rank:
    return unit[0]
