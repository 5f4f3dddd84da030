"""How long jobs run, learned from those that came before: draws from the run times of a class, given what a job has run already.

Jobs that still run count too: each says that a run lasts longer than it has lasted until now (the product-limit estimator of Kaplan
and Meier). Without them the history of a busy cluster would hold too many short jobs. Beyond the longest run that is known, the chance
to last twice as long is one half.

Jobs of a class that are submitted together, such as the tasks of a sweep, mostly run equally long, and unlike those before them. So in
most draws a batch has one run time: that of a member that has finished, else that of a past batch, longer than its oldest member. Each
past batch counts once, however many jobs it had. How often the members of past batches were alike says how often this one's are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from navarch.job_history import JobRun

FEWEST = 10
"""Finished runs that a class needs to be a basis."""
TOGETHER = 60.0
"""Jobs of a class of which each comes within so many seconds of the one before are a batch."""
ALIKE = 2.0
"""Two runs are alike if the longer one lasts at most so many times as long as the other."""
LAST = 1000
"""Runs of a class that count, and batches: the newest ones."""
_TRIES = 100
"""Draws until one is longer than what has been seen."""
Floats = NDArray[np.float64]


class Survival:
    """The share of runs that last longer than a time."""

    def __init__(self, finished: Iterable[float], unfinished: Iterable[float] = ()) -> None:
        """`unfinished`: how long runs have lasted that have not ended."""
        ends = np.sort(np.fromiter(finished, dtype=np.float64))
        ages = np.sort(np.fromiter(unfinished, dtype=np.float64))
        self.times, deaths = np.unique(ends, return_counts=True)
        """Lengths of finished runs, ascending."""
        left = np.searchsorted(ends, self.times)
        at_risk = len(ends) - left + len(ages) - np.searchsorted(ages, self.times)
        self.beyond: Floats = np.cumprod(1.0 - deaths / at_risk, dtype=np.float64)
        """The share that lasts longer than each of `times`."""
        self.longest = max(ends[-1] if len(ends) else 0.0, ages[-1] if len(ages) else 0.0)

    def remaining(self, age: float, chance: float) -> float:
        """How long a run of this age still lasts, exceeded with this chance.

        >>> Survival([10.0, 20.0, 30.0, 40.0]).remaining(15.0, 0.5)
        15.0
        >>> Survival([10.0]).remaining(30.0, 0.25)
        90.0
        """
        passed = int(np.searchsorted(self.times, age, side="right"))
        now = float(self.beyond[passed - 1]) if passed else 1.0
        wanted = chance * now
        place = max(int(np.searchsorted(-self.beyond, -wanted)), passed)  # the first time beyond which no more than `wanted` is left
        if place < len(self.times):
            return float(self.times[place]) - age
        at_end = float(self.beyond[-1]) if len(self.beyond) else 1.0
        over = min(wanted / at_end, 1.0) if at_end > 0.0 else chance
        return float(max(self.longest, age, 1.0)) / over - age


class RunTimes:
    """Run times by class, as known at a moment, in order of submission."""

    def __init__(self, runs: Iterable[JobRun], now: float) -> None:
        self.finished = 0
        """Runs that are known from start to end."""
        self._runs: dict[Hashable, list[_Run]] = {}
        self._known: dict[Hashable, KnownRuns] = {}
        self._finished: Counter[Hashable] = Counter()
        """Class -> runs of it that are known from start to end."""
        self._batches: dict[Hashable, Batches] = {}
        for run in sorted(runs, key=lambda run: (run.submitted, run.uid)):
            classes = run.classes
            for each in classes:
                batches = self._batches.get(each)
                if batches is None:
                    batches = self._batches[each] = Batches()
                batches.come(run.submitted)
            if run.started is None or run.started > now:
                continue
            ended = run.finished is not None and run.finished <= now
            self.finished += ended
            length = max((run.finished if run.finished is not None and ended else now) - run.started, 0.0)
            for each in classes:
                self._runs.setdefault(each, []).append((length, ended))
                self._finished[each] += ended
                self._batches[each].run(length, ended)

    def class_of(self, run: JobRun) -> Hashable | None:
        """The most alike class with enough finished runs; None: there is none."""
        return next((each for each in run.classes if self._finished[each] >= FEWEST), None)

    def batch_of(self, kind: Hashable, run: JobRun) -> Batch | None:
        """The batch that the job came with; None: it came alone."""
        batches = self._batches.get(kind)
        return None if batches is None else batches.at(run.submitted)

    def batches(self, kind: Hashable) -> Batches:
        return self._batches[kind]

    def known(self, kind: Hashable) -> KnownRuns:
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = KnownRuns(self._runs[kind][-LAST:])
        return found


class Batch:
    """Jobs of a class that came together."""

    __slots__ = ("finished", "first", "last", "oldest", "size")

    def __init__(self, submitted: float) -> None:
        self.first = self.last = submitted
        self.size = 0
        self.finished: list[float] = []
        """How long those ran that have ended."""
        self.oldest = 0.0
        """How long the oldest one has run that has not."""


class Batches:
    """The batches of one class, in order of submission."""

    def __init__(self) -> None:
        self._all: list[Batch] = []
        self._pairs = self._alike = 0

    def come(self, submitted: float) -> None:
        if not self._all or submitted - self._all[-1].last > TOGETHER:
            self._all.append(Batch(submitted))
        self._all[-1].last = submitted
        self._all[-1].size += 1

    def run(self, length: float, ended: bool) -> None:
        """The job that came last has run so long."""
        batch = self._all[-1]
        if not ended:
            batch.oldest = max(batch.oldest, length)
            return
        if batch.finished:
            low, high = sorted((max(length, 1.0), max(batch.finished[-1], 1.0)))
            self._pairs += 1
            self._alike += high <= ALIKE * low
        batch.finished.append(length)

    def at(self, submitted: float) -> Batch | None:
        """The batch of more than one job that this one came with."""
        place = bisect_right(self._all, submitted, key=lambda batch: batch.first)
        batch = self._all[place - 1] if place else None
        return batch if batch is not None and batch.size > 1 and submitted <= batch.last else None

    def draw(self, batch: Batch, random: np.random.Generator) -> float | None:
        """The run time of one of the last batches that started, longer than the oldest member of this one has run; None: there is
        none."""
        past = [each for each in self._all[-LAST:] if each is not batch and (each.finished or each.oldest > 0.0)]
        for _ in range(_TRIES if past else 0):
            each = past[int(random.integers(len(past)))]
            if each.finished:
                length = each.finished[int(random.integers(len(each.finished)))]
            else:  # it goes on: the chance to last twice as long is one half
                length = each.oldest / (1.0 - float(random.random()))
            if length > batch.oldest:
                return length
        return None

    @property
    def alike(self) -> float:
        """Of pairs that ran one after the other in a batch, the share that ran equally long; one half before any is known."""
        return (self._alike + 1) / (self._pairs + 2)


_Run = tuple[float, bool]
"""How long it ran, and whether it has ended."""


class KnownRuns:
    """Runs of one class, and the survival that follows from them."""

    def __init__(self, runs: Sequence[_Run]) -> None:
        self.lengths: Floats = np.array([length for length, _ in runs])
        self.ended: NDArray[np.bool_] = np.array([ended for _, ended in runs])
        self.survival = Survival(self.lengths[self.ended], self.lengths[~self.ended])


class Draw:
    """One draw of the run times of many jobs.

    Jobs that come together run alike: the tasks of a sweep, the attempts at one experiment. So the jobs of a class, asked for one
    after the other, get the lengths of past runs that came one after the other, from a random place in the history on. The place is
    the same for all classes. Drawing each job for itself would make the sum over many jobs look far more certain than it is.
    """

    def __init__(self, times: RunTimes, random: np.random.Generator) -> None:
        self._times = times
        self._random = random
        self._place = float(random.random())
        """From 0, the oldest run, to 1, the newest."""
        self._lengths: dict[Hashable, Floats] = {}
        self._taken: Counter[Hashable] = Counter()
        self._of_batch: dict[int, float | None] = {}

    def remaining(self, kind: Hashable, age: float = 0.0, batch: Batch | None = None) -> float:
        """How long the next job of the class still runs that has run so long. `batch`: it came with others."""
        common = None if batch is None else self._common(kind, batch)
        return common - age if common is not None and common > age else self._next(kind, age)

    def _common(self, kind: Hashable, batch: Batch) -> float | None:
        """The run time of all jobs of the batch; None: they differ in this draw."""
        if id(batch) not in self._of_batch:
            alike = float(self._random.random()) < self._times.batches(kind).alike
            found = None
            if alike and batch.finished:
                found = batch.finished[int(self._random.integers(len(batch.finished)))]
            elif alike:
                found = self._times.batches(kind).draw(batch, self._random) or batch.oldest + self._next(kind, batch.oldest)
            self._of_batch[id(batch)] = found
        return self._of_batch[id(batch)]

    def _next(self, kind: Hashable, age: float) -> float:
        known = self._times.known(kind)
        lengths = self._lengths.get(kind)
        if lengths is None:
            lengths = self._lengths[kind] = self._whole(known)
        longer = lengths[lengths > age]
        if not len(longer):
            return known.survival.remaining(age, 1.0 - float(self._random.random()))
        place = int(self._place * len(longer)) + self._taken[kind]
        self._taken[kind] += 1
        return float(longer[place % len(longer)]) - age

    def _whole(self, known: KnownRuns) -> Floats:
        """Lengths of all runs: of those that go on, as long as they may last."""
        lengths = known.lengths.copy()
        for row in np.flatnonzero(~known.ended).tolist():
            lengths[row] += known.survival.remaining(float(lengths[row]), 1.0 - float(self._random.random()))
        return lengths
