"""Boolean columns that mark the jobs a cycle has to process, updated for changed rows only.

In a full cluster few jobs are pending or need a status update, and of ten thousand pending jobs few can be placed now. Finding
them by their counts would be a pass over every job; with marks it is a scan of one boolean column.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from navarch.model.resources import BoolArray
from navarch.model.status import COUNTS_READY, IS_ALLOCATED, ON_NODE, STATUS_COUNT, TaskStatus
from navarch.model.tables.jobs import JobTable

_READY = COUNTS_READY.astype(np.int64)
_FINISHED = np.zeros(STATUS_COUNT, dtype=np.int64)
_FINISHED[[TaskStatus.SUCCEEDED, TaskStatus.FAILED]] = 1
_PLACED = _FINISHED.copy()
_PLACED[[TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.RELEASING]] = 1
FEW = 8
"""Up to this many rows are marked one by one: forty array operations cost more than a row in plain Python."""
_SUMS = np.stack([_READY, _PLACED, _FINISHED, ON_NODE.astype(np.int64), IS_ALLOCATED.astype(np.int64)], axis=1)
_STATUSES = [np.flatnonzero(column).tolist() for column in _SUMS.T]
"""The statuses that each of those sums counts."""


@lru_cache(maxsize=4096)
def _sums(counts: tuple[int, ...]) -> tuple[int, ...]:
    """`counts @ _SUMS` of one job. Most jobs have one pod, or all in one status."""
    return tuple(sum(counts[status] for status in each) for each in _STATUSES)


class JobMarks:
    def __init__(self) -> None:
        self.absent: BoolArray = np.zeros(0, dtype=bool)
        """Held back by the scheduling queue and without a pod on a node: the cycle leaves the job out. No other mark is set then."""
        self.waiting: BoolArray = np.zeros(0, dtype=bool)
        """Some pod is pending."""
        self.unadmitted: BoolArray = np.zeros(0, dtype=bool)
        """In a queue, and its phase says that it has not been admitted to it."""
        self.status_due: BoolArray = np.zeros(0, dtype=bool)
        """In a queue, and its status may need an update: a pod is pending, the gang is not ready, or the phase differs from what the
        pods' statuses give."""
        self.status_due_when_held: BoolArray = np.zeros(0, dtype=bool)
        """The same by another rule for the phase: Running as long as enough pods hold a node, else Pending."""
        self.lacks_scheduled_condition: BoolArray = np.zeros(0, dtype=bool)
        """In a queue, and its group does not carry the condition Scheduled: a ready one has to, where a plugin sets it."""
        self.broken: BoolArray = np.zeros(0, dtype=bool)
        """In a queue, with some pods on nodes but fewer than its minimum."""

    def follow(self, table: JobTable, rows: np.ndarray[tuple[int], np.dtype[np.intp]] | None) -> None:
        """Compute the marks of these rows of the table; None: of all rows."""
        size, phases = table.rows.top, table.phases
        for name, before in list(vars(self).items()) if len(self.waiting) != size else ():
            setattr(self, name, np.zeros(size, dtype=bool))
            getattr(self, name)[: len(before)] = before
        if rows is not None and len(rows) <= FEW:
            for row in rows.tolist():
                self._mark(table, row)
            return
        at: np.ndarray[tuple[int], np.dtype[np.intp]] | slice = slice(size) if rows is None else rows
        counts, minimum, phase = table.counts[at], table.min_member[at], table.phase[at]
        ready, placed, finished, there, hold = (counts @ _SUMS).T
        absent = table.held[at] & (there == 0)
        has_queue = (table.queue[at] >= 0) & ~absent
        inqueue = phases.get("Inqueue", -1)
        begun = np.where(placed == finished, phases.get("Completed", -1), phases.get("Running", -1))
        expected = np.where(placed >= minimum, begun, np.where(phase == inqueue, inqueue, phases.get("Pending", -1)))
        expected_of_held = np.where(hold >= minimum, phases.get("Running", -1), phases.get("Pending", -1))
        waiting = counts[:, TaskStatus.PENDING] > 0
        leaving = counts[:, TaskStatus.RELEASING]
        odd = (leaving > 0) | (minimum <= 0)  # what becomes of these takes more than counts to tell
        busy = waiting | odd | table.stale[at] | (ready + table.best_effort_pending[at] < minimum)
        self.absent[at] = absent
        self.waiting[at] = waiting & ~absent
        self.unadmitted[at] = has_queue & ((phase == phases.get("", -1)) | (phase == phases.get("Pending", -1)))
        self.status_due[at] = has_queue & (busy | (phase != expected))
        self.status_due_when_held[at] = has_queue & (busy | (phase != expected_of_held))
        self.lacks_scheduled_condition[at] = has_queue & ~table.scheduled[at]
        self.broken[at] = has_queue & (hold + leaving > 0) & (hold + leaving < minimum)

    def _mark(self, table: JobTable, row: int) -> None:
        """The marks of one row. The same rules as above."""
        counts, phases = table.counts[row].tolist(), table.phases
        minimum, phase = int(table.min_member[row]), int(table.phase[row])
        ready, placed, finished, there, hold = _sums(tuple(counts))
        absent = bool(table.held[row]) and not there
        has_queue = table.queue[row] >= 0 and not absent
        inqueue, running, pending = phases.get("Inqueue", -1), phases.get("Running", -1), phases.get("Pending", -1)
        if placed >= minimum:
            expected = phases.get("Completed", -1) if placed == finished else running
        else:
            expected = inqueue if phase == inqueue else pending
        waiting, leaving = counts[TaskStatus.PENDING] > 0, counts[TaskStatus.RELEASING]
        busy = waiting or leaving > 0 or minimum <= 0 or table.stale[row] or ready + table.best_effort_pending[row] < minimum
        self.absent[row] = absent
        self.waiting[row] = waiting and not absent
        self.unadmitted[row] = has_queue and phase in (phases.get("", -1), pending)
        self.status_due[row] = has_queue and (busy or phase != expected)
        self.status_due_when_held[row] = has_queue and (busy or phase != (running if hold >= minimum else pending))
        self.lacks_scheduled_condition[row] = has_queue and not table.scheduled[row]
        self.broken[row] = has_queue and 0 < hold + leaving < minimum
