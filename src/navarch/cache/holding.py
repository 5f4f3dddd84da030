"""Jobs that failed wait: for an event that one of their refusals names, for a change of their own, or for back-off.

A job that nothing concerns is not decided again and again: cycles pass it over. Waits double from one second
to ten, and for large gangs the longest grows with the root of their size, since they are dear to try and seldom fit by luck.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

from msgspec import Struct

from navarch.engine.reasons import Event

FIRST_WAIT = 1.0
LONGEST_WAIT = 10.0
REMEMBERED = 300.0
"""Seconds for which the attempts of a job that does not wait any more are remembered."""


class Held(Struct):
    until: float
    wakes: frozenset[Event]
    attempts: int
    asleep: bool = True


class Holding:
    """Times are those of the caller's monotonic clock."""

    def __init__(self, first: float = FIRST_WAIT, longest: float = LONGEST_WAIT) -> None:
        self._first = first
        self._longest = longest
        self._jobs: dict[str, Held] = {}
        self._tidy = 0.0
        self._asleep: dict[str, None] = {}
        self._changed: dict[str, None] = {}
        """Jobs that fell asleep or awoke since somebody asked for `changes`."""
        self._told: object = None
        self._timers: list[tuple[float, str]] = []
        self._by_event: dict[Event, dict[str, None]] = {event: {} for event in Event}

    def failed(self, job: str, wakes: Iterable[Event], size: int, now: float) -> None:
        """The job was tried and could not be placed."""
        before = self._jobs.get(job)
        attempts = before.attempts + 1 if before else 1
        longest = self._longest * math.sqrt(max(size, 1))
        wait = min(self._first * 2 ** min(attempts - 1, 30), longest)
        self.awake(job)
        held = self._jobs[job] = Held(now + wait, frozenset(wakes), attempts)
        self._asleep[job] = self._changed[job] = None
        heapq.heappush(self._timers, (held.until, job))
        for event in held.wakes:
            self._by_event[event][job] = None

    def forget(self, job: str) -> None:
        """It was placed, or is gone: the next failure is its first."""
        self.awake(job)
        self._jobs.pop(job, None)

    def awake(self, job: str) -> bool:
        """Its own pods or group changed: try it again. Whether it slept."""
        if job not in self._asleep:
            return False
        del self._asleep[job]
        self._changed[job] = None
        held = self._jobs[job]
        held.asleep = False
        for event in held.wakes:
            self._by_event[event].pop(job, None)
        return True

    def wake(self, event: Event) -> int:
        """Something happened in the cluster; how many jobs that concerns."""
        concerned = list(self._by_event[event])
        for job in concerned:
            self.awake(job)
        return len(concerned)

    def wake_all(self) -> None:
        for job in list(self._asleep):
            self.awake(job)

    def expire(self, now: float) -> int:
        """Let those whose wait is over take part again; how many."""
        count = 0
        while self._timers and self._timers[0][0] <= now:
            until, job = heapq.heappop(self._timers)
            held = self._jobs.get(job)
            if held is not None and held.until == until and self.awake(job):
                count += 1
        if now >= self._tidy:
            self._tidy = now + REMEMBERED
            self._jobs = {job: held for job, held in self._jobs.items() if held.asleep or now - held.until < REMEMBERED}
        return count

    @property
    def next_expiry(self) -> float | None:
        while self._timers:
            until, job = self._timers[0]
            held = self._jobs.get(job)
            if held is not None and held.asleep and held.until == until:
                return until
            heapq.heappop(self._timers)
        return None

    def changes(self, to: object) -> list[tuple[str, bool]]:
        """(job, whether it sleeps) for those of whom it may not be what `to` was told last; everyone who sleeps, where it was
        somebody else who was told."""
        jobs, self._changed = self._changed if to is self._told else self._asleep, {}
        self._told = to
        return [(job, job in self._asleep) for job in jobs]

    def asleep(self) -> list[str]:
        return list(self._asleep)

    def __len__(self) -> int:
        return len(self._asleep)
