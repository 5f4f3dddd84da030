"""Incremental copies of table columns for snapshots: only rows that were written since the last snapshot are copied.

A cycle needs columns that stay fixed while it runs. Copying fifty thousand rows because one pod changed would cost more than
the decision. So a snapshot out of use gives its arrays back, and the next one copies only the rows in the table's `touched`
(bench/decide, "snapshot"). Only `IncrementalCopy` writes into its arrays; others get read-only views.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from navarch.model.resources import RowArray
from navarch.model.snapshot import JobColumns, TaskColumns
from navarch.model.spec import JobSpec
from navarch.model.tables import jobs, tasks
from navarch.model.tables.columns import Array
from navarch.model.tables.job_marks import JobMarks
from navarch.model.tables.jobs import JobTable
from navarch.model.tables.tasks import TaskTable

FEW = 8
"""Up to this many rows are copied one by one."""
MANY = 8
"""When more than one row in this many was touched, all rows are copied."""


class Table(Protocol):
    touched: set[int]
    """Rows written since the last copy. A set, so that it stays bounded when no snapshot is taken."""


class IncrementalCopy:
    def __init__(self, columns: tuple[str, ...], lists: tuple[str, ...], *, rows_first: tuple[str, ...] = ()) -> None:
        """`columns` have rows last, `rows_first` first; `lists` have one element a row."""
        self._axes = {**dict.fromkeys(columns, -1), **dict.fromkeys(rows_first, 0)}
        self._arrays: dict[str, Array] = {}
        self._lists: dict[str, list[Any]] = {name: [] for name in lists}
        self._top = 0

    def follow(self, table: Table, top: int) -> np.ndarray[Any, np.dtype[np.intp]] | None:
        """Update the copy from the table's first `top` rows. Returns the copied rows; None: all."""
        rows: np.ndarray[Any, np.dtype[np.intp]] | None = None
        if self._arrays and len(table.touched) * MANY <= top:
            rows = np.fromiter(table.touched, dtype=np.intp, count=len(table.touched))
        for name, axis in self._axes.items():
            self._copy(name, getattr(table, name), rows, axis, top)
        for name, copy in self._lists.items():
            source: list[Any] = getattr(table, name)
            if rows is None:
                copy[:] = source
                continue
            copy += source[len(copy) :]
            for row in table.touched:
                copy[row] = source[row]
        table.touched.clear()
        self._top = top
        return rows

    def _copy(self, name: str, source: Array, rows: np.ndarray[Any, np.dtype[np.intp]] | None, axis: int, top: int) -> None:
        copy = self._arrays.get(name)
        if rows is None or copy is None or copy.shape != source.shape:
            used = (slice(top),) if axis == 0 else (..., slice(top))
            copy = self._arrays[name] = np.empty_like(source)
            copy[used] = source[used]
        elif len(rows) > FEW:
            if axis:
                copy[..., rows] = source[..., rows]
            else:
                copy[rows] = source[rows]
        else:  # plain views are several times cheaper than gathers
            for row in rows.tolist():
                if axis and copy.ndim > 1:
                    copy[:, row] = source[:, row]
                else:
                    copy[row] = source[row]

    def columns(self, resources: int = 0) -> dict[str, Any]:
        """The rows in use of every column and list by name, read only. Columns over resources are cut to the first `resources`."""
        out: dict[str, Any] = dict(self._lists)
        for name, array in self._arrays.items():
            if self._axes[name] == 0 or array.ndim == 1:
                view = array[: self._top]
            else:
                view = array[:resources, : self._top]
            view.flags.writeable = False
            out[name] = view
        return out


class SnapshotColumns:
    """The task and job columns of snapshots, each kept by an incremental copy."""

    def __init__(self) -> None:
        self._tasks = IncrementalCopy(tasks.COLUMNS, ("specs",))
        self._jobs = IncrementalCopy(jobs.COLUMNS, ("keys", "specs", "tasks"), rows_first=("counts",))
        self._marks = JobMarks()
        self._held: dict[int, JobSpec] = {}

    def of_tasks(self, table: TaskTable, node_rows: RowArray) -> TaskColumns:
        """`node_rows`: the snapshot's row of each of the table's nodes; the last is for tasks without one (-1)."""
        top = table.rows.top
        self._tasks.follow(table, top)
        return TaskColumns(status=table.status[:top].copy(), node=node_rows[table.node[:top]], **self._tasks.columns())

    def of_jobs(self, table: JobTable) -> JobColumns:
        table.epoch += 1
        top, size, queues = table.rows.top, len(table.space), len(table.queue_names)
        rows = self._jobs.follow(table, top)
        self._marks.follow(table, rows)
        columns = JobColumns(
            queue_names=list(table.queue_names),
            phases=list(table.phases),
            queue_allocated=table.queue_allocated[:size, :queues].copy(),
            queue_pending=table.queue_pending[:size, :queues].copy(),
            queue_jobs=table.queue_jobs[:queues].copy(),
            marks=self._marks,
            held=self._held,
            **self._jobs.columns(size),
        )
        self._leave_out_absent(columns.specs, range(top) if rows is None else rows.tolist())
        return columns

    def _leave_out_absent(self, specs: list[JobSpec | None], rows: Iterable[int]) -> None:
        """Move the specs of absent jobs in these rows out of the snapshot, into `held`."""
        absent = self._marks.absent
        for row in rows:
            spec = specs[row]
            if absent[row] and spec is not None:
                self._held[row], specs[row] = spec, None
            elif self._held:
                self._held.pop(row, None)
