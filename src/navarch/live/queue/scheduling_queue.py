"""Jobs that failed wait: for an event that one of their refusals names, for a change of their own, or for back-off.

A job that nothing concerns is not decided again and again: cycles pass it over. Waits double from one second to ten, and for
large gangs the longest grows with the root of their size, since they are dear to try and seldom fit by luck. Jobs that are alike
sleep together (`kin`): a pod that ends wakes as many as may fit in its place, the clock a few of them at a time.

Nobody loses its place over it: whoever is tried has as many of the eldest of its family beside it, be it that its back-off ended or
that it has only just come. So where there is room that nothing told of, the eldest gets it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterable

from msgspec import Struct

from navarch.engine.reasons import Event
from navarch.live.queue.equivalence_classes import FEW, EquivalenceClass, signature
from navarch.model.cluster import Cluster
from navarch.model.spec import Requests

FIRST_WAIT = 1.0
LONGEST_WAIT = 10.0
REMEMBERED = 300.0
"""Seconds for which the attempts of a job that does not wait any more are remembered."""
TRIED = FEW
"""Of a family larger than this so many are tried at once when nothing but their back-off has ended, the next after `PAUSE`; and
so many when a pod came or went that they only look at. If all of them get a place there will be more (`Holding.more`)."""
PAUSE = 1.0


class UnschedulableJob(Struct):
    until: float
    attempts: int
    kin: EquivalenceClass | None
    """With whom it sleeps; None: it is awake."""
    family: tuple[Hashable, frozenset[Event]]
    """What it had in common with others when it failed last, and what wakes them."""


class SchedulingQueue:
    """Times are those of the caller's monotonic clock."""

    def __init__(self, first: float = FIRST_WAIT, longest: float = LONGEST_WAIT) -> None:
        self._first = first
        self._longest = longest
        self._jobs: dict[str, UnschedulableJob] = {}
        self._tidy = 0.0
        self._asleep: dict[str, None] = {}
        self._changed: dict[str, None] = {}
        """Jobs that fell asleep or awoke since somebody asked for `changes`."""
        self._told: object = None
        self._kin: dict[Hashable, EquivalenceClass] = {}
        self._timers: list[tuple[float, int, EquivalenceClass]] = []
        """(when, number, family); one that says another time than the family's `due` is out of date."""
        self._number = 0
        self._by_event: dict[Event, dict[Hashable, EquivalenceClass]] = {event: {} for event in Event}
        self._refused: set[Hashable] = set()
        """What those have in common of whom somebody failed since `more` was asked."""
        self._started: dict[tuple[Hashable, frozenset[Event]], int] = {}
        """Family -> how many that had waited got a place since then."""
        self._come: dict[str, None] = {}
        """Jobs that are to be tried and never failed, since the last cycle."""
        self._seen: dict[Hashable, dict[Hashable, EquivalenceClass]] = {}
        """What is seen of a family at a glance -> the families of which that is seen."""
        self._stirred: set[Hashable] = set()
        """Families whose eldest was woken since the last cycle because somebody asks for less than before."""

    def failed(
        self,
        job: str,
        wakes: Iterable[Event],
        size: int,
        now: float,
        *,
        alike: Hashable | None = None,
        asks: Requests = (),
        age: float = 0.0,
        seen: Hashable | None = None,
    ) -> None:
        """The job was tried and could not be placed. `alike`: what it has in common with its kin, who each ask for at least
        `asks` a pod; None: it has none. `seen`: what one sees of them before one of them was tried (`kin.glance`)."""
        before = self._jobs.get(job)
        attempts = before.attempts + 1 if before else 1
        longest = self._longest * math.sqrt(max(size, 1))
        until = now + min(self._first * 2 ** min(attempts - 1, 30), longest)
        self.awake(job)
        key = (job if alike is None else alike, frozenset(wakes))
        kin = self._family(key, asks, seen)
        kin.join(job, until, age)
        self._jobs[job] = UnschedulableJob(until, attempts, kin, key)
        self._refused.add(key[0])
        self._asleep[job] = self._changed[job] = None
        if len(kin) == 1 or until < kin.due:
            self._set_timer(kin, until)

    def _family(self, key: tuple[Hashable, frozenset[Event]], asks: Requests, seen: Hashable | None) -> EquivalenceClass:
        kin = self._kin.get(key)
        if kin is None:
            kin = self._kin[key] = EquivalenceClass(key, key[1], asks, seen)
            for event in kin.wakes:
                self._by_event[event][key] = kin
            if seen is not None:
                self._seen.setdefault(seen, {})[key] = kin
        return kin

    def _dissolve(self, kin: EquivalenceClass) -> None:
        del self._kin[kin.key]
        for event in kin.wakes:
            del self._by_event[event][kin.key]
        if kin.seen is not None:
            of = self._seen[kin.seen]
            del of[kin.key]
            if not of:
                del self._seen[kin.seen]

    def _set_timer(self, kin: EquivalenceClass, due: float) -> None:
        kin.due = due
        self._number += 1
        heapq.heappush(self._timers, (due, self._number, kin))

    def forget(self, job: str) -> None:
        """It was placed, or is gone: the next failure is its first."""
        self.awake(job)
        self._jobs.pop(job, None)
        self._come.pop(job, None)  # whoever does not lead has no cycle that would

    def awake(self, job: str) -> bool:
        """Let the next cycle try it. Whether it slept."""
        if job not in self._asleep:
            return False
        del self._asleep[job]
        self._changed[job] = None
        held = self._jobs[job]
        kin, held.kin = held.kin, None
        if kin is not None:
            kin.leave(job)
            if not kin.until:
                self._dissolve(kin)
        return True

    def changed(self, job: str) -> bool:
        """Its own pods or group changed, or it has come: let the next cycle try it. Whether it slept."""
        if self._asleep and job not in self._jobs:
            self._come[job] = None
        return self.awake(job)

    def placed(self, job: str) -> None:
        """It has got a place, or the promise of one. Its back-off is forgotten only when it is bound (`forget`): one whose binding
        fails each time must wait longer and longer."""
        self.awake(job)
        held = self._jobs.get(job)
        if held is not None:
            self._started[held.family] = self._started.get(held.family, 0) + 1

    def more(self) -> int:
        """Wake kin of those who got a place since this was asked last, twice as many, unless others of them failed meanwhile: as
        long as all succeed there may be more room than was known of. How many."""
        started, self._started = self._started, {}
        refused, self._refused = self._refused, set()
        count = 0
        for key, succeeded in started.items():
            kin = self._kin.get(key)
            if kin is not None and key[0] not in refused:
                for job in kin.oldest(2 * succeeded):
                    count += self.awake(job)
        return count

    def wake(self, event: Event, freed: Requests | None = None) -> int:
        """Something happened in the cluster; how many jobs that concerns. `freed`: it was the end of a pod that held this; nothing,
        if it only asked for something: then others may be due more than before, and one of each family finds out."""
        count = 0
        for kin in list(self._by_event[event].values()):
            if freed is not None and not freed:
                if kin.key in self._stirred:
                    continue
                self._stirred.add(kin.key)
            if event is Event.POD_CHANGED:
                most = TRIED
            else:
                most = len(kin) if freed is None else kin.may_start(freed)
            for job in list(kin.until) if most >= len(kin) else kin.oldest(most):
                count += self.awake(job)
        return count

    def wake_all(self) -> None:
        for job in list(self._asleep):
            self.awake(job)

    def expire(self, now: float) -> int:
        """Let those whose wait is over take part again, a few of a family; how many."""
        count = 0
        while self._timers and self._timers[0][0] <= now:
            due, _, kin = heapq.heappop(self._timers)
            if due != kin.due or not kin.until:
                continue
            pause = PAUSE if len(kin) > TRIED else 0.0  # asked before they leave, else the rest would be tried at once
            due_now = kin.expired(now, TRIED)
            for job in dict.fromkeys((*due_now, *kin.oldest(len(due_now)))):
                count += self.awake(job)
            if kin.until:
                self._set_timer(kin, max(kin.next_expiry(), now + pause))
        if now >= self._tidy:
            self._tidy = now + REMEMBERED
            self._jobs = {job: held for job, held in self._jobs.items() if held.kin or now - held.until < REMEMBERED}
        return count

    @property
    def next_expiry(self) -> float | None:
        while self._timers:
            due, _, kin = self._timers[0]
            if due == kin.due and kin.until:
                return due
            heapq.heappop(self._timers)
        return None

    def changes(self, to: Cluster) -> list[tuple[str, bool]]:
        """A cycle begins: (job, whether it sleeps) for those of whom it may not be what `to` was told last; everyone who sleeps,
        where it was somebody else who was told. Who has just come meets the eldest of those that look like it."""
        come, self._come = self._come, {}
        self._stirred = set()
        met: dict[Hashable, int] = {}
        for job in come if self._seen else ():
            seen = signature(to, job)
            if seen in self._seen:
                met[seen] = met.get(seen, 0) + 1
        for seen, count in met.items():
            for kin in list(self._seen[seen].values()):
                for job in kin.oldest(min(count, TRIED)):
                    self.awake(job)
        jobs, self._changed = self._changed if to is self._told else self._asleep, {}
        self._told = to
        return [(job, job in self._asleep) for job in jobs]

    def asleep(self) -> list[str]:
        return list(self._asleep)

    def __len__(self) -> int:
        return len(self._asleep)
