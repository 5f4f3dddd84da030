"""How long jobs run, learned from those that came before: draws from the run times of a class, given what a job has run already.

Jobs that still run count too: each says that a run lasts longer than it has lasted until now (the product-limit estimator of Kaplan
and Meier). Without them the history of a busy cluster would hold too many short jobs. Beyond the longest run that is known, the chance
to last twice as long is one half.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from navarch.job_history import JobRun

FEWEST = 10
"""Finished runs that a class needs to be a basis."""
LAST = 1000
"""Runs of a class that count, the newest ones."""
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
    """Run times by class, as known at a moment."""

    def __init__(self, runs: Iterable[JobRun], now: float) -> None:
        self.finished = 0
        """Runs that are known from start to end."""
        self._ended: dict[Hashable, list[float]] = {}
        self._going: dict[Hashable, list[float]] = {}
        self._curves: dict[Hashable, Survival] = {}
        for run in sorted(runs, key=lambda run: (run.finished or now, run.uid)):
            if run.started is None or run.started > now:
                continue
            if run.finished is not None and run.finished <= now:
                self.finished += 1
                table, length = self._ended, run.finished - run.started
            else:
                table, length = self._going, now - run.started
            for each in run.classes:
                table.setdefault(each, []).append(max(length, 0.0))

    def class_of(self, run: JobRun) -> Hashable | None:
        """The most alike class with enough finished runs; None: there is none."""
        return next((each for each in run.classes if len(self._ended.get(each, ())) >= FEWEST), None)

    def curve(self, kind: Hashable) -> Survival:
        found = self._curves.get(kind)
        if found is None:
            found = self._curves[kind] = Survival(self._ended[kind][-LAST:], self._going.get(kind, ())[-LAST:])
        return found
