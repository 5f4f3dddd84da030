"""Jobs in a tree of queues: gives the next job to serve, or the next victim.

Jobs of a leaf queue are in job order. At every level of the tree, sibling queues are compared by their shares including their next
job (`QueueRank`). For victims both orders are reversed, and a queue is compared as if the jobs taken so far and its next job were
gone. Ranks are cached until the figures or the next job of the queue change, so a pop costs one comparison for each queue.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from navarch.actions.kai.sorted_jobs import SortedJobs
from navarch.engine.job import Job
from navarch.engine.points.gang_protocols import QueueRank
from navarch.engine.points.order_key import OrderKey
from navarch.engine.queue import Queue
from navarch.model.resources import FloatArray

if TYPE_CHECKING:
    from navarch.engine.session import Session

TasksOf = Callable[[Job], Sequence[int]]


class _Branch:
    """A queue of the tree with its jobs."""

    __slots__ = (
        "children", "jobs", "leaf", "leaving", "parent", "queue", "rank", "seen", "taken", "touched", "weights",
    )  # fmt: skip

    def __init__(self, queue: Queue | None, parent: _Branch | None) -> None:
        self.queue = queue
        self.parent = parent
        self.children: dict[str, _Branch] = {}
        self.jobs: list[tuple[OrderKey, int, Job]] = []
        self.leaving: FloatArray | None = None
        self.leaf: _Branch | None = None
        """The leaf to serve next below this queue, and the rank with it, as of `seen`."""
        self.rank: OrderKey | None = None
        self.seen: tuple[int, int] | None = None
        self.taken: list[FloatArray] = []
        """Weights of popped jobs that `leaving` does not include yet."""
        self.touched = 0
        self.weights: tuple[Any, FloatArray] | None = None


class QueueForest:
    """`tasks_of` gives the tasks that weigh a job's queue: the next chunk, or for victims all that the job holds."""

    def __init__(
        self,
        session: Session,
        jobs: Iterable[Job],
        tasks_of: TasksOf,
        *,
        victims: bool = False,
        depth: int | None = None,
        sorted_jobs: SortedJobs | None = None,
        accepts: Callable[[Job], bool] | None = None,
    ) -> None:
        """`sorted_jobs` holds jobs that are sorted already. Jobs that `accepts` refuses are skipped."""
        self.session = session
        self.victims = victims
        self.tasks_of = tasks_of
        ranking = session.implementing(QueueRank)
        self._ranking = ranking[0] if ranking else None
        self._root = _Branch(None, None)
        self._branches: dict[str, _Branch | None] = {}
        self._serial = 0
        self._accepts = accepts
        for name, entries in sorted_jobs.queues.items() if sorted_jobs is not None else ():
            known = self._branch_of(session.queues[name])
            if known is not None:
                known.jobs = entries.copy()
        found: dict[str, list[tuple[OrderKey, int, Job]]] = {}
        for job in jobs:
            if self._branch_of(job.queue) is not None:
                self._serial += 1
                found.setdefault(job.queue.name, []).append((session.job_order(job), self._serial, job))
        for name, entries in found.items():
            branch = self._branches[name]
            assert branch is not None
            if victims:
                entries.sort()
            elif depth is not None and depth < len(entries):
                entries = sorted(entries)[:depth]
            else:
                heapify(entries)
            branch.jobs = entries
        filled = [branch for branch in self._branches.values() if branch is not None and branch.jobs]
        self._only = filled[0] if victims and len(filled) == 1 else None
        """The one queue with victims: no queues are compared."""

    def push(self, job: Job) -> None:
        branch = self._branch_of(job.queue)
        if branch is not None:
            self._serial += 1
            entry = (self.session.job_order(job), self._serial, job)
            insort(branch.jobs, entry) if self.victims else heappush(branch.jobs, entry)
            if self._only is not None:
                assert branch is self._only, "what is left of a victim returns to its own queue"
                return
            self._touch(branch)

    def pop(self) -> Job | None:
        """The best job of the best queue, removed from it."""
        if self._only is not None:
            self._drop_refused(self._only)
            return self._only.jobs.pop()[2] if self._only.jobs else None
        leaf = self._best(self._root)
        if leaf is None:
            return None
        self._touch(leaf)
        job: Job = leaf.jobs.pop()[2] if self.victims else heappop(leaf.jobs)[2]
        if self.victims and self._ranking is not None:
            weight = leaf.weights[1] if leaf.weights is not None and leaf.weights[0] == (id(job), job.version) else None
            leaf.taken.append(self._ranking.weigh_held(self.tasks_of(job)) if weight is None else weight)
        return job

    def pop_from(self, queue: Queue) -> Job | None:
        """The first job of one queue, removed from it, whatever the order of queues. Not for victims."""
        leaf = self._branches.get(queue.name)
        return None if leaf is None or not leaf.jobs else heappop(leaf.jobs)[2]

    # the tree

    def _branch_of(self, queue: Queue) -> _Branch | None:
        """None where no job can be: the queue has children, or its parents do not lead to a root."""
        if queue.name not in self._branches:
            self._branches[queue.name] = None if queue.children or not queue.reaches_top else self._add_branch(queue)
        return self._branches[queue.name]

    def _add_branch(self, queue: Queue) -> _Branch | None:
        if queue.spec.parent and queue.parent is None:
            return None
        parent = queue.parent if self._ranking is None else self._ranking.above(queue)
        above = self._root if parent is None else self._add_branch(parent)
        if above is None:
            return None
        branch = above.children.get(queue.name)
        if branch is None:
            branch = above.children[queue.name] = _Branch(queue, above)
        return branch

    def _drop_refused(self, leaf: _Branch) -> None:
        while self._accepts is not None and leaf.jobs and not self._accepts(self._head(leaf)):
            leaf.jobs.pop() if self.victims else heappop(leaf.jobs)

    # comparing

    def _head(self, branch: _Branch) -> Job:
        entry = branch.jobs[-1 if self.victims else 0]
        return entry[2]

    def _touch(self, branch: _Branch | None) -> None:
        """Mark a queue and its ancestors after its jobs changed."""
        while branch is not None:
            branch.touched += 1
            branch = branch.parent

    def _best(self, branch: _Branch) -> _Branch | None:
        """The leaf to serve next below a queue. A queue whose subtree did not change keeps its answer."""
        if not branch.children:
            self._drop_refused(branch)
            return branch if branch.jobs else None
        version = self._ranking.rank_version if self._ranking is not None else None
        best: _Branch | None = None
        for child in branch.children.values():
            assert child.queue is not None
            seen = (child.touched, version(child.queue) if version is not None else 0)
            if child.seen != seen:
                child.leaf, child.rank, child.seen = self._best(child), None, seen
            if child.leaf is None:
                continue
            if best is None or (self._rank(best) < self._rank(child) if self.victims else self._rank(child) < self._rank(best)):
                best = child
        return None if best is None else best.leaf

    def _rank(self, branch: _Branch) -> OrderKey:
        """The rank of a queue among its siblings, given its next leaf. Computed only where siblings compete."""
        if branch.rank is None:
            queue, leaf = branch.queue, branch.leaf
            assert queue is not None and leaf is not None
            rank: OrderKey = 0
            if self._ranking is not None:
                weight = self._weight(leaf)
                if self.victims:
                    rank = self._ranking.queue_rank(queue, None, self._leaving(leaf, weight))
                else:
                    rank = self._ranking.queue_rank(queue, weight, None)
            branch.rank = (rank, queue.spec.created, queue.spec.uid or queue.name)
        return branch.rank

    def _leaving(self, leaf: _Branch, next_one: FloatArray) -> FloatArray:
        """The weight of all jobs taken from a leaf, and of its next job."""
        assert self._ranking is not None
        for weight in leaf.taken:
            leaf.leaving = weight if leaf.leaving is None else leaf.leaving + weight
        leaf.taken = []
        return next_one if leaf.leaving is None else leaf.leaving + next_one

    def _weight(self, leaf: _Branch) -> FloatArray:
        assert self._ranking is not None
        head = self._head(leaf)
        key = (id(head), head.version)
        if leaf.weights is None or leaf.weights[0] != key:
            weigh = self._ranking.weigh_held if self.victims else self._ranking.weigh_waiting
            leaf.weights = (key, weigh(self.tasks_of(head)))
        return leaf.weights[1]
