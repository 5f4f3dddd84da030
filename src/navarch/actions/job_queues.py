"""What actions that place tasks share: which jobs and tasks take part, and the queues they wait in.

Queues are taken from a heap whose comparison is asked when an element is pushed or popped, jobs from a heap of the keys they
had when pushed: only the queue and the job that were popped can have changed meanwhile.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from functools import cmp_to_key
from typing import Any

from navarch.engine.arguments import Argument
from navarch.engine.job import Job
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.model.status import TaskStatus

NOT_ADMITTED = ("", "Pending")
PREDICATE_ERROR_CACHE = Argument(
    "predicateErrorCacheEnable", "bool", True, "filters answer from current figures, so no refusal is cached", has_effect=False
)
"""Volcano's switch for reusing, within an action, the refusal that a node gave to another task of the same role."""


class QueueHeap:
    def __init__(self, session: Session, queues: Iterable[Queue] = ()) -> None:
        self._key = cmp_to_key(session.queue_order)
        self._heap = [(self._key(q), q) for q in sorted(queues, key=lambda q: q.name)]
        heapq.heapify(self._heap)

    def push(self, queue: Queue) -> None:
        heapq.heappush(self._heap, (self._key(queue), queue))

    def pop(self) -> Queue | None:
        return heapq.heappop(self._heap)[1] if self._heap else None


class JobHeap:
    """Jobs of one queue, best first."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._heap: list[tuple[Any, Job]] = []

    def push(self, job: Job) -> None:
        heapq.heappush(self._heap, (self._session.job_order(job), job))

    def pop(self) -> Job | None:
        return heapq.heappop(self._heap)[1] if self._heap else None

    def refuse(self, reason: Reason) -> None:
        """Nobody here gets a turn; all are told why."""
        while (job := self.pop()) is not None:
            job.refuse(reason)

    def __len__(self) -> int:
        return len(self._heap)


class Turns:
    """Queues take turns, best first, and in its turn each has its best job looked at. A queue that has its due gets no turn, and
    its jobs are told so; one that had its turn gets another only where it is put back."""

    def __init__(self, session: Session, jobs: Mapping[str, JobHeap]) -> None:
        self._session = session
        self._jobs = jobs
        self._queues = QueueHeap(session, (session.queues[name] for name in jobs))

    def next(self) -> Job | None:
        while (queue := self._queues.pop()) is not None:
            reason = self._session.overused(queue)
            if reason is not None:
                self._jobs[queue.name].refuse(reason)
            elif (job := self._jobs[queue.name].pop()) is not None:
                return job
        return None

    def again(self, queue: Queue) -> None:
        self._queues.push(queue)


def admitted(session: Session, job: Job) -> bool:
    """Whether the job passed enqueue; where the policy has no enqueue, everyone has."""
    if job.phase in NOT_ADMITTED:
        if "enqueue" in session.policy.actions:
            return False
        job.phase = "Inqueue"
    return True


def admit_groups_without_pods(session: Session) -> None:
    """Some controllers make the pods of a group once it is admitted: where the policy has no enqueue, that is at once."""
    if "enqueue" not in session.policy.actions:
        for job in session.unadmitted_without_pods():
            admitted(session, job)


def takes_part(session: Session, job: Job) -> bool:
    """Admitted and valid; the reason why not is noted on the job."""
    if not admitted(session, job):
        return False
    reason = session.job_valid(job)
    if reason is not None:
        job.refuse(reason)
    return reason is None


def waiting_tasks(session: Session, job: Job, *, best_effort: bool | None) -> list[int]:
    """Pending, ungated tasks; `best_effort` True or False picks those that ask for nothing, or for something."""
    empty = session.snapshot.shape_best_effort
    return [
        t
        for t in job.tasks_in(TaskStatus.PENDING)
        if (best_effort is None or empty[session.shape[t]] == best_effort) and not session.task(t).gates
    ]
