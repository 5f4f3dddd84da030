"""A queue in front of the write pool that keeps only a handful of writes inside it.

Two reasons. A write's time-out runs from when the pool gets it, so a backlog of fifty thousand must not lie in there. And
what is not yet sent can still be changed or dropped: the body is made at the last moment, from what is wanted then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from navarch.kube.write.pool import Done, Outcome, Write, WritePool

Make = Callable[[], tuple[Write, Done] | None]
"""The write as it is wanted now with who hears its outcome; None: no longer wanted."""


class Outbox:
    def __init__(self, pool: WritePool, room: int = 64, longest: int | None = None) -> None:
        self._pool = pool
        self._room = room
        self._longest = longest
        self._queue: deque[Make] = deque()
        self._inside = 0
        self._pumping = False
        self.paused = False
        self.dropped = 0

    def put(self, make: Make) -> bool:
        """False: the queue is full, the write is dropped (only where a longest queue was set)."""
        if self._longest is not None and len(self._queue) >= self._longest:
            self.dropped += 1
            return False
        self._queue.append(make)
        self._pump()
        return True

    def __len__(self) -> int:
        """Writes without an outcome yet."""
        return len(self._queue) + self._inside

    @property
    def inside(self) -> int:
        """Writes that the pool has: sent, or about to be."""
        return self._inside

    def pause(self) -> None:
        """Send nothing more; what is inside the pool is finished."""
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self._pump()

    def _pump(self) -> None:
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._queue and self._inside < self._room and not self.paused:
                made = self._queue.popleft()()
                if made is not None:
                    write, done = made
                    self._inside += 1
                    self._pool.submit(write, self._ended(done))
        finally:
            self._pumping = False

    def _ended(self, done: Done) -> Done:
        def ended(outcome: Outcome) -> None:
            self._inside -= 1
            try:
                done(outcome)
            finally:  # who fails on an outcome must not hold up those behind
                if self._queue:
                    self._pump()

        return ended
