"""Writes the job history: which jobs came, started and finished, as the watch shows it.

A gang is one row, and it has finished when none of its pods holds a node and one of them has ended. Pods of other workloads start one
by one, so each is a row. Changes are kept in memory and written every few seconds, off the event loop. If the file cannot be written,
scheduling goes on and the newest rows wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from navarch.job_history import HistoryError, JobHistory, JobRun, is_gang, run_of
from navarch.model.cluster import Cluster
from navarch.model.spec import TaskSpec
from navarch.model.status import IS_TERMINAL, ON_NODE, TaskStatus

log = logging.getLogger(__name__)

INTERVAL = 10.0
"""Seconds between two writes."""
MOST_WAITING = 20_000
"""Rows that wait to be written at most; the oldest are dropped."""


class JobRecorder:
    """`clock` gives seconds since the epoch."""

    def __init__(self, path: Path, cluster: Callable[[], Cluster], clock: Callable[[], float]) -> None:
        self._file = JobHistory(path)
        self._cluster = cluster
        self._clock = clock
        self._rows: dict[str, JobRun] = {}
        self._gangs: dict[str, None] = {}
        """Keys of gangs with pods that came or started."""
        self._written = clock()
        self._failed = ""

    def task_changed(self, before: TaskSpec | None, task: TaskSpec) -> None:
        """A pod came or changed."""
        ended = bool(IS_TERMINAL[task.status]) and before is not None and not IS_TERMINAL[before.status]
        started = task.status == TaskStatus.RUNNING and (before is None or before.status != task.status)
        if ended or started or before is None:
            self._note(task, ended=ended)

    def task_removed(self, before: TaskSpec) -> None:
        """A pod is gone. The pods of a finished gang that still ran are often deleted."""
        if ON_NODE[before.status]:
            self._note(before, ended=True, removed=True)

    def _note(self, task: TaskSpec, *, ended: bool, removed: bool = False) -> None:
        jobs = self._cluster().jobs
        row = jobs.rows.of.get(task.job) if task.job else None
        job = jobs.specs[row] if row is not None else None
        if row is None or job is None:
            return
        if not is_gang(job):
            if not removed:  # how long a pod would have run that was deleted while it ran is not known
                self._put(run_of(job, [task]), ended=ended)
        elif not ended:
            self._gangs[job.key] = None
        elif not jobs.counts[row][ON_NODE].any() and jobs.counts[row][IS_TERMINAL].any():
            self._put_gang(job.key, ended=True)

    def _put_gang(self, key: str, *, ended: bool = False) -> None:
        cluster = self._cluster()
        row = cluster.jobs.rows.of.get(key)
        job = cluster.jobs.specs[row] if row is not None else None
        if row is not None and job is not None:
            tasks = [task for each in cluster.jobs.tasks[row] if (task := cluster.tasks.specs[each]) is not None]
            if tasks:
                self._put(run_of(job, tasks), ended=ended)

    def _put(self, run: JobRun, *, ended: bool) -> None:
        before = self._rows.get(run.uid)
        finished = self._clock() if ended else before.finished if before is not None else None
        self._rows[run.uid] = replace(run, finished=finished)
        while len(self._rows) > MOST_WAITING:
            del self._rows[next(iter(self._rows))]

    async def write(self, *, at_once: bool = False) -> None:
        """Write what is due."""
        now = self._clock()
        if not at_once and now - self._written < INTERVAL:
            return
        for key in self._gangs:
            self._put_gang(key)
        self._gangs.clear()
        if not self._rows:
            return
        rows, self._rows, self._written = self._rows, {}, now
        try:
            await asyncio.to_thread(self._file.write, list(rows.values()))
        except HistoryError as error:
            self._rows = {**rows, **self._rows}
            if str(error) != self._failed:
                log.warning("the job history is not written: %s", error)
            self._failed = str(error)
        else:
            self._failed = ""

    async def close(self) -> None:
        await self.write(at_once=True)
        self._file.close()
