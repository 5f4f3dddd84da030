"""stalegangeviction: evicts the rest of a gang that is below its minimum for longer than its grace period.

A gang with succeeded pods is finishing, not stale.
"""

from __future__ import annotations

from navarch.actions.kai.pending_jobs import KaiAction
from navarch.engine.gangs.job_times import JobTimes
from navarch.engine.job import Job
from navarch.model.status import ON_NODE, TaskStatus

_USED = [int(s) for s in TaskStatus if ON_NODE[s] or s == TaskStatus.PIPELINED]


class StaleGangEviction(KaiAction):
    """Evicts gangs that have run below their minimum for too long"""

    name = "stalegangeviction"

    def execute(self) -> None:
        session = self.session
        job_times = session.shared(JobTimes)
        job_times.checked_for_stale = True
        for job in session.jobs_maybe_broken():
            if not self._is_stale(job):
                continue
            since = session.now if job.spec.stale_since is None else job.spec.stale_since
            job_times.note_stale(job, since)
            grace = self._grace(job)
            if grace < 0 or session.now - since < grace:
                continue
            statement = session.statement()
            for task in job.tree.active:
                if session.node[task] < 0:  # its node is gone, and it will follow
                    continue
                statement.evict(task, reason=self.name, message="the gang has fewer pods than it needs")
            if len(statement):
                job_times.note_eviction(job)
            statement.commit()

    def _grace(self, job: Job) -> float:
        if job.spec.staleness_grace is not None:
            return job.spec.staleness_grace
        grace = self.session.policy.param("globalDefaultStalenessGracePeriod")
        assert isinstance(grace, int | float)
        return float(grace)

    def _is_stale(self, job: Job) -> bool:
        if job.counts[TaskStatus.SUCCEEDED] or not any(job.counts[status] for status in _USED):
            return False
        return bool(job.tree.used) and not job.tree.is_whole
