"""After a task found no node: is there any point in trying the job's other tasks?"""

from __future__ import annotations

from navarch.engine.gangs.subjobs import SubJob
from navarch.engine.job import Job
from navarch.model.status import TaskStatus


def need_continue(job: Job, part: SubJob | None = None) -> bool:
    """False when the job, or the part of it at hand, can no longer reach its minimum without the roles that failed."""
    if job.min_member >= len(job.tasks) or job.session.semantics.misfit_ends_turn:
        return False
    if part is not None and part.min_member >= len(part.tasks):
        return False
    if job.spec.sub_groups:
        return True
    session = job.session
    failed = {session.task(t).role for t in job.fit_errors}
    roles = dict(job.spec.roles)
    if job.min_member < sum(roles.values()):
        pending = [t for t in job.tasks_in(TaskStatus.PENDING) if session.task(t).role not in failed]
        return job.ready_count + len(pending) >= job.min_member
    ready = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED)
    counts = job.role_counts(ready, pending_best_effort=True)
    return all(counts[role] >= roles.get(role, 0) for role in failed)
