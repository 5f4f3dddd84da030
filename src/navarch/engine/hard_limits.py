"""Which waiting pods would run if nodes were added, as far as hard limits go: those that fit under what the limits leave.

A limit leaves room for some of the jobs that wait for it, not for each of them. So the jobs are walked in job order. A gang takes what
its minimum asks for, whole, or nothing; then each further pod takes its own. What is taken counts for all jobs behind. Pods that find
too little left are told so, and do not say that nodes would help them.

Jobs of queues without limits are not looked at, and a job of which an equal one found too little costs one look-up. Jobs that are
held (the live scheduler tries them again later) take their part too: their pods asked for nodes when they were tried last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.job import Job
from navarch.engine.pod_conditions import QUEUE_LIMIT, UNSCHEDULABLE, WaitingPods, pod_reason
from navarch.engine.points.protocols import HardLimit, HardLimits
from navarch.engine.reasons import Event, Reason
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.engine.session import Session

MOST_JOBS = 1000
"""Of all jobs under limits the first by priority and age are walked. Those behind them are taken to find nothing left."""
_UNDONE_BY = (Event.POD_REMOVED, Event.QUEUE_CHANGED, Event.JOB_CHANGED)


def beyond_limits(session: Session, jobs: Iterable[Job]) -> dict[int, Reason]:
    """Task row -> why the task would not run on new nodes either, for pending tasks of these jobs that would say so otherwise."""
    plugins = session.implementing(HardLimits)
    if not plugins:
        return {}
    walk = _Walk(session, plugins)
    concluded = {
        job.row: job
        for job in jobs
        if job.counts[TaskStatus.PENDING] and walk.limits(job) and WaitingPods(session, job).of_job == UNSCHEDULABLE
    }
    if not concluded:
        return {}
    claiming = [*concluded.values(), *_held(session, {job.queue.name for job in concluded.values()})]
    claiming.sort(key=lambda job: (-job.priority, job.spec.created, job.key))
    first = claiming[:MOST_JOBS]
    for job in sorted(first, key=session.job_order):
        walk.take(job)
    for job in claiming[MOST_JOBS:]:
        walk.refuse_all(job)
    return walk.refused


class _Walk:
    def __init__(self, session: Session, plugins: Sequence[HardLimits]) -> None:
        self._session = session
        self._plugins = plugins
        self._nothing_left: dict[tuple[int, tuple[tuple[int, int], ...]], Reason] = {}
        """(first limit, shapes of the pods and how many of each) -> why they found too little: what is left only shrinks."""
        self._limits: dict[tuple[str, bool], list[HardLimit]] = {}
        self.refused: dict[int, Reason] = {}

    def limits(self, job: Job) -> list[HardLimit]:
        """The same for all jobs of a queue that can, or cannot, be preempted."""
        key = (job.queue.name, job.spec.preemptable)
        found = self._limits.get(key)
        if found is None:
            found = self._limits[key] = [limit for plugin in self._plugins for limit in plugin.hard_limits(job)]
        return found

    def take(self, job: Job) -> None:
        """Give the job its part, and note the pods that find too little."""
        limits, waiting = self.limits(job), self._waiting(job)
        if not limits or not waiting:
            return
        needed = max(job.min_member - job.ready_count - job.counts[TaskStatus.PIPELINED], 0)
        gang, further = waiting[:needed], waiting[needed:]
        if gang and (why := self._take(limits, gang)) is not None:
            self.refused.update(dict.fromkeys(waiting, why))
            return
        for task in further:
            if (why := self._take(limits, [task])) is not None:
                self.refused[task] = why

    def refuse_all(self, job: Job) -> None:
        text = f"{MOST_JOBS} jobs under the same limits come before it"
        self.refused.update(dict.fromkeys(self._waiting(job), Reason(QUEUE_LIMIT, text, undone_by=_UNDONE_BY)))

    def _waiting(self, job: Job) -> list[int]:
        gated = self._session.snapshot.tasks.gated
        return self._session.sorted_tasks([task for task in job.tasks_in(TaskStatus.PENDING) if not gated[task]])

    def _take(self, limits: Sequence[HardLimit], tasks: Sequence[int]) -> Reason | None:
        shapes = Counter(self._session.shape[list(tasks)].tolist())
        key = (id(limits[0]), tuple(sorted(shapes.items())))
        if (known := self._nothing_left.get(key)) is not None:
            return known
        example = {int(self._session.shape[task]): task for task in tasks}
        amounts = [_sum(limit, [(example[shape], count) for shape, count in shapes.items()]) for limit in limits]
        for limit, asked in zip(limits, amounts):
            if short := limit.lacking(asked):
                text = limit.told(short, asked[short], limit.left[short])
                why = self._nothing_left[key] = Reason(limit.code, text, undone_by=_UNDONE_BY)
                return why
        for limit, asked in zip(limits, amounts):
            for name, amount in asked.items():
                if name in limit.left:
                    limit.left[name] -= amount
        return None


def _sum(limit: HardLimit, tasks: Iterable[tuple[int, int]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for task, count in tasks:
        for name, amount in limit.asked(task).items():
            found[name] = found.get(name, 0.0) + amount * count
    return found


def _held(session: Session, queues: set[str]) -> list[Job]:
    """The first held jobs that may claim room under the limits of these queues: those that are told nothing else yet."""
    jobs, tasks = session.snapshot.jobs, session.snapshot.tasks
    held = np.fromiter(jobs.held, dtype=np.intp, count=len(jobs.held))
    numbers = [number for number, name in enumerate(jobs.queue_names) if name in queues and name in session.queues]
    rows = held[np.isin(jobs.queue[held], numbers) & (jobs.counts[held, TaskStatus.PENDING] > 0)]
    created = np.array([jobs.held[row].created for row in rows.tolist()])
    found: list[Job] = []
    for row in rows[np.lexsort((rows, created, -jobs.priority[rows]))[:MOST_JOBS]].tolist():
        spec = jobs.held[row]
        first = next(task for task in jobs.tasks[row] if tasks.status[task] == TaskStatus.PENDING)
        if _said(session, first) in ("", UNSCHEDULABLE, pod_reason(QUEUE_LIMIT)):
            found.append(Job(session, row, spec, session.queues[spec.queue]))
    return found


def _said(session: Session, task: int) -> str:
    """The reason that the pod shows."""
    conditions = session.task(task).conditions
    return next((reason for kind, value, reason, _ in conditions if (kind, value) == ("PodScheduled", "False")), "")
