"""Jobs in a tree of queues: the next to be served, or the next to give way.

Jobs of a leaf queue stand in job order; queues are compared by what their next job would make of them (`QueueRank`), at every
level of the tree. For victims both orders are turned round, and a queue is compared as if the jobs taken from it so far, and
its next, had gone. Ranks are kept until the queue's figures or its next job change, so a pop costs a comparison a queue.

Two ways to find the next queue. Strict mode compares all siblings afresh. Where `queues_are_sorted_late` is on, siblings stand in
a heap, and a queue is put into its right place only when it comes to the top and its jobs have changed since. A parent is then
compared by the child that was served last, although another child may be next by now.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from navarch.actions.kai.sorted_jobs import JobShelf
from navarch.engine.job import Job
from navarch.engine.points.gang_protocols import QueueRank
from navarch.engine.points.protocols import Key
from navarch.engine.queue import Queue
from navarch.model.resources import FloatArray

if TYPE_CHECKING:
    from navarch.engine.session import Session

TasksOf = Callable[[Job], Sequence[int]]


class _Stand:
    """A queue of the tree with the jobs that stand in it."""

    __slots__ = (
        "children", "heap", "jobs", "leaf", "leaving", "moved", "parent", "queue", "rank", "seen", "taken", "touched", "weights",
    )  # fmt: skip

    def __init__(self, queue: Queue | None, parent: _Stand | None) -> None:
        self.queue = queue
        self.parent = parent
        self.children: dict[str, _Stand] = {}
        self.jobs: list[tuple[Key, int, Job]] = []
        self.leaving: FloatArray | None = None
        self.leaf: _Stand | None = None
        """Whose turn it is below, and the queue's rank with it, as of `seen`."""
        self.rank: Key = None
        self.seen: tuple[int, int] | None = None
        self.taken: list[Sequence[int]] = []
        """Tasks of jobs that were popped, not weighed yet."""
        self.touched = 0
        self.heap: list[_Stand] = []
        """Children with jobs below them, where queues are sorted late."""
        self.moved = True
        """Where queues are sorted late: its jobs changed since it was put into its place."""
        self.weights: tuple[Any, FloatArray] | None = None


