"""The minimal search: finds a smallest set of victims by resource sums, exact trials, and removal of victims that are not needed.

The set that resource sums choose (`victim_columns`) is tried. If a rule refuses it, the search offers more victims. When a set
holds, victims are removed from it, starting with those that would be evicted last. First the search removes at once all victims
that the sums do not need: `resource_bound` refuses the set without one more of them, so if the smaller set holds, a single trial
proves that each of the rest is needed. If it does not hold, halves are tried, then halves of halves, down to single victims,
until removing any further victim makes the scenario fail. A search that runs out of budget keeps the smallest set proven so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from navarch.actions.kai.solver.resource_bound import ResourceBound
from navarch.actions.kai.solver.scenario_trial import ProvenScenario, ScenarioTrial
from navarch.actions.kai.solver.search_budget import JobBudget
from navarch.actions.kai.solver.victim_columns import RoomEstimate, VictimColumns, admissible
from navarch.actions.kai.solver.victim_queue import Batch, VictimPool, batches
from navarch.engine.gangs.partial_job import PartialJob
from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.engine.statement import Statement

FIRST_VICTIMS = 4


class MinimalSearch:
    def __init__(
        self,
        session: Session,
        pool: VictimPool,
        trial: ScenarioTrial,
        budget: JobBudget,
        job: Job,
        chunk: list[int],
        *,
        moves_only: bool,
    ) -> None:
        self.session, self.pool, self.trial, self.budget = session, pool, trial, budget
        self.chunk = chunk
        self.part = PartialJob(job, job.tree.holding([*job.tree.active, *chunk]))
        self.moves_only = moves_only
        self.estimate = RoomEstimate(session, chunk)
        self.ordered = VictimColumns(session, [])
        self._everywhere = np.ones(len(session.nodes), dtype=bool)

    def solve(self) -> Statement | None:
        waiting = batches(self.session, self.pool)
        self.ordered = self._first_victims(waiting)
        if self.budget.is_over():
            return None
        found = self._offer(self.estimate.choose(self.ordered))
        if found is not None:
            return found.statement
        if self.budget.is_over():
            return None
        more = list(waiting)
        self.budget.spend(len(more))
        self.ordered = VictimColumns(self.session, [*self.ordered.batches, *more])
        if not self.moves_only and not self._enough_exists():
            return None
        places = self.estimate.choose(self.ordered)
        for count in _wider(len(places), len(self.ordered.batches)):
            if self.budget.is_over():
                return None
            found = self._offer(sorted({*places, *range(count)}))
            if found is not None:
                return found.statement
        return None

    def _first_victims(self, waiting: Iterator[Batch]) -> VictimColumns:
        """The first victims in order, in growing steps, until the sums show enough room. Most jobs need only few."""
        taken = list(islice(waiting, max(FIRST_VICTIMS, self.estimate.size)))
        while True:
            ordered = VictimColumns(self.session, taken)
            more = [] if self.estimate.has_room(ordered) else list(islice(waiting, 4 * len(taken)))
            if not more:
                self.budget.spend(len(taken))
                return ordered
            taken += more

    def _enough_exists(self) -> bool:
        """Whether as much as the job requests is free or may be taken, on any nodes."""
        allowed = VictimColumns(self.session, admissible(self.ordered, self.part, self.chunk, self.trial.validate))
        room = allowed.with_freed(range(len(allowed.batches)), self.estimate.room)
        return all(
            bool((np.maximum(room, 0).sum(axis=1) >= count * self.estimate.need(kind)).all()) for kind, count in self.estimate.kinds
        )

    # trials

    def play(self, places: list[int]) -> ProvenScenario | None:
        victims = [self.ordered.batches[place] for place in places]
        self.budget.spend(len(self.chunk) + sum(len(batch.tasks) for batch in victims))
        return self.trial.play(self.part, self.chunk, self._everywhere, victims)

    def _offer(self, offered: list[int]) -> ProvenScenario | None:
        """Try one set of victims, and reduce it if it holds."""
        bound = ResourceBound(self.session, self.chunk, [self.ordered.batches[place] for place in offered], all_return=self.moves_only)
        found = self.play(offered)
        return None if found is None else VictimReduction(self, found, offered, bound).reduce()


class VictimReduction:
    """Removes victims from a set that holds, until removing any further victim makes the scenario fail."""

    def __init__(self, search: MinimalSearch, found: ProvenScenario, offered: list[int], bound: ResourceBound) -> None:
        self.search = search
        self.offered = offered
        self._found: ProvenScenario | None = found
        """The current set as tried; None after a trial that failed."""
        self._bound = bound

    def reduce(self) -> ProvenScenario:
        place_of = {id(batch): place for place, batch in enumerate(self.search.ordered.batches)}
        gone = {place_of[id(batch)] for batch in self._played().victims}
        idle = [place for place in self.offered if place not in gone]
        if idle:
            self._try_without(idle)
        spare = self._spared_by_figures()
        if spare and not self._try_without(spare):
            while self._by_trial(self.offered[::-1]):
                pass
        return self._played()

    def _played(self) -> ProvenScenario:
        if self._found is None:
            self._found = self.search.play(self.offered)
        assert self._found is not None, "what held once holds again"
        return self._found

    def _spared_by_figures(self) -> list[int]:
        """Victims, last first, that the resource sums allow to keep together."""
        spare = []
        for place in self.offered[::-1]:
            batch = self.search.ordered.batches[place]
            self._bound.remove(batch)
            if self._bound.admits():
                spare.append(place)
            else:
                self._bound.add(batch)
        for place in spare:
            self._bound.add(self.search.ordered.batches[place])
        return spare if len(spare) < len(self.offered) else spare[:-1]

    def _by_trial(self, candidates: list[int]) -> bool:
        """Try the set without these victims, half by half. True if a victim was removed after another had proved to be needed."""
        again = needed = False
        stack = [candidates]
        while stack and not self.search.budget.is_over():
            part = stack.pop()
            if self._try_without(part):
                again = again or needed
            elif len(part) > 1:
                middle = len(part) // 2
                stack += [part[middle:], part[:middle]]
            else:
                needed = True
        return again

    def _try_without(self, places: list[int]) -> bool:
        """Remove these victims if the scenario holds without them. No trial where resource sums exclude it."""
        stay = set(places)
        fewer = [place for place in self.offered if place not in stay]
        those = [self.search.ordered.batches[place] for place in places]
        for batch in those:
            self._bound.remove(batch)
        if fewer and self._bound.admits() and not self.search.budget.is_over():
            if self._found is not None:
                self._found.statement.discard()
            self._found = self.search.play(fewer)
            if self._found is not None:
                self.offered = fewer
                return True
        for batch in those:
            self._bound.add(batch)
        return False


def _wider(first: int, most: int) -> Iterator[int]:
    """Nothing beyond the chosen victims, then more and more victims in order."""
    yield 0
    size = max(1, first)
    while size < most:
        size = min(4 * size, most)
        yield size
