"""The solver: finds the victims that make room for a job, and proves the whole scenario before anything is evicted.

A scenario is tried on a statement (`scenario_trial`). Which scenarios are tried depends on the policy: with minimal victims
`minimal_search` looks for the smallest set, otherwise `scenario_search` tries the scenarios of KAI's generators in order. Both
stop when their budget is used up (`search_budget`). The job is then told that the search was cut short, which does not mean that
there are no victims.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from navarch.actions.kai.solver.minimal_search import MinimalSearch
from navarch.actions.kai.solver.scenario_search import RulesMayAllow, ScenarioSearch
from navarch.actions.kai.solver.scenario_trial import ScenarioTrial, Validate
from navarch.actions.kai.solver.search_budget import ActionBudget, JobBudget
from navarch.actions.kai.solver.victim_queue import VictimPool, Victims
from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.gangs.partial_job import PartialJob
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
    """Every victim must be placed again; otherwise the scenario fails."""
    rules_may_allow: RulesMayAllow | None = None
    exhaustive: bool = False
    """Without the shortcuts of `scenario_search`, for tests."""
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
            return MinimalSearch(self.session, self.pool, self.trial, budget, job, chunk, moves_only=self.moves_only).solve()
        search = ScenarioSearch(
            self.session,
            self.pool,
            self.trial,
            budget,
            self.rules_may_allow,
            all_return=self.moves_only,
            exhaustive=self.exhaustive,
        )
        return search.solve(job, chunk)

    def holds(self, job: Job, victims: Victims) -> bool:
        """Whether the next tasks of the job can be placed, and all rules allow it, if exactly these victims are evicted."""
        chunk = next_to_place(self.session, job.tree)
        part = PartialJob(job, job.tree.holding([*job.tree.active, *chunk]))
        found = self.trial.play(part, chunk, np.ones(len(self.session.nodes), dtype=bool), victims)
        if found is not None:
            found.statement.discard()
        return found is not None
