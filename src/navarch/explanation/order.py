"""Where a job stands among those that wait, and what decided that another is tried first."""

from __future__ import annotations

from typing import Any

from navarch.engine.job import Job
from navarch.engine.points.gang_protocols import QueueRank
from navarch.engine.points.protocols import JobOrder, QueueOrder
from navarch.engine.points.waiting_order import waiting_order
from navarch.engine.record import CycleRecord
from navarch.engine.session import Session
from navarch.explanation.result import Ahead, OrderAnswer
from navarch.ingest.groups import shown_key
from navarch.model.resources import format_amount
from navarch.model.status import TaskStatus

_SHOWN = 20
"""Jobs ahead that are told of one by one."""
_WORDS = {"proportion": "share", "capacity": "share", "drf": "share", "gang": "gang readiness"}
"""Plugins that order by something which has a plainer name than they have."""


def order_of(session: Session, record: CycleRecord, key: str) -> OrderAnswer:
    """The job's place in the cycle. Jobs that the cycle tried come first, in that order; the others follow as they would have."""
    waiting = {job.key: job for job in session.jobs_with_pending() if job.counts[TaskStatus.PENDING]}
    mine = waiting.get(key)
    if mine is None:
        return OrderAnswer()
    tried = [waiting[each] for each in record.tried if each in waiting]
    seen = {job.key for job in tried}
    rest = [job for _, job in sorted(waiting.items()) if job.key not in seen]
    jobs = tried + waiting_order(session, rest)
    place = jobs.index(mine)
    before = jobs[:place]
    own = [job for job in jobs if job.queue is mine.queue]
    by_pods = "allocate" not in session.policy.actions and "schedule" in session.policy.actions
    return OrderAnswer(
        queue=mine.queue.name,
        place=own.index(mine) + 1,
        of=len(own),
        overall=place + 1,
        overall_of=len(jobs),
        ahead=[_ahead(session, job, mine, by_pods=by_pods) for job in before[:_SHOWN]],
    )


def _ahead(session: Session, job: Job, mine: Job, *, by_pods: bool) -> Ahead:
    pending = job.tasks_in(TaskStatus.PENDING)
    total = sum((session.class_of(task).request for task in pending), start=session.total * 0)
    requests = {
        name: format_amount(name, amount)
        for name, amount in zip(session.snapshot.resource_names, total.tolist())
        if amount and name != "pods"
    }
    priority = max((session.task(task).pod_priority for task in pending), default=0) if by_pods else job.priority
    because = _by_pods(session, job, mine) if by_pods else because_of(session, job, mine)
    return Ahead(shown_key(job.key), job.queue.name, len(pending), requests, priority, because)


def because_of(session: Session, first: Job, second: Job) -> str:
    """Which order puts `first` before `second`: the name of a plugin, `age` or `name`."""
    if first.queue is not second.queue:
        if session.implementing(QueueRank):
            return "share"
        for plugin in session.implementing(QueueOrder):
            if plugin.queue_order(first.queue, second.queue):
                return _word(plugin)
        if session.semantics.longest_wait_orders_queues and first.spec.created != second.spec.created:
            return "age"
        return "age of the queue" if first.queue.spec.created != second.queue.spec.created else "name of the queue"
    for other in session.implementing(JobOrder):
        if other.job_order(first) != other.job_order(second):
            return _word(other)
    return "age" if first.spec.created != second.spec.created else "name"


def _word(plugin: Any) -> str:
    return _WORDS.get(plugin.name, str(plugin.name))


def _by_pods(session: Session, first: Job, second: Job) -> str:
    """Where pods are tried one by one."""
    mine, other = (
        min(((-spec.pod_priority, spec.created) for spec in map(session.task, job.tasks_in(TaskStatus.PENDING))), default=(0, 0.0))
        for job in (second, first)
    )
    return "priority" if mine[0] != other[0] else "age" if mine[1] != other[1] else "name"
