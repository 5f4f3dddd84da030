"""A queue within a session: its spec, its parent and children, and the sums of its own jobs."""

from __future__ import annotations

import numpy as np

from navarch.model.resources import IntArray
from navarch.model.spec import QueueSpec

ROOT = "root"
MOST_LEVELS = 100
"""How deep a tree of queues may be. Deeper queues are refused: every placement is counted in each ancestor."""


class Queue:
    __slots__ = ("allocated", "children", "name", "number", "parent", "request", "spec")

    def __init__(
        self, number: int, spec: QueueSpec, resources: int, allocated: IntArray | None = None, request: IntArray | None = None
    ) -> None:
        self.number = number
        self.spec = spec
        self.name = spec.name
        self.parent: Queue | None = None
        self.children: list[Queue] = []
        self.allocated: IntArray = np.zeros(resources, dtype=np.int64) if allocated is None else allocated
        """Of its own jobs, when the session opened; plugins keep their own running figures."""
        self.request: IntArray = np.zeros(resources, dtype=np.int64) if request is None else request
        """Allocated and pending, when the session opened."""

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
