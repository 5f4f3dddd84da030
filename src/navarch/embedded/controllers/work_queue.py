"""Work by key on the event loop: what has to be looked at again, each key once, a little at a time.

A change only names what it concerns; the work is done when the loop comes round and sees the latest state, so a thousand changes
of one object cost one look. Work that fails is logged and tried again, later each time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Generic, TypeVar

from navarch.embedded.api.errors import ApiError
from navarch.embedded.timers import Timers

log = logging.getLogger(__name__)
K = TypeVar("K")
TURN_SECONDS = 0.005
"""How long one turn may take; requests are served between turns."""
RESTED = 0.005
REST = 20.0
"""A key whose work takes long rests this many times as long before it is worked on again: no more than a twentieth of the process
goes into any one object, however often it changes."""
FIRST_RETRY, LONGEST_RETRY = 0.05, 30.0


class WorkQueue(Generic[K]):
    """Calls `work(key)` for every key that was added, in order of adding."""

    def __init__(self, name: str, work: Callable[[K], None], timers: Timers) -> None:
        self.name = name
        self._work = work
        self._timers = timers
        self._waiting: dict[K, None] = {}
        self._failures: dict[K, int] = {}
        self._resting: dict[K, float] = {}
        """Keys with long work -> when they may be worked on again."""
        self._scheduled = False
        self._stopped = False

    def add(self, key: K) -> None:
        if self._resting and key in self._resting:
            wait = self._resting[key] - asyncio.get_running_loop().time()
            if wait > 0:
                if not self._timers.has((self.name, "rest", key)):
                    self._timers.after_real((self.name, "rest", key), wait, lambda: self.add(key))
                return
            del self._resting[key]
        self._waiting[key] = None
        if not self._scheduled and not self._stopped:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def add_later(self, key: K, seconds: float) -> None:
        """After some of the cluster's seconds; a later call replaces an earlier one."""
        self._timers.after((self.name, key), seconds, lambda: self.add(key))

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    def stop(self) -> None:
        self._stopped = True
        self._waiting.clear()

    def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        started = perf_counter()  # the loop's own clock may stand still for the length of a turn
        while self._waiting:
            key = next(iter(self._waiting))
            del self._waiting[key]
            begun = self._timers.spent()
            self._try(key)
            took, elapsed = self._timers.spent() - begun, perf_counter() - started
            if took > RESTED:
                self._resting[key] = loop.time() + elapsed + REST * took
            if elapsed >= TURN_SECONDS:
                break
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            loop.call_soon(self._turn)

    def _try(self, key: K) -> None:
        try:
            self._work(key)
        except ApiError as error:
            # A quota, a namespace under deletion, a conflicting change: log it and try again.
            log.info("%s: %s: %s", self.name, key, error)
            self._retry(key)
        except Exception:
            # One object that a controller fails on must not stop the queue of the others. It is tried again, less and less often.
            log.exception("%s could not work on %s", self.name, key)
            self._retry(key)
        else:
            self._failures.pop(key, None)

    def _retry(self, key: K) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = min(LONGEST_RETRY, FIRST_RETRY * 2.0 ** min(failures - 1, 16))
        self._timers.after_real((self.name, "retry", key), wait, lambda: self.add(key))
