"""What will happen, by virtual time. At one moment jobs end first, then nodes change, then jobs arrive, then a cycle runs."""

from __future__ import annotations

import heapq
from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """In the order in which events of one moment take place."""

    JOB_ENDS = 0
    NODE_FAILS = 1
    NODE_RETURNS = 2
    PODS_RETURN = 3
    """Pods that were evicted are made again."""
    CYCLE = 4
    """Something that only time changes may have changed."""


class Event(NamedTuple):
    time: float
    kind: Kind
    order: int
    """Of two equal events the one that was planned first comes first."""
    subject: str
    version: int


class EventQueue:
    """Events in the order in which they happen."""

    def __init__(self) -> None:
        self._heap: list[Event] = []
        self._planned = 0

    def plan(self, time: float, kind: Kind, subject: str = "", version: int = 0) -> None:
        self._planned += 1
        heapq.heappush(self._heap, Event(time, kind, self._planned, subject, version))

    @property
    def next_time(self) -> float | None:
        return self._heap[0].time if self._heap else None

    def pop_at(self, time: float) -> Event | None:
        """The next event of this moment, if there is one."""
        return heapq.heappop(self._heap) if self._heap and self._heap[0].time == time else None

    def __len__(self) -> int:
        return len(self._heap)
