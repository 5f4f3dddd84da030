"""Priority: the order of jobs and tasks, and preemption by priority inside a queue.

Jobs are ordered by the value of their priority class, tasks by their own priority, highest first. A victim's job must have lower
priority than the preemptor's; within one job, the victim task must.
"""

from __future__ import annotations

from collections.abc import Sequence

from navarch.engine.gangs.sub_jobs import SubJob
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey
from navarch.model.status import TaskStatus


class Priority(Plugin):
    """Orders jobs and tasks by priority; lower priority is preemptable"""

    name = "priority"
    turns_in_one_step = True

    def job_order(self, job: Job) -> OrderKey:
        return -job.priority

    def sub_job_order(self, sub_job: SubJob) -> OrderKey:
        return -sub_job.priority

    def task_order(self, task: int) -> OrderKey:
        return -self.session.task(task).priority

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        session = self.session
        job = session.job_of(preemptor)
        assert job is not None
        mine, own = job.priority, session.task(preemptor).priority
        out = []
        for candidate in candidates:
            other = session.job_of(candidate)
            if other is None:
                continue
            lower = session.task(candidate).priority < own if other is job else other.priority < mine
            if lower:
                out.append(candidate)
        return out

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None:
        if reclaim:
            return list(candidates)
        jobs = ((c, self.session.job_of(c)) for c in candidates)
        return [c for c, other in jobs if other is not None and other.priority < job.priority]

    def job_starving(self, job: Job) -> bool:
        return job.ready_count + job.counts[TaskStatus.PIPELINED] < len(job.tasks)


class KubeBatchPriority(Priority):
    """Orders jobs and tasks by priority; tasks of lower jobs are preemptable, those of the same job never"""

    dialect = "kube-batch"

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        job = self.session.job_of(preemptor)
        assert job is not None
        others = ((c, self.session.job_of(c)) for c in candidates)
        return [c for c, other in others if other is not None and other.priority < job.priority]
