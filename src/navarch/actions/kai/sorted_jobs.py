"""Jobs of every queue in job order, kept from one forest to the next.

An action that looks for victims for one job after another asks for the same running jobs again and again. Sorting them anew costs
more than all the rest, so they are kept sorted, and only jobs that changed are put in another place.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TYPE_CHECKING

from navarch.engine.job import Job
from navarch.engine.points.protocols import Key

if TYPE_CHECKING:
    from navarch.engine.session import Session

Entry = tuple[Key, int, Job]


class JobShelf:
    def __init__(self, session: Session, jobs: Iterable[Job]) -> None:
        self.session = session
        self.queues: dict[str, list[Entry]] = {}
        """Queue -> its jobs, first in order first. Read it; copies may be changed."""
        self._entries: dict[int, Entry] = {}
        for job in jobs:
            entry = self._entries[job.row] = (session.job_order(job), job.row, job)
            self.queues.setdefault(job.queue.name, []).append(entry)
        for entries in self.queues.values():
            entries.sort()

    def renew(self, job: Job, *, keep: bool) -> None:
        """The job changed: it stands elsewhere, or no longer here."""
        entries = self.queues.setdefault(job.queue.name, [])
        before = self._entries.pop(job.row, None)
        if before is not None:
            del entries[bisect_left(entries, before)]
        if keep:
            entry = self._entries[job.row] = (self.session.job_order(job), job.row, job)
            insort(entries, entry)
