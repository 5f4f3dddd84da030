"""Incremental copies of table columns for snapshots: only rows that were written since the last snapshot are copied.

A cycle needs columns that stay fixed while it runs. Copying fifty thousand rows because one pod changed would cost more than
the decision. So a snapshot out of use gives its arrays back, and the next one copies only the rows in the table's `touched`
(bench/decide, "snapshot"). Only `IncrementalCopy` writes into its arrays; others get read-only views.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter, is_
from typing import Any, Protocol

import numpy as np

from navarch.model.resources import RowArray
from navarch.model.snapshot import JobColumns, TaskColumns
from navarch.model.spec import JobSpec
from navarch.model.tables import jobs, tasks
from navarch.model.tables.columns import Array
from navarch.model.tables.job_marks import JobMarks
from navarch.model.tables.jobs import JobTable
from navarch.model.tables.node_copies import NodeCopies
from navarch.model.tables.tasks import TaskTable

FEW = 8
"""Up to this many rows are copied one by one."""
MANY = 8
"""When more than one row in this many was touched, all rows are copied."""
Touched = np.ndarray[Any, np.dtype[np.intp]]


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
        self._columns_of = attrgetter(*self._axes)
        self._sources: tuple[Array, ...] = ()
        """The table's columns when they were last copied, and the copies of them."""
        self._copies: list[Array] = []
        self._views: tuple[tuple[int, int], dict[str, Any]] | None = None
        """What `columns` gave last, by the number of rows and of resources; None: some array was replaced since."""

    def follow(self, table: Table, top: int) -> Touched | None:
        """Update the copy from the table's first `top` rows. Returns the copied rows; None: all."""
        rows: Touched | None = None
        if self._arrays and len(table.touched) * MANY <= top:
            rows = np.fromiter(table.touched, dtype=np.intp, count=len(table.touched))
        sources: tuple[Array, ...] = self._columns_of(table)
        if rows is not None and len(rows) <= FEW and all(map(is_, self._sources, sources)):
            self._copy_few(table.touched)
        else:
            for (name, axis), source in zip(self._axes.items(), sources):
                copy = self._arrays.get(name)
                if rows is None or copy is None or copy.shape != source.shape:
                    self._copy_all(name, source, axis, top)
                elif axis:
                    copy[..., rows] = source[..., rows]
                else:
                    copy[rows] = source[rows]
            self._sources, self._copies = sources, [self._arrays[name] for name in self._axes]
        for name, kept in self._lists.items():
            listed: list[Any] = getattr(table, name)
            if rows is None:
                kept[:] = listed
                continue
            kept += listed[len(kept) :]
            for row in table.touched:
                kept[row] = listed[row]
        table.touched.clear()
        self._top = top
        return rows

    def _copy_few(self, rows: Iterable[int]) -> None:
        """Row by row: plain views are several times cheaper than gathers."""
        for copy, source, axis in zip(self._copies, self._sources, self._axes.values()):
            if axis and copy.ndim > 1:
                for row in rows:
                    copy[:, row] = source[:, row]
            else:
                for row in rows:
                    copy[row] = source[row]

    def _copy_all(self, name: str, source: Array, axis: int, top: int) -> None:
        used = (slice(top),) if axis == 0 else (..., slice(top))
        copy = self._arrays[name] = np.empty_like(source)
        copy[used] = source[used]
        self._views = None

    def columns(self, resources: int = 0) -> dict[str, Any]:
        """The rows in use of every column and list by name, read only. Columns over resources are cut to the first `resources`."""
        size = (self._top, resources)
        if self._views is None or self._views[0] != size:
            self._views = size, {**self._lists, **{name: self._view(name, resources) for name in self._arrays}}
        return self._views[1]

    def _view(self, name: str, resources: int) -> Array:
        array = self._arrays[name]
        in_use = array[: self._top] if self._axes[name] == 0 or array.ndim == 1 else array[:resources, : self._top]
        in_use.flags.writeable = False
        return in_use


class SnapshotColumns:
    """The columns of snapshots, each kept by an incremental copy."""

    def __init__(self) -> None:
        self._tasks = IncrementalCopy(tasks.COLUMNS, ("specs",))
        self._jobs = IncrementalCopy(jobs.COLUMNS, ("keys", "specs", "tasks"), rows_first=("counts",))
        self._marks = JobMarks()
        self._held: dict[int, JobSpec] = {}
        self.nodes = NodeCopies()
        self._node_rows: RowArray | None = None
        """The order of nodes, as the snapshot's row of each of the table's nodes."""
        self._node_of: RowArray | None = None
        """The snapshot's node row of each task, in that order."""

    def of_tasks(self, table: TaskTable, node_rows: RowArray) -> TaskColumns:
        """`node_rows`: the snapshot's row of each of the table's nodes; the last is for tasks without one (-1). The same array means
        the same order."""
        top = table.rows.top
        rows = self._tasks.follow(table, top)
        if rows is None or self._node_of is None or self._node_rows is not node_rows or len(self._node_of) != top:
            self._node_of, self._node_rows = node_rows[table.node[:top]], node_rows
        elif len(rows):
            self._node_of[rows] = node_rows[table.node[rows]]
        columns = TaskColumns(node=self._node_of, **self._tasks.columns())
        columns.opening = {"status": columns.status, "node": columns.node}
        columns.status, columns.node = columns.status.copy(), columns.node.copy()
        return columns

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
