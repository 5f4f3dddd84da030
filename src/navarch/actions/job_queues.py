"""What actions that place tasks share: which jobs and tasks take part, and the heaps of queues and jobs.

The heap of queues compares when an element is pushed or popped. The heap of jobs uses the keys at the time of the push, because
only the queue and the job that were popped can have changed since.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cmp_to_key
from typing import Any

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.job import Job
from navarch.engine.placement.hopeless_tasks import HopelessTasks
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.model.status import TaskStatus

NOT_ADMITTED = ("", "Pending")
PREDICATE_ERROR_CACHE = Argument(
    "predicateErrorCacheEnable", "bool", True, "filters answer from current figures, so no refusal is cached", has_effect=False
)
"""Volcano's switch for reusing, within an action, the refusal that a node gave to another task of the same role."""


Entry = tuple[Any, Job]
"""A job with its key."""
_MANY = 8
"""Where one in so many jobs is moved, sorting all of them is quicker than moving one after the other."""
_FEW = 8
"""Up to this many tasks are looked at one by one."""


class QueueHeap:
    def __init__(self, session: Session, queues: Iterable[Queue] = (), order: Callable[[Queue, Queue], int] | None = None) -> None:
        self._key = cmp_to_key(order or session.queue_order)
        self._heap = [(self._key(q), q) for q in sorted(queues, key=lambda q: q.name)]
        heapq.heapify(self._heap)

    def push(self, queue: Queue) -> None:
        heapq.heappush(self._heap, (self._key(queue), queue))

    def pop(self) -> Queue | None:
        return heapq.heappop(self._heap)[1] if self._heap else None

    def __iter__(self) -> Iterator[Queue]:
        return (queue for _, queue in self._heap)


