"""The job table: gangs, the tasks that belong to them, and their sums, kept per change.

`counts` holds how many tasks stand in each status, `allocated` and `pending` what those tasks ask for; the same two are kept
for each queue. A job's row exists as soon as a task names it; until its PodGroup arrives it has no spec and takes no part in a
cycle.
"""

from __future__ import annotations

import numpy as np

from navarch.model.resources import BoolArray, FloatArray, IntArray, ResourceSpace, RowArray
from navarch.model.spec import JobSpec
from navarch.model.status import IS_ALLOCATED, STATUS_COUNT, TaskStatus
from navarch.model.tables.columns import Rows, grown, sums_by_group

LOWEST = np.iinfo(np.int64).min


class JobTable:
    def __init__(self, space: ResourceSpace) -> None:
        self.space = space
        self.rows = Rows()
        self.keys: list[str] = []
        self.specs: list[JobSpec | None] = []
        self.tasks: list[dict[int, None]] = []
        """Task rows of each job, in order of arrival. Copied before a write when a snapshot may hold the same dict."""
        self.epoch = 0
        self._written: list[int] = []
        self.counts: IntArray = np.zeros((8, STATUS_COUNT), dtype=np.int64)
        self.best_effort_pending: IntArray = np.zeros(8, dtype=np.int64)
        self.allocated: IntArray = np.zeros((len(space), 8), dtype=np.int64)
        self.pending: IntArray = np.zeros((len(space), 8), dtype=np.int64)
        self.min_resources: IntArray = np.zeros((len(space), 8), dtype=np.int64)
        self.has_min_resources: BoolArray = np.zeros(8, dtype=bool)
        self.min_member: IntArray = np.zeros(8, dtype=np.int64)
        self.priority: IntArray = np.zeros(8, dtype=np.int64)
        """The job's own; the lowest there is where that of its tasks counts."""
        self.preemptable: BoolArray = np.zeros(8, dtype=bool)
        self.expected_duration: FloatArray = np.full(8, np.inf)
        """Seconds that it runs once it has started; infinite where it does not say."""
        self.queue: RowArray = np.full(8, -1, dtype=np.int32)
        """Number of the queue's name in `queue_names`; -1 while there is no spec."""
        self.phase: RowArray = np.zeros(8, dtype=np.int32)
        """Number of the phase in `phases`."""
        self.scheduled: BoolArray = np.zeros(8, dtype=bool)
        """The group already carries the condition Scheduled, so a ready job needs nothing written."""
        self.stale: BoolArray = np.zeros(8, dtype=bool)
        """The group carries the moment since when it has run below its minimum, which goes when it is whole again."""
        self.in_parts: BoolArray = np.zeros(8, dtype=bool)
        """It names parts, with minima of their own."""
        self.held: BoolArray = np.zeros(8, dtype=bool)
        """The scheduling queue holds the job back: cycles leave it out while it has no pod on a node."""
        self.queue_names: dict[str, int] = {}
        self.phases: dict[str, int] = {"": 0}
        self.queue_allocated: IntArray = np.zeros((len(space), 8), dtype=np.int64)
        """(R, queues): what the jobs of each queue hold, by the queue's number."""
        self.queue_pending: IntArray = np.zeros((len(space), 8), dtype=np.int64)
        self.queue_jobs: IntArray = np.zeros(8, dtype=np.int64)
        """Jobs with a spec, by the queue's number."""
        self.touched: set[int] = set()
        """Rows written since the last snapshot (see `incremental_copy`)."""

    def row_for(self, key: str) -> int:
        row = self.rows.of.get(key)
        if row is not None:
            return row
        row = self.rows.assign(key)
        if row == len(self.keys):
            self.keys.append(key)
            self.specs.append(None)
            self.tasks.append({})
            self._written.append(self.epoch)
            if row >= self.counts.shape[0]:
                self.counts = grown(self.counts, row + 1, axis=0)
                for name in (*COLUMNS, "scheduled", "stale", "held"):
                    setattr(self, name, grown(getattr(self, name), row + 1))
            self.queue[row] = -1
        else:
            self.keys[row] = key
        self.touched.add(row)
        return row

    def put(self, spec: JobSpec) -> int:
        row = self.row_for(spec.key)
        self.specs[row] = spec
        self._join(row, _number(self.queue_names, spec.queue))
        self.touched.add(row)
        self.phase[row] = _number(self.phases, spec.phase)
        self.min_member[row] = spec.min_member
        self.priority[row] = LOWEST if spec.priority_of_tasks else spec.priority
        self.preemptable[row] = spec.preemptable
        self.expected_duration[row] = np.inf if spec.expected_duration is None else spec.expected_duration
        conditions = spec.conditions
        self.scheduled[row] = bool(conditions) and any(c.type == "Scheduled" and c.status == "True" for c in conditions)
        self.stale[row] = spec.stale_since is not None
        self.in_parts[row] = bool(spec.sub_groups)
        if spec.min_resources is not None:
            self.fit_space()
            self.min_resources[: len(self.space), row] = self.space.bounded_vector(spec.min_resources)
        elif self.has_min_resources[row]:
            self.min_resources[:, row] = 0
        self.has_min_resources[row] = spec.min_resources is not None
        return row

    def remove(self, key: str) -> None:
        row = self.rows.of.get(key)
        if row is not None:
            self.specs[row] = None
            self._join(row, -1)
            self.touched.add(row)
            self._drop_if_unused(row)

    def hold(self, key: str, held: bool) -> None:
        """Hold the job back from cycles, or release it."""
        row = self.rows.of.get(key)
        if row is not None:
            self.held[row] = held
            self.touched.add(row)

    def _join(self, row: int, queue: int) -> None:
        """The job is in this queue from now on, -1: in none."""
        before = int(self.queue[row])
        if before == queue:
            return
        self.fit_space()
        has_tasks = bool(self.tasks[row])
        for number, sign in ((before, -1), (queue, 1)):
            if number >= 0:
                if number >= self.queue_jobs.shape[0]:
                    for name in ("queue_allocated", "queue_pending", "queue_jobs"):
                        setattr(self, name, grown(getattr(self, name), number + 1))
                if has_tasks:
                    self.queue_allocated[:, number] += sign * self.allocated[:, row]
                    self.queue_pending[:, number] += sign * self.pending[:, row]
                self.queue_jobs[number] += sign
        self.queue[row] = queue

    def count(self, row: int, task: int, status: int, request: IntArray, best_effort: bool, sign: int) -> None:
        """A task joins (sign 1) or leaves (-1) the job in this status."""
        self.counts[row, status] += sign
        self.touched.add(row)
        if IS_ALLOCATED[status]:
            self._add("allocated", row, sign * request)
        elif status == TaskStatus.PENDING:
            self._add("pending", row, sign * request)
            self.best_effort_pending[row] += sign * best_effort
        if self._written[row] != self.epoch:
            self.tasks[row] = dict(self.tasks[row])
            self._written[row] = self.epoch
        if sign > 0:
            self.tasks[row][task] = None
        else:
            self.tasks[row].pop(task, None)
            self._drop_if_unused(row)

    def count_all(self, rows: RowArray, tasks: RowArray, status: IntArray, requests: IntArray, best_effort: BoolArray) -> None:
        """Many tasks join: task i joins the job at row i with column i of `requests` (R, tasks)."""
        self.fit_space()
        np.add.at(self.counts, (rows, status), 1)
        for which, of in (("allocated", IS_ALLOCATED[status]), ("pending", status == TaskStatus.PENDING)):
            if of.any():
                self._add_all(which, rows[of], requests[:, of])
        waiting = best_effort & (status == TaskStatus.PENDING)
        np.add.at(self.best_effort_pending, rows[waiting], 1)
        for row, task in zip(rows.tolist(), tasks.tolist()):
            if self._written[row] != self.epoch:
                self.tasks[row] = dict(self.tasks[row])
                self._written[row] = self.epoch
            self.tasks[row][task] = None
        self.touched.update(rows.tolist())

    def _add_all(self, which: str, rows: RowArray, amounts: IntArray) -> None:
        size, top = amounts.shape[0], self.rows.top
        getattr(self, which)[:size, :top] += sums_by_group(amounts, rows, top)
        queues = self.queue[rows]
        if (queues >= 0).any():
            held = getattr(self, f"queue_{which}")
            held[:size] += sums_by_group(amounts, queues, held.shape[1])

    def move(self, row: int, before: int, after: int, request: IntArray, best_effort: bool) -> None:
        """A task of the job goes from one status to another."""
        self.counts[row, before] -= 1
        self.counts[row, after] += 1
        self.touched.add(row)
        change = int(IS_ALLOCATED[after]) - int(IS_ALLOCATED[before])
        if change:
            self._add("allocated", row, change * request)
        change = (after == TaskStatus.PENDING) - (before == TaskStatus.PENDING)
        if change:
            self._add("pending", row, change * request)
            self.best_effort_pending[row] += change * best_effort

    def move_all(self, rows: RowArray, before: IntArray, after: IntArray, requests: IntArray, best_effort: BoolArray) -> None:
        """Many tasks go from one status to another: task i, of the job at row i, with column i of `requests` (R, tasks)."""
        self.fit_space()
        np.add.at(self.counts, (rows, before), -1)
        np.add.at(self.counts, (rows, after), 1)
        held = IS_ALLOCATED[after].astype(np.int64) - IS_ALLOCATED[before]
        waiting = (after == TaskStatus.PENDING).astype(np.int64) - (before == TaskStatus.PENDING)
        for which, change in (("allocated", held), ("pending", waiting)):
            of = np.flatnonzero(change)
            if len(of):
                self._add_all(which, rows[of], requests[:, of] * change[of])
        np.add.at(self.best_effort_pending, rows, waiting * best_effort)
        self.touched.update(rows.tolist())

    def _add(self, which: str, row: int, amount: IntArray) -> None:
        """Add to the job's allocated or pending sum, and to that of its queue."""
        self.fit_space()
        size, queue = amount.shape[0], self.queue[row]
        of_jobs, of_queues = (self.allocated, self.queue_allocated) if which == "allocated" else (self.pending, self.queue_pending)
        of_jobs[:size, row] += amount
        if queue >= 0:
            of_queues[:size, queue] += amount

    def fit_space(self) -> None:
        """Grow the columns to every known resource."""
        if self.allocated.shape[0] < len(self.space):
            for name in ("allocated", "pending", "min_resources", "queue_allocated", "queue_pending"):
                setattr(self, name, grown(getattr(self, name), len(self.space), axis=0))

    def _drop_if_unused(self, row: int) -> None:
        if self.specs[row] is None and not self.tasks[row]:
            self.held[row] = False
            self.rows.give_back(self.keys[row])


COLUMNS = (
    "best_effort_pending",
    "allocated",
    "pending",
    "min_resources",
    "has_min_resources",
    "min_member",
    "priority",
    "preemptable",
    "expected_duration",
    "queue",
    "phase",
    "in_parts",
)
"""Columns that a snapshot copies, besides `counts`."""


def _number(numbers: dict[str, int], name: str) -> int:
    return numbers.setdefault(name, len(numbers))
