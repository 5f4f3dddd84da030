"""Takes jobs out of a snapshot as if they did not exist, puts the snapshot back as it was when the cycle opened, and restores both.

A session writes into a few columns of its snapshot. They are copied before the first statement, so that a cycle that failed can
start again from the same figures; a cycle that tries nothing copies nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from navarch.model.snapshot import Snapshot
from navarch.model.status import ON_NODE, TaskStatus

_WRITTEN = (
    ("tasks", "status"),
    ("tasks", "node"),
    ("nodes", "used"),
    ("nodes", "releasing"),
    ("nodes", "scoring"),
    ("nodes", "allocatable"),
)
_HIDING = (
    ("tasks", "alive"),
    ("jobs", "counts"),
    ("jobs", "pending"),
    ("jobs", "best_effort_pending"),
    ("jobs", "has_min_resources"),
    ("jobs", "queue_pending"),
    ("jobs", "queue_jobs"),
)
_PLACED = [int(status) for status, there in enumerate(ON_NODE) if there]


class OpeningFigures:
    """Columns that sessions write, as they are when a cycle opens."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._kept: list[tuple[Any, str, Any]] | None = None

    def keep(self) -> None:
        """To be called before the first write; about 0.2 ms at 5,000 nodes and 150,000 pods."""
        if self._kept is None:
            parts = ((getattr(self._snapshot, part), name) for part, name in _WRITTEN)
            self._kept = [(part, name, getattr(part, name).copy()) for part, name in parts]

    def put_back(self) -> None:
        """The next session keeps them anew: a node may be left out meanwhile, and the columns are others."""
        for part, name, values in self._kept or ():
            getattr(part, name)[...] = values
        self._kept = None


class SetAside:
    """Jobs that take no part in a cycle because something failed on them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._originals: list[tuple[Any, str, Any]] = []
        self._tasks: dict[int, dict[int, None]] = {}
        self._left_out: list[int] = []
        self.rows: set[int] = set()

    def holds_nodes(self, row: int) -> bool:
        return bool(self._snapshot.jobs.counts[row, _PLACED].any())

    def add(self, row: int) -> bool:
        """Take the job out. One that holds nodes loses its pending tasks first, because others may have to know whose pods those
        are, and all else when it fails again. False: there is nothing left to take."""
        jobs = self._snapshot.jobs
        if row in self._left_out or jobs.specs[row] is None:
            return False
        first = row not in self.rows
        self.rows.add(row)
        if first:
            self._hide_pending(row)
        if not first or not self.holds_nodes(row):
            jobs.leave_out(row)
            self._left_out.append(row)
        return True

    def _hide_pending(self, row: int) -> None:
        self._copy_columns()
        tasks, jobs = self._snapshot.tasks, self._snapshot.jobs
        rows = list(jobs.tasks[row])
        waiting = [task for task in rows if tasks.status[task] == TaskStatus.PENDING]
        self._tasks[row] = jobs.tasks[row]
        jobs.tasks[row] = dict.fromkeys(task for task in rows if task not in set(waiting))
        tasks.alive[waiting] = False
        queue = int(jobs.queue[row])
        if queue >= 0:
            jobs.queue_pending[:, queue] -= jobs.pending[:, row]
            jobs.queue_jobs[queue] -= not self.holds_nodes(row)
        jobs.pending[:, row] = 0
        jobs.counts[row, TaskStatus.PENDING] = 0
        jobs.best_effort_pending[row] = 0
        jobs.has_min_resources[row] = False

    def _copy_columns(self) -> None:
        if not self._originals:
            for part_name, name in _HIDING:
                part = getattr(self._snapshot, part_name)
                original = getattr(part, name)
                self._originals.append((part, name, original))
                setattr(part, name, np.array(original))

    def restore(self) -> None:
        """The snapshot shows every job again, for recordings and for the next snapshot, which uses its copies again."""
        jobs = self._snapshot.jobs
        for part, name, original in self._originals:
            setattr(part, name, original)
        for row, tasks in self._tasks.items():
            jobs.tasks[row] = tasks
        for row in self._left_out:
            jobs.specs[row] = jobs.left_out.pop(row)
