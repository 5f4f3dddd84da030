"""Incremental copies of table columns for snapshots: only rows that were written since the last snapshot are copied.

A cycle needs columns that stay fixed while it runs. Copying fifty thousand rows because one pod changed would cost more than
the decision. So a snapshot out of use gives its arrays back, and the next one copies only the rows in the table's `touched`
(bench/decide, "snapshot"). Only `IncrementalCopy` writes into its arrays; others get read-only views.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from navarch.model.resources import IntArray, RowArray
from navarch.model.snapshot import JobColumns, NodeColumns, TaskColumns
from navarch.model.spec import JobSpec, NodeSpec
from navarch.model.tables import jobs, tasks
from navarch.model.tables.columns import Array
from navarch.model.tables.job_marks import JobMarks
from navarch.model.tables.jobs import JobTable
from navarch.model.tables.nodes import NodeTable
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
        self._pairs: list[tuple[Array, Array]] = []
        """(copy, source) of each column, while the table has the arrays of the last copy."""
        self._views: tuple[tuple[int, int], dict[str, Any]] | None = None
        """What `columns` gave last, by the number of rows and of resources; None: some array was replaced since."""

    def follow(self, table: Table, top: int) -> Touched | None:
        """Update the copy from the table's first `top` rows. Returns the copied rows; None: all."""
        rows: Touched | None = None
        if self._arrays and len(table.touched) * MANY <= top:
            rows = np.fromiter(table.touched, dtype=np.intp, count=len(table.touched))
        sources: tuple[Array, ...] = self._columns_of(table)
        if rows is not None and len(rows) <= FEW and all(map(_is_source, self._pairs, sources)):
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
            self._pairs = [(self._arrays[name], source) for name, source in zip(self._axes, sources)]
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
        for (copy, source), axis in zip(self._pairs, self._axes.values()):
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


def _is_source(pair: tuple[Array, Array], source: Array) -> bool:
    return pair[1] is source


class SnapshotColumns:
    """The columns of snapshots, each kept by an incremental copy."""

    def __init__(self) -> None:
        self._tasks = IncrementalCopy(tasks.COLUMNS, ("specs",))
        self._jobs = IncrementalCopy(jobs.COLUMNS, ("keys", "specs", "tasks"), rows_first=("counts",))
        self._marks = JobMarks()
        self._held: dict[int, JobSpec] = {}
        self._nodes: dict[str, IntArray] = {}
        """Figures of nodes in the order of snapshots."""
        self._handed_out: NodeColumns | None = None
        """Those of the last snapshot."""
        self._node_rows: RowArray | None = None
        """The order of `_nodes`, as the snapshot's row of each of the table's nodes."""
        self._node_of: RowArray | None = None
        """The snapshot's node row of each task, in that order."""

    def of_nodes(
        self,
        table: NodeTable,
        order: Touched,
        node_rows: RowArray,
        size: int,
        names: list[str],
        specs: list[NodeSpec],
        version: Hashable,
    ) -> NodeColumns:
        """Nodes in this order, with the first `size` resources. `node_rows`: the snapshot's row of each of the table's nodes, -1 for
        none. The same array means the same order. The columns of the last snapshot are used again while the same nodes are there and
        the log of its session names all rows that it wrote."""
        rows = self._follow_nodes(table, order, node_rows, size)
        last = self._handed_out
        if rows is not None and last is not None and last.specs is specs and last.version == version and self._put_back(last, rows):
            return last
        self._handed_out = NodeColumns(
            names=names,
            specs=specs,
            allocatable=self._nodes["allocatable"].copy(),
            used=self._nodes["used"].copy(),
            releasing=self._nodes["releasing"].copy(),
            scoring=self._nodes["scoring"].copy(),
            version=version,
            opening=self._nodes,
        )
        return self._handed_out

    def _put_back(self, nodes: NodeColumns, changed: Iterable[int]) -> bool:
        """Bring columns that a session wrote to the figures of now: the rows of its log, and those that have changed since. All of
        them are the next entry of the log. False: they are too many, or the log does not name all of them."""
        if nodes.written is None:
            return False
        rows = set(changed)
        for part in nodes.written[nodes.read :]:
            rows.update(part.tolist())
        if len(rows) * MANY > len(nodes):
            return False
        at = np.array(sorted(rows), dtype=np.intp)
        for name, figures in self._nodes.items():
            column = getattr(nodes, name)
            if len(rows) > FEW:
                column[:, at] = figures[:, at]
                continue
            for row in rows:
                column[:, row] = figures[:, row]
        nodes.written.append(at)
        nodes.read, nodes.opening = len(nodes.written), self._nodes
        return True

    def _follow_nodes(self, table: NodeTable, order: Touched, node_rows: RowArray, size: int) -> list[int] | None:
        """Update the figures from the table. Returns the rows of the snapshot that were updated; None: all."""
        touched = table.touched
        places: list[int] | None = None
        if self._node_rows is not node_rows or self._nodes["used"].shape[0] != size or len(touched) * MANY > len(order):
            self._nodes = {name: getattr(table, name)[:size].take(order, axis=1) for name in ("allocatable", "used", "releasing")}
            self._nodes["scoring"] = table.scoring.take(order, axis=1)
            self._node_of = self._node_of if self._node_rows is node_rows else None
            self._node_rows = node_rows
        else:
            rows = np.fromiter(touched, dtype=np.intp, count=len(touched))
            found = node_rows[rows]
            rows, found = rows[found >= 0], found[found >= 0]
            places = found.tolist()
            for name, copy in self._nodes.items() if places else ():
                source = getattr(table, name)
                if len(places) > FEW:
                    copy[:, found] = source[: len(copy), rows]
                    continue
                for row, place in zip(rows.tolist(), places):
                    copy[:, place] = source[: len(copy), row]
        touched.clear()
        return places

    def of_tasks(self, table: TaskTable, node_rows: RowArray) -> TaskColumns:
        """`node_rows`: the snapshot's row of each of the table's nodes; the last is for tasks without one (-1). Called after
        `of_nodes`."""
        top = table.rows.top
        rows = self._tasks.follow(table, top)
        if rows is None or self._node_of is None or len(self._node_of) != top:
            self._node_of = node_rows[table.node[:top]]
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