class JobForest:
    """`tasks_of` gives the tasks of a job that its queue is weighed with: the next chunk, or for victims what it holds."""

    def __init__(
        self,
        session: Session,
        jobs: Iterable[Job],
        tasks_of: TasksOf,
        *,
        victims: bool = False,
        depth: int | None = None,
        shelf: JobShelf | None = None,
        accepts: Callable[[Job], bool] | None = None,
    ) -> None:
        """`shelf` brings jobs that are sorted already. Jobs that `accepts` turns down are passed over when their turn comes."""
        self.session = session
        self.victims = victims
        self.tasks_of = tasks_of
        ranking = session.implementing(QueueRank)
        self._ranking = ranking[0] if ranking else None
        self._root = _Stand(None, None)
        self._stands: dict[str, _Stand | None] = {}
        self._serial = 0
        self._accepts = accepts
        for name, entries in shelf.queues.items() if shelf is not None else ():
            on_shelf = self._stand_of(session.queues[name])
            if on_shelf is not None:
                on_shelf.jobs = entries.copy()
        found: dict[str, list[tuple[Key, int, Job]]] = {}
        for job in jobs:
            if self._stand_of(job.queue) is not None:
                self._serial += 1
                found.setdefault(job.queue.name, []).append((session.job_order(job), self._serial, job))
        for name, entries in found.items():
            stand = self._stands[name]
            assert stand is not None
            if victims:
                entries.sort()
            elif depth is not None and depth < len(entries):
                entries = sorted(entries)[:depth]
            else:
                heapify(entries)
            stand.jobs = entries
        self._late = self._ranking is not None and session.semantics.queues_are_sorted_late
        if self._late:
            self._build(self._root)

    def push(self, job: Job) -> None:
        stand = self._stand_of(job.queue)
        if stand is not None:
            self._serial += 1
            entry = (self.session.job_order(job), self._serial, job)
            insort(stand.jobs, entry) if self.victims else heappush(stand.jobs, entry)
            self._touch(stand)
            if self._late:
                self._enter(stand)

    def pop(self) -> Job | None:
        """The best job of the best queue. Its place is taken from it as of now."""
        leaf = self._top(self._root) if self._late else self._best(self._root)
        if leaf is None:
            return None
        self._touch(leaf)
        job: Job = leaf.jobs.pop()[2] if self.victims else heappop(leaf.jobs)[2]
        if self.victims and self._ranking is not None:
            leaf.taken.append(self.tasks_of(job))
        if self._late:
            self._leave_if_empty(leaf)
        return job

    # the tree

    def _stand_of(self, queue: Queue) -> _Stand | None:
        """None where no job may stand: the queue has children, or its way up does not end at a top."""
        if queue.name not in self._stands:
            self._stands[queue.name] = None if queue.children or not queue.reaches_top else self._grow(queue)
        return self._stands[queue.name]

    def _grow(self, queue: Queue) -> _Stand | None:
        if queue.spec.parent and queue.parent is None:
            return None
        parent = queue.parent if self._ranking is None else self._ranking.above(queue)
        above = self._root if parent is None else self._grow(parent)
        if above is None:
            return None
        stand = above.children.get(queue.name)
        if stand is None:
            stand = above.children[queue.name] = _Stand(queue, above)
        return stand

    # siblings in heaps

    def _build(self, stand: _Stand) -> None:
        """Every heap below, from the leaves up, children in their right order."""
        if not stand.children:
            self._drop_refused(stand)
            return
        for child in stand.children.values():
            self._build(child)
        stand.heap = [child for child in stand.children.values() if child.heap or child.jobs]
        stand.heap.sort(key=cmp_to_key(lambda a, b: -1 if self._before(a, b) else 1))

    def _enter(self, stand: _Stand) -> None:
        """A queue has jobs again: it and its ancestors join the heaps that they are missing from."""
        while stand.parent is not None and stand not in stand.parent.heap:
            stand.parent.heap.append(stand)
            _sift_up(stand.parent.heap, len(stand.parent.heap) - 1, self._before)
            stand = stand.parent

    def _leave_if_empty(self, stand: _Stand) -> None:
        self._drop_refused(stand)
        while stand.parent is not None and not stand.jobs and not stand.heap:
            heap = stand.parent.heap
            heap[0], heap[-1] = heap[-1], heap[0]
            heap.pop()
            _sift_down(heap, 0, self._before)
            stand.moved = True
            stand = stand.parent

    def _top(self, stand: _Stand) -> _Stand | None:
        """The leaf whose turn it is below a queue."""
        while stand.heap:
            child = stand.heap[0]
            if not child.moved:
                stand = child
                continue
            _sift_down(stand.heap, 0, self._before)
            child.moved = False
        return stand if stand.jobs else None

    def _before(self, one: _Stand, other: _Stand) -> bool:
        for stand in (one, other):
            leaf = stand
            while leaf.heap:
                leaf = leaf.heap[0]
            assert stand.queue is not None and self._ranking is not None
            seen = (leaf.touched, self._ranking.rank_version(stand.queue))
            if stand.leaf is not leaf or stand.seen != seen:
                stand.leaf, stand.rank, stand.seen = leaf, None, seen
        return bool(self._rank(other) < self._rank(one) if self.victims else self._rank(one) < self._rank(other))

    def _drop_refused(self, leaf: _Stand) -> None:
        while self._accepts is not None and leaf.jobs and not self._accepts(self._head(leaf)):
            leaf.jobs.pop() if self.victims else heappop(leaf.jobs)

    # comparing

    def _head(self, stand: _Stand) -> Job:
        entry = stand.jobs[-1 if self.victims else 0]
        return entry[2]

    def _touch(self, stand: _Stand | None) -> None:
        """The jobs of a queue changed, and with them what is next in every queue above it."""
        while stand is not None:
            stand.touched += 1
            stand.moved = True
            stand = stand.parent

    def _best(self, stand: _Stand) -> _Stand | None:
        """The leaf whose turn it is below a queue. A queue in whose subtree nothing moved answers as before."""
        if not stand.children:
            self._drop_refused(stand)
            return stand if stand.jobs else None
        version = self._ranking.rank_version if self._ranking is not None else None
        best: _Stand | None = None
        for child in stand.children.values():
            assert child.queue is not None
            seen = (child.touched, version(child.queue) if version is not None else 0)
            if child.seen != seen:
                child.leaf, child.rank, child.seen = self._best(child), None, seen
            if child.leaf is None:
                continue
            if best is None or (self._rank(best) < self._rank(child) if self.victims else self._rank(child) < self._rank(best)):
                best = child
        return None if best is None else best.leaf

    def _rank(self, stand: _Stand) -> Key:
        """A queue's place among its siblings, given the leaf that would be served in it. Asked only where siblings compete."""
        if stand.rank is None:
            queue, leaf = stand.queue, stand.leaf
            assert queue is not None and leaf is not None
            rank: Key = 0
            if self._ranking is not None:
                weight = self._weight(leaf)
                if self.victims:
                    rank = self._ranking.queue_rank(queue, None, self._leaving(leaf, weight))
                else:
                    rank = self._ranking.queue_rank(queue, weight, None)
            stand.rank = (rank, queue.spec.created, queue.spec.uid or queue.name)
        return stand.rank

    def _leaving(self, leaf: _Stand, next_one: FloatArray) -> FloatArray:
        """The weight of all who were taken from a leaf, and of the next."""
        assert self._ranking is not None
        for tasks in leaf.taken:
            weight = self._ranking.weigh_held(tasks)
            leaf.leaving = weight if leaf.leaving is None else leaf.leaving + weight
        leaf.taken = []
        return next_one if leaf.leaving is None else leaf.leaving + next_one

    def _weight(self, leaf: _Stand) -> FloatArray:
        assert self._ranking is not None
        head = self._head(leaf)
        key = (id(head), head.version)
        if leaf.weights is None or leaf.weights[0] != key:
            weigh = self._ranking.weigh_held if self.victims else self._ranking.weigh_waiting
            leaf.weights = (key, weigh(self.tasks_of(head)))
        return leaf.weights[1]


def _sift_down(heap: list[_Stand], place: int, before: Callable[[_Stand, _Stand], bool]) -> None:
    """Move an entry down while a child comes before it. `heapq` cannot serve: it compares in another order, which shows where
    the order of entries that were not moved has changed."""
    while True:
        child = 2 * place + 1
        if child >= len(heap):
            return
        if child + 1 < len(heap) and before(heap[child + 1], heap[child]):
            child += 1
        if not before(heap[child], heap[place]):
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


def _sift_up(heap: list[_Stand], place: int, before: Callable[[_Stand, _Stand], bool]) -> None:
    while place:
        above = (place - 1) // 2
        if not before(heap[place], heap[above]):
            return
        heap[place], heap[above] = heap[above], heap[place]
        place = above
