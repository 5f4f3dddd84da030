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

from navarch.engine.figures import Rows
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
_FREED = (Event.POD_REMOVED, Event.QUEUE_CHANGED, Event.NODE_ADDED, Event.NODE_CHANGED)
Rank = tuple[int, bool, float, str, int]
"""Priority turned round, whether beyond the minimum, age, key of the job, and the priority of a pod beyond it, turned round."""


@dataclass(frozen=True, slots=True)
class RunningUnit:
    rank: Rank
    line: tuple[int, ...]
    """The numbers of its queue and of those above it, from the top down."""
    depth: int
    queue: int
    pods: int


class EvictionRule:
    """Made for an action. `changed` tells it what the action decided."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._shares = self._owed_by_plugins()
        self._table: UnitTable | None = None
        self._owed: OwedUnits | None = None
        self._shared: tuple[int, IntArray] = -1, np.zeros(0, dtype=np.int64)
        """The queue that was asked for last, and its answer (`_levels_shared`)."""

    def _owed_by_plugins(self) -> QueueShares:
        session = self.session
        for plugin in session.implementing(QueuesOwed):
            return plugin.queues_owed()
        queues = session.queues.values()
        return QueueShares(np.zeros((len(queues), len(session.snapshot.resource_names)), dtype=np.int64), [()] * len(queues))

    def of(self, job: Job, tasks: Sequence[int]) -> Standing:
        """What a job may evict for these waiting tasks: those that it lacks to start, or one that it has beyond its minimum."""
        table, owed = self._state()
        charge = charge_of(self.session, tasks)
        surplus = not job.is_starving
        if not surplus:
            charge = charge + charge_of(self.session, job.tasks_in(*_ACTIVE))
        before = bisect_right(table.ranks, rank_of(job, max((self.session.task(task).priority for task in tasks), default=0), surplus))
        depths = owed.depths(WaitingUnit(before, job.queue.number, job.row, surplus, charge))
        return Standing(table, job.queue, int(depths[-1]), self._weaker(job, before, depths))

    def _weaker(self, job: Job, before: int, depths: IntArray) -> BoolArray:
        """Which units one of the job may evict that comes before unit number `before`; its depth is the last."""
        units, queue = self._state()[0].units, job.queue.number
        mine, theirs = int(depths[-1]), depths[:-1]
        parting = TOP + self._levels_shared(queue)[units.queue]
        behind = np.arange(len(units.queue)) >= before
        own_minimum = (units.job == job.row) & ~units.surplus
        inside: BoolArray = (theirs < mine) | ((theirs == mine) & behind)
        weaker: BoolArray = np.where(units.queue == queue, inside, theirs < np.minimum(mine, parting)) & ~own_minimum
        return weaker

    def _levels_shared(self, queue: int) -> IntArray:
        """By queue: how many queues from the top down its line has in common with that of this one."""
        if self._shared[0] != queue:
            lines = self._shares.lines
            own = lines[queue] or (-1,)
            shared = [sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(own, line))) for line in lines]
            self._shared = queue, np.array(shared, dtype=np.int64)
        return self._shared[1]

    def running(self) -> list[RunningUnit]:
        """What runs or is promised a place, first by rank first."""
        table, owed = self._state()
        queues = table.units.queue.tolist()
        lines = [self._shares.lines[queue] for queue in queues]
        return [RunningUnit(*each) for each in zip(table.ranks, lines, owed.depths().tolist(), queues, table.held.tolist())]

    def changed(self, jobs: Iterable[Job]) -> None:
        """These jobs hold other tasks than before."""
        if self._table is not None:
            self._table.renew(list({job.row: job for job in jobs}.values()))
            self._owed = None

    def _state(self) -> tuple[UnitTable, OwedUnits]:
        if self._table is None:
            self._table = UnitTable(self.session)
        if self._owed is None:
            self._owed = OwedUnits(self._table.units, self._shares, self.session.total)
        return self._table, self._owed


class UnitTable:
    """What runs or is promised a place, in the order of rank. Jobs without pods beyond their minimum are read from the columns; a
    change replaces the units of the jobs concerned."""

    def __init__(self, session: Session) -> None:
        self.session = session
        jobs = session.snapshot.jobs
        held = jobs.counts @ IS_ACTIVE.astype(np.int64)
        number_of = {name: queue.number for name, queue in session.queues.items()}
        numbers = np.array([*(number_of.get(name, -1) for name in jobs.queue_names), -1], dtype=np.intp)
        queue = numbers[jobs.queue]
        beyond = held > jobs.min_member - jobs.best_effort_pending - jobs.counts[:, TaskStatus.SUCCEEDED]
        apart = beyond.copy()
        moved = [job.row for job in session.touched_jobs if job.version]
        apart[moved] = True
        alike: Rows = np.flatnonzero((held > 0) & (queue >= 0) & ~apart)
        specs = jobs.specs
        alike = alike[[specs[row] is not None for row in alike.tolist()]] if len(alike) else alike
        self.ranks: list[Rank] = [
            (-priority, False, spec.created, spec.key, 0)
            for row, priority in zip(alike.tolist(), jobs.priority[alike].tolist())
            if (spec := specs[row]) is not None
        ]
        amount: IntArray = jobs.allocated[:, alike].T.copy()
        amount[:, PODS] = 0
        self.units = Units(queue[alike], alike, np.zeros(len(alike), dtype=bool), amount)
        self.held = held[alike]
        """Of how many tasks each unit is."""
        rows = {*np.flatnonzero(apart & (held > 0) & (queue >= 0)).tolist(), *moved}
        self._add([job for row in sorted(rows) if (job := session.job(row)) is not None])

    def renew(self, jobs: Sequence[Job]) -> None:
        keep = ~np.isin(self.units.job, [job.row for job in jobs])
        units = self.units
        self.ranks = [rank for rank, kept in zip(self.ranks, keep.tolist()) if kept]
        self.units = Units(units.queue[keep], units.job[keep], units.surplus[keep], units.amount[keep])
        self.held = self.held[keep]
        self._add(jobs)

    def _add(self, jobs: Iterable[Job]) -> None:
        found = [unit for job in jobs for unit in self._units_of(job)]
        units = self.units
        ranks = self.ranks + [rank for rank, *_ in found]
        order = np.array(sorted(range(len(ranks)), key=ranks.__getitem__), dtype=np.intp)
        amounts = np.array([charge_of(self.session, tasks) for *_, tasks in found], dtype=np.int64)
        self.ranks = [ranks[i] for i in order.tolist()]
        self.units = Units(
            np.append(units.queue, np.array([job.queue.number for _, job, _, _ in found], dtype=np.intp))[order],
            np.append(units.job, np.array([job.row for _, job, _, _ in found], dtype=np.intp))[order],
            np.append(units.surplus, np.array([surplus for _, _, surplus, _ in found], dtype=bool))[order],
            np.concatenate([units.amount, amounts.reshape(len(found), units.amount.shape[1])])[order],
        )
        self.held = np.append(self.held, np.array([len(tasks) for *_, tasks in found], dtype=np.int64))[order]
        self._by_job: Rows = np.argsort(self.units.job, kind="stable")
        self._sorted_jobs: Rows = self.units.job[self._by_job]

    def _units_of(self, job: Job) -> list[tuple[Rank, Job, bool, list[int]]]:
        tasks = job.tasks_in(*_ACTIVE)
        needed = max(job.min_member - job.best_effort_pending - job.counts[TaskStatus.SUCCEEDED], 0)
        session, columns = self.session, self.session.snapshot.tasks
        if len(tasks) > needed:
            tasks.sort(key=lambda task: (-int(columns.priority[task]), int(columns.index[task]), session.task(task).name))
        out = [(rank_of(job, 0, False), job, False, tasks[:needed])] if needed and tasks else []
        return out + [(rank_of(job, int(columns.priority[task]), True), job, True, [task]) for task in tasks[needed:]]

    def of_job(self, job: Job) -> tuple[int | None, list[int]]:
        """The number of the job's minimum, and those of what it has beyond, less those that an attempt under way has evicted."""
        at = slice(*np.searchsorted(self._sorted_jobs, [job.row, job.row + 1]).tolist())
        numbers = self._by_job[at]
        gone = int(self.held[numbers].sum()) - sum(job.counts[status] for status in _ACTIVE)
        surplus = numbers[self.units.surplus[numbers]].tolist()
        minimum = numbers[~self.units.surplus[numbers]].tolist()
        return (minimum[0] if minimum else None), surplus[: max(len(surplus) - gone, 0)]

    def single(self, tasks: Rows) -> Rows:
        """The unit of each of these tasks where it is all that its job has; -1 elsewhere."""
        jobs = self.session.snapshot.tasks.job[tasks]
        first, after = np.searchsorted(self._sorted_jobs, jobs), np.searchsorted(self._sorted_jobs, jobs, side="right")
        out: Rows = np.full(len(tasks), -1, dtype=np.intp)
        alone = after - first == 1
        found = self._by_job[first[alone]]
        out[alone] = np.where(self.units.surplus[found], -1, found)
        return out


@dataclass(frozen=True, slots=True)
class Standing:
    """A unit of a job as though it ran."""

    table: UnitTable
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
        if not candidates:
            return []
        single = self.table.single(np.array(candidates, dtype=np.intp)).tolist()
        units: dict[int, tuple[int | None, list[int]]] = {}
        out, weaker = [], self.weaker.tolist()
        for task, unit in zip(candidates, single):
            found: int | None = unit
            if unit < 0:
                job = self.table.session.job_of(task)
                if job is None:
                    continue
                minimum, surplus = units.get(job.row) or units.setdefault(job.row, self.table.of_job(job))
                found = surplus.pop() if surplus else minimum
            if found is not None and weaker[found]:
                out.append(task)
        return out


def rank_of(job: Job, priority: int, surplus: bool) -> Rank:
    return -job.priority, surplus, job.spec.created, job.key, -priority if surplus else 0


def charge_of(session: Session, tasks: Sequence[int]) -> IntArray:
    """What the tasks ask for together, pods aside."""
    total: IntArray = session.snapshot.shape_charge[:, session.shape[list(tasks)]].sum(axis=1)
    total[PODS] = 0
    return total
