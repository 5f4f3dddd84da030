"""The fewest victims: a choice by figures, one exact trial, then everybody back whom the job can do without.

What figures choose (`strict_search`) is played through. Where a rule that they do not see refuses it, more of the line is offered.
Then victims are given back, from those who would go last. First all at once whom figures can spare: what `room_bound` turns down
without one more of them cannot hold, so if that smaller choice holds, each of the rest is proved to be needed by a single
trial. If it does not, halves are tried, and halves of halves, down to single victims; again, until nobody more can be
spared. A search that used up its budget on the way keeps what it has proved so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from navarch.actions.kai.solver.resource_bound import RoomBound
from navarch.actions.kai.solver.scenario_trial import Found, ScenarioTrial, take_back
from navarch.actions.kai.solver.search_budget import JobBudget
from navarch.actions.kai.solver.victim_columns import Line, VictimColumns, admissible
from navarch.actions.kai.solver.victim_queue import Batch, VictimPool, batches
from navarch.engine.gangs.partial_job import JobCopy
from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.engine.statement import Statement

FIRST_VICTIMS = 4


class LeastVictims:
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
        self.part = JobCopy(job, job.tree.holding([*job.tree.active, *chunk]))
        self.moves_only = moves_only
        self.outlook = VictimColumns(session, chunk)
        self.line = Line(session, [])
        self._everywhere = np.ones(len(session.nodes), dtype=bool)

    def solve(self) -> Statement | None:
        waiting = batches(self.session, self.pool)
        self.line = self._beginning(waiting)
        if self.budget.is_over():
            return None
        found = self._offer(self.outlook.choose(self.line))
        if found is not None:
            return found.statement
        if self.budget.is_over():
            return None
        more = list(waiting)
        self.budget.spend(len(more))
        self.line = Line(self.session, [*self.line.batches, *more])
        if not self.moves_only and not self._could_be_had():
            return None
        places = self.outlook.choose(self.line)
        for count in _wider(len(places), len(self.line.batches)):
            if self.budget.is_over():
                return None
            found = self._offer(sorted({*places, *range(count)}))
            if found is not None:
                return found.statement
        return None

    def _beginning(self, waiting: Iterator[Batch]) -> Line:
        """As much of the line of victims as figures ask for, in steps that grow: most jobs need only its beginning."""
        taken = list(islice(waiting, max(FIRST_VICTIMS, self.outlook.size)))
        while True:
            line = Line(self.session, taken)
            more = [] if self.outlook.sees_room(line) else list(islice(waiting, 4 * len(taken)))
            if not more:
                self.budget.spend(len(taken))
                return line
            taken += more

    def _could_be_had(self) -> bool:
        """Whether as much as the job asks for is free or may be taken, wherever that is."""
        allowed = Line(self.session, admissible(self.line, self.part, self.chunk, self.trial.validate))
        room = allowed.sum_of(range(len(allowed.batches)), self.outlook.room)
        return all(
            bool((np.maximum(room, 0).sum(axis=1) >= count * self.outlook.need(kind)).all()) for kind, count in self.outlook.kinds
        )

    # trials

    def play(self, places: list[int]) -> Found | None:
        victims = [self.line.batches[place] for place in places]
        self.budget.spend(len(self.chunk) + sum(len(batch.tasks) for batch in victims))
        return self.trial.play(self.part, self.chunk, self._everywhere, victims)

    def _offer(self, offered: list[int]) -> Found | None:
        """Play one choice of victims, and keep as few of them as will do."""
        bound = RoomBound(self.session, self.chunk, [self.line.batches[place] for place in offered], all_return=self.moves_only)
        found = self.play(offered)
        return None if found is None else GiveBack(self, found, offered, bound).least()


class GiveBack:
    """Takes victims out of a choice that holds, until it holds without none of the rest."""

    def __init__(self, search: LeastVictims, found: Found, offered: list[int], bound: RoomBound) -> None:
        self.search = search
        self.offered = offered
        self._found: Found | None = found
        """The choice as it is, played; None after a trial that failed."""
        self._bound = bound

    def least(self) -> Found:
        place_of = {id(batch): place for place, batch in enumerate(self.search.line.batches)}
        gone = {place_of[id(batch)] for batch in self._played().victims}
        idle = [place for place in self.offered if place not in gone]
        if idle:
            self._try_without(idle)
        spare = self._spared_by_figures()
        if spare and not self._try_without(spare):
            while self._by_trial(self.offered[::-1]):
                pass
        return self._played()

    def _played(self) -> Found:
        if self._found is None:
            self._found = self.search.play(self.offered)
        assert self._found is not None, "what held once holds again"
        return self._found

    def _spared_by_figures(self) -> list[int]:
        """Victims, those first who would go last, without all of whom together figures still leave hope."""
        spare = []
        for place in self.offered[::-1]:
            batch = self.search.line.batches[place]
            self._bound.give_back(batch)
            if self._bound.admits():
                spare.append(place)
            else:
                self._bound.take(batch)
        for place in spare:
            self._bound.take(self.search.line.batches[place])
        return spare if len(spare) < len(self.offered) else spare[:-1]

    def _by_trial(self, candidates: list[int]) -> bool:
        """Try without them, half by half. True if somebody was spared after somebody else had proved to be needed."""
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
        """Let these stay if the scenario holds then. No trial where figures tell."""
        stay = set(places)
        fewer = [place for place in self.offered if place not in stay]
        those = [self.search.line.batches[place] for place in places]
        for batch in those:
            self._bound.give_back(batch)
        if fewer and self._bound.admits() and not self.search.budget.is_over():
            if self._found is not None:
                take_back(self._found.statement)
            self._found = self.search.play(fewer)
            if self._found is not None:
                self.offered = fewer
                return True
        for batch in those:
            self._bound.take(batch)
        return False


def _wider(first: int, most: int) -> Iterator[int]:
    """Nothing beyond what was chosen, then more and more of the line."""
    yield 0
    size = max(1, first)
    while size < most:
        size = min(4 * size, most)
        yield size
