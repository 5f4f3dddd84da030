"""Which jobs a cycle has to look at, as marks that are worked out again for the rows that changed.

A cluster full of running jobs has few that wait or about whom something has to be written, and of ten thousand that wait few
have anything new to hope for. To find those by their counts is a pass over every job; by their marks it is the scan of one
boolean column.
"""

from __future__ import annotations

import numpy as np

from navarch.model.resources import BoolArray
from navarch.model.status import COUNTS_READY, IS_ALLOCATED, ON_NODE, STATUS_COUNT, TaskStatus
from navarch.model.tables.jobs import JobTable

_READY = COUNTS_READY.astype(np.int64)
_FINISHED = np.zeros(STATUS_COUNT, dtype=np.int64)
_FINISHED[[TaskStatus.SUCCEEDED, TaskStatus.FAILED]] = 1
_PLACED = _FINISHED.copy()
_PLACED[[TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.RELEASING]] = 1
_SUMS = np.stack([_READY, _PLACED, _FINISHED, ON_NODE.astype(np.int64), IS_ALLOCATED.astype(np.int64)], axis=1)


class JobMarks:
    def __init__(self) -> None:
        self.absent: BoolArray = np.zeros(0, dtype=bool)
        """Held, and none of its pods stands on a node (others may have to know whose those are): takes no part. None of the
        other marks is set then."""
        self.waiting: BoolArray = np.zeros(0, dtype=bool)
        """Some pod is pending."""
        self.unadmitted: BoolArray = np.zeros(0, dtype=bool)
        """In a queue, and its phase says that it has not been admitted to it."""
        self.restless: BoolArray = np.zeros(0, dtype=bool)
        """In a queue, and not one of which no pod waits, that is ready and in the phase its pods make it: something may have to
        be written."""
        self.restless_when_held: BoolArray = np.zeros(0, dtype=bool)
        """The same by another rule for the phase: Running as long as enough pods hold a node, else Pending."""
        self.unsaid: BoolArray = np.zeros(0, dtype=bool)
        """In a queue, and its group does not carry the condition Scheduled: a ready one has to, where a plugin sets it."""
        self.broken: BoolArray = np.zeros(0, dtype=bool)
        """In a queue, with some pods on nodes but fewer than its minimum."""

    def follow(self, table: JobTable, rows: np.ndarray[tuple[int], np.dtype[np.intp]] | None) -> None:
        """Work the marks out for these rows of the table; None: for all."""
        size, phases = table.rows.top, table.phases
        for name, before in list(vars(self).items()) if len(self.waiting) != size else ():
            setattr(self, name, np.zeros(size, dtype=bool))
            getattr(self, name)[: len(before)] = before
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
        self.restless[at] = has_queue & (busy | (phase != expected))
        self.restless_when_held[at] = has_queue & (busy | (phase != expected_of_held))
        self.unsaid[at] = has_queue & ~table.scheduled[at]
        self.broken[at] = has_queue & (hold + leaving > 0) & (hold + leaving < minimum)
