"""Time for everything hollow: what happens later, and how fast the cluster's hours pass.

`speed` shortens waits and nothing else: a job of an hour is over in a minute at 60, while time stamps stay those of the wall
clock, so that `kubectl get` shows true ages. Waits are the event loop's own, so a test that fakes the loop's time fakes these.
"""

from __future__ import annotations

import asyncio
import calendar
import logging
import re
import time
from collections.abc import Callable, Hashable
from typing import NamedTuple

log = logging.getLogger(__name__)

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """Seconds of a duration as Kubernetes writes it; a bare number is seconds.

    >>> parse_duration("1h30m"), parse_duration("250ms"), parse_duration("45")
    (5400.0, 0.25, 45.0)
    """
    text = text.strip()
    try:
        plain = float(text)
    except ValueError:
        pass
    else:
        if 0 <= plain < 1e9:
            return plain
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"found {text!r}, expected a duration such as 30s or 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def seconds_of(text: str) -> float:
    """Seconds since the epoch of a metav1.Time.

    >>> seconds_of("1970-01-01T00:01:00Z")
    60.0
    """
    return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")))


class _Timer(NamedTuple):
    handle: asyncio.TimerHandle
    call: Callable[[], None]
    real: bool
    """In seconds of the wall clock."""


class Timers:
    """Calls in the future, by key: a key has one timer at most, and setting it again replaces it."""

    def __init__(self, speed: float = 1.0) -> None:
        if not speed > 0:
            raise ValueError(f"speed: found {speed}, expected a number above 0")
        self.spent: Callable[[], float] = time.thread_time
        """The clock of what work costs: what this process spent, not how long others kept it from the processor. Where the loop's
        time is faked nothing is spent."""
        self._speed = speed
        self._pending: dict[Hashable, _Timer] = {}

    @property
    def speed(self) -> float:
        return self._speed

    def pass_at(self, speed: float) -> None:
        """From now on. What is left of waits that have begun passes at the new speed as well."""
        now, stretch, self._speed = asyncio.get_running_loop().time(), self._speed / speed, speed
        for key, timer in [each for each in self._pending.items() if not each[1].real]:
            self._set(key, max(0.0, timer.handle.when() - now) * stretch, timer.call)

    def after(self, key: Hashable, seconds: float, call: Callable[[], None]) -> None:
        """Call once, this many of the cluster's seconds from now."""
        self._set(key, max(0.0, seconds) / self._speed, call)

    def after_real(self, key: Hashable, seconds: float, call: Callable[[], None]) -> None:
        """The same in seconds of the wall clock, whatever the speed."""
        self._set(key, max(0.0, seconds), call, real=True)

    def cancel(self, key: Hashable) -> None:
        timer = self._pending.pop(key, None)
        if timer is not None:
            timer.handle.cancel()

    def has(self, key: Hashable) -> bool:
        return key in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def stop(self) -> None:
        for timer in self._pending.values():
            timer.handle.cancel()
        self._pending.clear()

    def _set(self, key: Hashable, seconds: float, call: Callable[[], None], *, real: bool = False) -> None:
        self.cancel(key)
        handle = asyncio.get_running_loop().call_later(seconds, self._fire, key, call)
        self._pending[key] = _Timer(handle, call, real)

    def _fire(self, key: Hashable, call: Callable[[], None]) -> None:
        del self._pending[key]
        try:
            call()
        except Exception:
            # One object that cannot be acted upon must not stop the others' timers.
            log.exception("what was due for %s failed", key)
