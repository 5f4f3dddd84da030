"""Takes jobs out of a snapshot as if they did not exist, puts the snapshot back as it was when the cycle opened, and restores both.

A session writes into a few columns of its snapshot. A cycle that failed starts again from the figures that the snapshot keeps beside
them (`opening`); they are copied where it keeps none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from navarch.model.snapshot import NodeColumns, Snapshot, TaskColumns
from navarch.model.status import ON_NODE, TaskStatus

_WRITTEN = {TaskColumns: ("status", "node"), NodeColumns: ("figures",)}
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
        self._kept: list[tuple[TaskColumns | NodeColumns, Mapping[str, Any]]] | None = None

    def keep(self) -> None:
        """To be called before a session opens, which may write figures. The snapshot keeps the figures of its first cycle alone."""
        if self._kept is None:
            self._kept = []
            for part in (self._snapshot.tasks, self._snapshot.nodes):
                opening, part.opening = part.opening, None
                self._kept.append((part, opening or {name: getattr(part, name).copy() for name in _WRITTEN[type(part)]}))

    def put_back(self) -> None:
        """The next session keeps them anew: a node may be left out meanwhile, and the columns are others."""
        for part, kept in self._kept or ():
            for name, values in kept.items():
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
        jobs.tasks[row] = dict.fromkeys(task for task in rows if tasks.status[task] != TaskStatus.PENDING)
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
