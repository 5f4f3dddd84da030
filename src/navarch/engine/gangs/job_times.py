"""When jobs last started and were last evicted. Decisions of the current cycle count at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from navarch.engine.job import Job

if TYPE_CHECKING:
    from navarch.engine.session import Session


class JobTimes:
    """Made with `Session.shared`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._started: dict[int, float] = {}
        self._evicted: dict[int, float] = {}
        self.stale: dict[int, float] = {}
        """Job row -> since when it has run below its minimum."""
        self.checked_for_stale = False
        """Whether this cycle checked_for_stale for gangs below their minimum."""

    def started(self, job: Job) -> float | None:
        return self._started.get(job.row, job.spec.last_started)

    def evicted(self, job: Job) -> float | None:
        return self._evicted.get(job.row, job.spec.last_evicted)

    def note_start(self, job: Job) -> None:
        self._started[job.row] = self.session.now

    def note_eviction(self, job: Job) -> None:
        self._evicted[job.row] = self.session.now

    def note_stale(self, job: Job, since: float) -> None:
        self.stale[job.row] = since
        job.status_changed = job.status_changed or since != job.spec.stale_since

    def stale_since(self, job: Job) -> float | None:
        """None: the gang is complete, or no action checked it and it was never stale."""
        return self.stale.get(job.row) if self.checked_for_stale else job.spec.stale_since

    def may_evict_from(self, job: Job) -> float:
        """The earliest time at which the job may evict others."""
        return max(job.spec.created, self.evicted(job) or 0.0) + job.spec.preemption_delay

    def waited(self, job: Job) -> bool:
        """Whether the job has waited as long as it must before it may evict others."""
        return job.spec.preemption_delay <= 0 or self.session.now >= self.may_evict_from(job)
