"""A queue within a session: its spec, its parent and children, and the sums of its own jobs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from navarch.model.resources import IntArray
from navarch.model.snapshot import JobColumns, Snapshot
from navarch.model.spec import QueueSpec

ROOT = "root"
MOST_LEVELS = 100
"""How deep a tree of queues may be. Deeper queues are refused: every placement is counted in each ancestor."""


class Queue:
    __slots__ = ("_allocated", "_column", "_jobs", "_request", "children", "name", "number", "parent", "spec")

    def __init__(self, number: int, spec: QueueSpec, jobs: JobColumns, column: int | None) -> None:
        """`column`: where `jobs` has the sums of the queue; None: no job names it."""
        self.number = number
        self.spec = spec
        self.name = spec.name
        self.parent: Queue | None = None
        self.children: list[Queue] = []
        self.begin_cycle(jobs, column)

    def begin_cycle(self, jobs: JobColumns, column: int | None) -> None:
        """Its sums are those of this snapshot."""
        self._jobs, self._column = jobs, column
        self._allocated: IntArray | None = None
        self._request: IntArray | None = None

    @property
    def allocated(self) -> IntArray:
        """Of its own jobs, when the cycle began; plugins keep their own running figures."""
        if self._allocated is None:
            self._allocated = self._sums(self._jobs.queue_allocated)
        return self._allocated

    @property
    def request(self) -> IntArray:
        """Allocated and pending, when the cycle began."""
        if self._request is None:
            self._request = self.allocated + self._sums(self._jobs.queue_pending)
        return self._request

    def _sums(self, columns: IntArray) -> IntArray:
        return np.zeros(len(columns), dtype=np.int64) if self._column is None else columns[:, self._column].copy()

    @property
    def reaches_top(self) -> bool:
        """Whether the way up ends, after at most `MOST_LEVELS` ancestors: it is neither a ring nor too long."""
        queue = self
        for _ in range(MOST_LEVELS):
            if queue.parent is None:
                return True
            queue = queue.parent
        return queue.parent is None

    @property
    def ancestors(self) -> list[Queue]:
        """From the parent up to the root, at most `MOST_LEVELS`. In a cycle of parents, each queue once and never the queue itself."""
        out: dict[str, Queue] = {}
        queue = self.parent
        while queue is not None and queue is not self and queue.name not in out and len(out) < MOST_LEVELS:
            out[queue.name] = queue
            queue = queue.parent
        return list(out.values())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            raise TypeError(f"a queue is compared with the text {other!r}; compare its name: queue.name == {other!r}")
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Queue({self.name})"


def queues_of(snapshot: Snapshot) -> dict[str, Queue]:
    """The queues of a snapshot by name, each with its parent and children."""
    columns = _columns(snapshot.jobs)
    specs = sorted(snapshot.queues.items())
    queues = {name: Queue(number, spec, snapshot.jobs, columns.get(name)) for number, (name, spec) in enumerate(specs)}
    for queue in queues.values():
        parent = queues.get(queue.spec.parent)
        if parent is not None and parent is not queue:
            queue.parent = parent
            parent.children.append(queue)
    return queues


def begin_cycle(queues: Mapping[str, Queue], jobs: JobColumns) -> None:
    """Give queues the sums of another snapshot. Their specs stay."""
    columns = _columns(jobs)
    for name, queue in queues.items():
        queue.begin_cycle(jobs, columns.get(name))


def _columns(jobs: JobColumns) -> dict[str, int]:
    return {name: number for number, name in enumerate(jobs.queue_names)}