class LateQueueHeap:
    """Queues in a heap whose order may be stale: queues are compared when a push or a pop moves them past each other, by what they
    hold then. The steps are those of Go's container/heap, so that a stale order gives the same queue as it does there."""

    def __init__(self, session: Session, queues: Iterable[Queue]) -> None:
        self._order = session.queue_order
        self._heap: list[Queue] = []
        for queue in sorted(queues, key=lambda q: q.name):
            self.push(queue)

    def push(self, queue: Queue) -> None:
        heap, at = self._heap, len(self._heap)
        heap.append(queue)
        while at and self._order(heap[at], heap[(at - 1) // 2]) < 0:
            parent = (at - 1) // 2
            heap[at], heap[parent] = heap[parent], heap[at]
            at = parent

    def pop(self) -> Queue | None:
        if not self._heap:
            return None
        heap, at = self._heap, 0
        heap[0], heap[-1] = heap[-1], heap[0]
        best = heap.pop()
        while (child := 2 * at + 1) < len(heap):
            if child + 1 < len(heap) and self._order(heap[child + 1], heap[child]) < 0:
                child += 1
            if self._order(heap[child], heap[at]) >= 0:
                break
            heap[at], heap[child] = heap[child], heap[at]
            at = child
        return best


class JobHeap:
    """Jobs of one queue, best first."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._heap: list[Entry] = []
        self.popped: Any = ()
        """The key of the job that was popped last."""

    def push(self, job: Job) -> None:
        self.push_with(self._session.job_order(job), job)

    def push_with(self, key: Any, job: Job) -> None:
        """Push a job whose key is known."""
        heapq.heappush(self._heap, (key, job))

    def pop(self) -> Job | None:
        if not self._heap:
            return None
        self.popped, job = heapq.heappop(self._heap)
        return job

    def pop_first(self, count: int) -> list[Entry]:
        """The first `count` jobs with their keys, in order."""
        if count * _MANY < len(self._heap):
            return [heapq.heappop(self._heap) for _ in range(count)]
        self._heap.sort()  # quick, because it is nearly sorted; and a sorted list is a heap
        first, self._heap = self._heap[:count], self._heap[count:]
        return first

    def push_all(self, entries: Sequence[Entry]) -> None:
        """Push jobs whose keys are known."""
        if len(entries) * _MANY < len(self._heap):
            for entry in entries:
                heapq.heappush(self._heap, entry)
        else:
            self._heap += entries
            self._heap.sort()

    def refuse(self, reason: Reason) -> None:
        """Remove all jobs and give them the reason."""
        while (job := self.pop()) is not None:
            job.refuse(reason)

    def best(self) -> Job | None:
        return self._heap[0][1] if self._heap else None

    def peek(self) -> tuple[Any, Job] | None:
        """The best job with its key."""
        return self._heap[0] if self._heap else None

    def __len__(self) -> int:
        return len(self._heap)


class Turns:
    """Queues take turns, best first, and in its turn each has its best job looked at. A queue that has its due gets no turn, and
    `refused` takes its jobs with the reason; one that had its turn gets another only where it is put back. Of queues that no plugin
    tells apart, the one whose best job has waited longest is best. Otherwise the same queue would win for ever where only one of
    several gangs fits at a time, and jobs of one queue would pass older ones of another."""

    def __init__(self, session: Session, jobs: Mapping[str, JobHeap], refused: Callable[[Job, Reason], None] = Job.refuse) -> None:
        self._session = session
        self._jobs = jobs
        order = self._by_longest_wait if session.semantics.longest_wait_orders_queues else None
        self._queues = QueueHeap(session, (session.queues[name] for name in jobs), order)
        self._refused = refused

    def _by_longest_wait(self, left: Queue, right: Queue) -> int:
        opinion = self._session.queue_opinion(left, right)
        if opinion:
            return opinion
        ages = [job.spec.created if (job := self._jobs[queue.name].best()) is not None else math.inf for queue in (left, right)]
        return (ages[0] > ages[1]) - (ages[0] < ages[1]) or self._session.queue_order(left, right)

    def next(self) -> Job | None:
        while (queue := self._queues.pop()) is not None:
            reason = self._session.overused(queue)
            if reason is not None:
                while (job := self._jobs[queue.name].pop()) is not None:
                    self._refused(job, reason)
            elif (best := self._jobs[queue.name].pop()) is not None:
                return best
        return None

    def is_last(self) -> bool:
        """Whether no queue but the one that has its turn has jobs."""
        return not any(len(self._jobs[queue.name]) for queue in self._queues)

    def put_back(self, queue: Queue) -> None:
        self._queues.push(queue)


def admitted(session: Session, job: Job) -> bool:
    """Whether the job passed enqueue. Without enqueue in the policy, the action that asks admits the job."""
    if job.phase in NOT_ADMITTED:
        if "enqueue" in session.policy.actions:
            return False
        job.phase = "Inqueue"
    return True


def admit_groups_without_pods(session: Session) -> None:
    """Some controllers create the pods of a group once it is admitted. Without enqueue in the policy, such groups are admitted at
    once."""
    if "enqueue" not in session.policy.actions:
        for job in session.unadmitted_without_pods():
            admitted(session, job)


def takes_part(session: Session, job: Job) -> bool:
    """Whether the job is admitted and valid; otherwise the job gets the reason."""
    if not admitted(session, job):
        return False
    reason = session.job_valid(job)
    if reason is not None:
        job.refuse(reason)
    return reason is None


def is_attainable(job: Job) -> bool:
    """Whether room could be made for all pending tasks of the job by evictions; not asked where such demand counts like any
    other."""
    session = job.session
    if session.semantics.impossible_demand_counts:
        return True
    return not session.shared(HopelessTasks).includes(job.tasks_in(TaskStatus.PENDING))


def waiting_tasks(session: Session, job: Job, *, best_effort: bool | None) -> list[int]:
    """Pending tasks without gates. `best_effort` True: only those without requests; False: only those with requests; None: both."""
    gated, empty, pending = session.snapshot.tasks.gated, session.snapshot.shape_best_effort, job.tasks_in(TaskStatus.PENDING)
    if len(pending) <= _FEW:
        return [row for row in pending if not gated[row] and (best_effort is None or empty[session.shape[row]] == best_effort)]
    rows = np.asarray(pending, dtype=np.intp)
    wanted = ~gated[rows]
    if best_effort is not None:
        shapes = session.shape[rows].tolist()
        fits = {shape: empty[shape] == best_effort for shape in set(shapes)}
        if not all(fits.values()):
            wanted &= np.array([fits[shape] for shape in shapes], dtype=bool)
    found: list[int] = rows[wanted].tolist()
    return found
