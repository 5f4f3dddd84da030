"""Jobs of every queue in job order, kept for all searches of an action.

An action that searches victims for one job after another needs the same running jobs each time. Sorting them again would cost more
than everything else, so they stay sorted, and only changed jobs are moved.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TYPE_CHECKING

from navarch.engine.job import Job
from navarch.engine.points.order_key import OrderKey

if TYPE_CHECKING:
    from navarch.engine.session import Session

Entry = tuple[OrderKey, int, Job]


class SortedJobs:
    def __init__(self, session: Session, jobs: Iterable[Job]) -> None:
        self.session = session
        self.queues: dict[str, list[Entry]] = {}
        """Queue -> its jobs in order. Read only; copy it to change it."""
        self._entries: dict[int, Entry] = {}
        for job in jobs:
            entry = self._entries[job.row] = (session.job_order(job), job.row, job)
            self.queues.setdefault(job.queue.name, []).append(entry)
        for entries in self.queues.values():
            entries.sort()

    def update(self, job: Job, *, keep: bool) -> None:
        """The job changed: move it to its place, or remove it."""
        entries = self.queues.setdefault(job.queue.name, [])
        before = self._entries.pop(job.row, None)
        if before is not None:
            del entries[bisect_left(entries, before)]
        if keep:
            entry = self._entries[job.row] = (self.session.job_order(job), job.row, job)
            insort(entries, entry)
