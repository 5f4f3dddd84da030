"""A snapshot's columns of tasks and jobs, made from the tables through their twins (see `twin`)."""

from __future__ import annotations

from collections.abc import Iterable

from navarch.model.resources import RowArray
from navarch.model.snapshot import JobColumns, TaskColumns
from navarch.model.spec import JobSpec
from navarch.model.tables import jobs, tasks
from navarch.model.tables.incremental_copy import IncrementalCopy
from navarch.model.tables.job_marks import JobMarks
from navarch.model.tables.jobs import JobTable
from navarch.model.tables.tasks import TaskTable


class Copies:
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
        self._pass_over(columns.specs, range(top) if rows is None else rows.tolist())
        return columns

    def _pass_over(self, specs: list[JobSpec | None], rows: Iterable[int]) -> None:
        """Take the specs of absent jobs out of the snapshot, of these rows, and keep them apart."""
        absent = self._marks.absent
        for row in rows:
            spec = specs[row]
            if absent[row] and spec is not None:
                self._held[row], specs[row] = spec, None
            elif self._held:
                self._held.pop(row, None)
