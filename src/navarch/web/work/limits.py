"""How much work viewers may ask for: how many wait at once, how many a minute, how many CPU seconds a minute."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from navarch.web.errors import RequestError

MINUTE: Final = 60.0
MOST_USERS: Final = 1000


@dataclass(frozen=True)
class WorkLimits:
    waiting: int = 4
    """Tasks that run or wait at once, of all viewers."""
    a_minute: int = 12
    """Tasks of one viewer."""
    cpu_seconds: int = 60
    """CPU seconds of one task."""
    cpu_a_minute: float = 60.0
    """CPU seconds of all tasks in a minute."""
    memory: int = 4 << 30
    trials: int = 500
    seconds: float = 20.0
    """Seconds of search of one explanation."""


class WorkLedger:
    """Refuses what exceeds the limits. `clock` counts seconds."""

    def __init__(self, limits: WorkLimits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._clock = clock
        self._waiting = 0
        self._asked: OrderedDict[str, deque[float]] = OrderedDict()
        self._spent: deque[tuple[float, float]] = deque()

    def begin(self, user: str) -> None:
        """RequestError 429: too much was asked for."""
        now, limits = self._clock(), self.limits
        while self._spent and self._spent[0][0] <= now - MINUTE:
            self._spent.popleft()
        asked = self._asked.setdefault(user, deque())
        self._asked.move_to_end(user)
        while len(self._asked) > MOST_USERS:
            self._asked.popitem(last=False)
        while asked and asked[0] <= now - MINUTE:
            asked.popleft()
        if self._waiting >= limits.waiting:
            raise _refused(f"{self._waiting} tasks run or wait already", 5.0)
        if len(asked) >= limits.a_minute:
            raise _refused(f"at most {limits.a_minute} tasks a minute", asked[0] + MINUTE - now)
        if sum(spent for _, spent in self._spent) >= limits.cpu_a_minute:
            raise _refused(f"tasks took {limits.cpu_a_minute:g} CPU seconds in the last minute", self._spent[0][0] + MINUTE - now)
        asked.append(now)
        self._waiting += 1

    def end(self, cpu_seconds: float) -> None:
        self._waiting -= 1
        self._spent.append((self._clock(), cpu_seconds))


class CpuBudget:
    """The part of a core that repeated work may take. What it did not take is kept, up to `burst` CPU seconds: the first runs follow
    each other quickly."""

    def __init__(self, part: float, burst: float, least_pause: float) -> None:
        self._part, self._burst, self._least = part, burst, least_pause
        self._kept, self._at = burst, 0.0

    def pause(self, now: float, cpu_seconds: float) -> float:
        """Seconds to wait after a run that took so much: until as much again is there."""
        self._kept = min(self._burst, self._kept + self._part * (now - self._at)) - cpu_seconds
        self._at = now
        lacking = min(cpu_seconds, self._burst) - self._kept
        return max(self._least, lacking / self._part)


def _refused(message: str, after: float) -> RequestError:
    return RequestError(429, "TooManyRequests", message, retry_after=after)
