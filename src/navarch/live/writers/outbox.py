"""A queue in front of the write pool that keeps only a few writes inside it.

There are two reasons. The time-out of a write starts when the pool gets it, so a backlog of fifty thousand must not wait inside. And a
write that is not sent yet can still be changed or dropped: its body is built at the last moment, from the state at that time.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from navarch.kube.write.pool import Done, Outcome, Write, WritePool

log = logging.getLogger(__name__)

Count = Callable[[str, str], None]
"""Counts a write for metrics: what was written, and how that ended."""
Make = Callable[[], tuple[Write, Done] | None]
"""Builds the write and the callback for its outcome; None: it is no longer wanted."""


def uncounted(what: str, result: str) -> None:
    """The default: no metrics."""


class Outbox:
    def __init__(self, pool: WritePool, room: int = 64, longest: int | None = None) -> None:
        self._pool = pool
        self.room = room
        """How many writes may be inside the pool at a time."""
        self._longest = longest
        self._queue: deque[Make] = deque()
        self._inside = 0
        self._pumping = False
        self.paused = False
        self.dropped = 0

    def put(self, make: Make) -> bool:
        """Returns False if the queue is full and the write is dropped (only if a longest queue was set)."""
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
        """Writes inside the pool: sent, or about to be."""
        return self._inside

    def pause(self) -> None:
        """Send nothing more. Writes inside the pool are finished."""
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self._pump()

    def _pump(self) -> None:
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._queue and self._inside < self.room and not self.paused:
                made = self._made(self._queue.popleft())
                if made is not None:
                    write, done = made
                    self._inside += 1
                    self._pool.submit(write, self._ended(done))
        finally:
            self._pumping = False

    def _made(self, make: Make) -> tuple[Write, Done] | None:
        try:
            return make()
        except Exception:
            # A write that cannot be built is dropped, and those behind it are sent.
            log.exception("a write could not be built")
            return None

    def _ended(self, done: Done) -> Done:
        def ended(outcome: Outcome) -> None:
            self._inside -= 1
            try:
                done(outcome)
            finally:  # an error in a callback must not block the writes behind
                if self._queue:
                    self._pump()

        return ended
