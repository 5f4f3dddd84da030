"""Who must go so that a job can be placed: a search that proves a whole scenario before anything is evicted.

A scenario is played through on a statement (`trial`). Which are played depends on what the victims must be: the fewest (`least`),
or those that a walk along the line of victims comes to first (`walk`). Either stops when its budget is used up
(`search_budget`); the job is then told that the search was cut short, which is not to say that it found nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from navarch.actions.kai.solver.minimal_search import LeastVictims
from navarch.actions.kai.solver.scenario_search import CouldTake, Walk
from navarch.actions.kai.solver.scenario_trial import ScenarioTrial, Validate, take_back
from navarch.actions.kai.solver.search_budget import ActionBudget, JobBudget
from navarch.actions.kai.solver.victim_queue import VictimPool, Victims
from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.gangs.partial_job import JobCopy
from navarch.engine.job import Job
from navarch.engine.points.gang_protocols import ScenarioGenerator, SearchStarted
from navarch.engine.session import Session
from navarch.engine.statement import Statement


@dataclass(slots=True)
class Solver:
    session: Session
    pool: VictimPool
    validate: Validate
    budget: ActionBudget
    moves_only: bool = False
    """Nobody may lose a place, so a victim that finds none spoils the scenario."""
    could_take: CouldTake | None = None
    plain: bool = False
    """Without the shortcuts of `walk`."""
    trial: ScenarioTrial = field(init=False)

    def __post_init__(self) -> None:
        self.trial = ScenarioTrial(self.session, self.validate)

    def solve(self, job: Job) -> Statement | None:
        """A statement that places the next tasks of the job, ready to be committed; None if there is none."""
        session = self.session
        chunk = next_to_place(session, job.tree)
        if not chunk or not session.implementing(ScenarioGenerator):
            return None
        for plugin in session.implementing(SearchStarted):
            plugin.search_started(job)
        self.trial.prepare()
        budget = self.budget.for_job()
        statement = None if budget.is_over() else self._search(job, chunk, budget)
        if statement is None:
            self.budget.nothing_found(job, budget, self.trial.played)
        return statement

    def _search(self, job: Job, chunk: list[int], budget: JobBudget) -> Statement | None:
        if self.session.semantics.victims_are_minimal:
            return LeastVictims(self.session, self.pool, self.trial, budget, job, chunk, moves_only=self.moves_only).solve()
        walk = Walk(self.session, self.pool, self.trial, budget, self.could_take, all_return=self.moves_only, plain=self.plain)
        return walk.solve(job, chunk)

    def holds(self, job: Job, victims: Victims) -> bool:
        """Whether the next tasks of the job find room, and every rule is kept, if just these go."""
        chunk = next_to_place(self.session, job.tree)
        part = JobCopy(job, job.tree.holding([*job.tree.active, *chunk]))
        found = self.trial.play(part, chunk, np.ones(len(self.session.nodes), dtype=bool), victims)
        if found is not None:
            take_back(found.statement)
        return found is not None
