"""Which waiting jobs a cycle of a forecast tries.

A job is a candidate if the nodes have idle room for its minimum: counted for each kind of pod alone, over all nodes, by resources. A
job without that room cannot start, unless others are evicted. Of each queue the first candidates are tried, a few or as many as jobs
have ended for each queue, in the policy's order at the beginning. A candidate that was refused is tried again when its pods have more
room or when a job of its queue has ended. Until then those behind it have their turn. All others are held back, as the live scheduler
holds jobs that wait. The first job of a queue takes part in every cycle: policies that keep an order, or reserve room for the first,
decide by it about the others.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Sequence

import numpy as np

from navarch.model.cluster import Cluster
from navarch.model.resources import IntArray
from navarch.model.spec import TaskSpec

OF_A_QUEUE = 4
"""Candidates of a queue that one cycle tries at least. After many ends it is as many as ended for each queue."""
Counts = tuple[tuple[int, int], ...]
"""Row of a shape -> how many such pods."""


class _Waiting:
    """A job that waits."""

    __slots__ = ("counts", "needed", "queue")

    def __init__(self, queue: str, counts: Counts, needed: int) -> None:
        self.queue, self.counts, self.needed = queue, counts, needed


class IdleRoom:
    def __init__(self, cluster: Cluster, hold: Callable[[str, bool], None], wanted: Collection[str]) -> None:
        """`wanted` jobs are tried whenever they have room."""
        self._cluster, self._hold, self._wanted = cluster, hold, wanted
        self._jobs: dict[str, _Waiting] = {}
        self._in_order: dict[str, list[tuple[int, str]]] = {}
        """Queue -> place and key of its waiting jobs."""
        self._place: dict[str, int] = {}
        self._ended: Counter[str] = Counter()
        """Queue -> jobs of it that have ended."""
        self._refused: dict[str, tuple[int, int]] = {}
        """Jobs that were refused: the room that their pods had then, and how many jobs of their queue had ended."""
        self._tried: dict[str, tuple[int, int]] = {}
        """Jobs that the next cycle tries, with what `_refused` will say of them."""
        self._first: list[str] = []
        """The first job of each queue."""

    def copy(self, hold: Callable[[str, bool], None]) -> IdleRoom:
        """The same for another course of events."""
        found = IdleRoom(self._cluster, hold, self._wanted)
        found._jobs, found._place = dict(self._jobs), dict(self._place)
        found._in_order = {queue: list(jobs) for queue, jobs in self._in_order.items()}
        return found

    def add(self, key: str, queue: str, pending: Sequence[TaskSpec], needed: int) -> None:
        """The job waits from now on, behind those that were added before it for the first time."""
        tasks = self._cluster.tasks
        shapes = Counter(int(tasks.shape[tasks.rows.of[task.uid]]) for task in pending)
        self._jobs[key] = _Waiting(queue, tuple(sorted(shapes.items())), needed)
        place = self._place.setdefault(key, len(self._place))
        insort(self._in_order.setdefault(queue, []), (place, key))
        self._hold(key, True)

    def remove(self, key: str) -> None:
        """The job does not wait any more."""
        job = self._jobs.pop(key, None)
        if job is not None:
            self._in_order[job.queue].remove((self._place[key], key))
            self._tried.pop(key, None)
            self._hold(key, False)

    def ends(self, queue: str) -> None:
        """A job of the queue has ended."""
        self._ended[queue] += 1

    def choose(self, ends: int = 0) -> bool:
        """Choose what the next cycle tries, after so many jobs have ended. False: nothing."""
        for key in (*self._tried, *self._first):
            self._hold(key, True)
        self._refused.update(self._tried)  # what is still here was refused
        self._tried = {}
        self._first = [jobs[0][1] for jobs in self._in_order.values() if jobs]
        slots: dict[int, int] = {}
        most = max(OF_A_QUEUE, ends // max(1, len(self._first)))
        for queue, jobs in self._in_order.items():
            chosen, ended = 0, self._ended[queue]
            for _, key in jobs:
                if self._try(key, ended, slots):
                    chosen += 1
                    if chosen >= most:
                        break
        for key in self._wanted:
            if key in self._jobs and key not in self._tried:
                self._try(key, self._ended[self._jobs[key].queue], slots)
        for key in self._first if self._tried else ():
            self._hold(key, False)
        return bool(self._tried)

    def _try(self, key: str, ended: int, slots: dict[int, int]) -> bool:
        """Let the next cycle try the job, if it has room and something changed for it."""
        job, before = self._jobs[key], self._refused.get(key)
        room = self._room(job.counts, slots)
        if room < job.needed or (before is not None and before[0] >= room and before[1] >= ended):
            return False
        self._tried[key] = room, ended
        self._hold(key, False)
        return True

    def _room(self, counts: Counts, slots: dict[int, int]) -> int:
        room = 0
        for shape, _ in counts:
            if shape not in slots:
                slots[shape] = self._slots(shape)
            room += slots[shape]
        return room

    def _slots(self, shape: int) -> int:
        """For how many pods of the shape the nodes have idle room."""
        nodes, size = self._cluster.nodes, len(self._cluster.space)
        request = self._cluster.shapes.request[:size, shape]
        found: IntArray | None = None
        for dim in np.flatnonzero(request).tolist():
            each = (nodes.allocatable[dim] - nodes.used[dim]) // int(request[dim])
            found = each if found is None else np.minimum(found, each)
        return 1 << 40 if found is None else int(found.clip(0).sum())
