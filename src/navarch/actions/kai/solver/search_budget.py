"""Search budgets: how much a search for victims may cost, counted in steps and not by a clock.

`scenarioSearchBudgets` are durations. A decision that depended on the speed of a machine could not be replayed, so each second is
worth `STEPS_PER_SECOND` steps. A batch of victims that is taken is one step, and so is every task that a trial evicts or places.
On the machine of the benchmarks a step takes about a ten-thousandth of a second (bench/solver).

An action has a budget; each job has its own within the rest of the action's; each scenario generator has its own within the job's.
Zero means no bound. A job gets `minJobSearchDuration` even if the action has less left. When a budget ends a search, the job gets a
reason that names the budget, how far the search came, and the setting to raise.
"""

from __future__ import annotations

from math import inf

from navarch.engine.job import Job
from navarch.engine.policy.search_budgets import SearchBudgets
from navarch.engine.reasons import Event, Reason
from navarch.engine.session import Session

STEPS_PER_SECOND = 10_000
_UNDONE_BY = (Event.POLICY_CHANGED, Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED, Event.JOB_CHANGED)


class ActionBudget:
    """The budget of all searches of one action in one cycle."""

    def __init__(self, session: Session, action: str) -> None:
        self.session = session
        self.action = action
        self.limits = SearchBudgets.of(session.policy)
        self.left = _steps(self.limits.action(action))
        self._cut: tuple[str, JobBudget] | None = None

    def for_job(self) -> JobBudget:
        return JobBudget(self)

    def nothing_found(self, job: Job, budget: JobBudget, tried: int) -> None:
        """The search for the job ended without victims. If a budget ended it, the job gets the reason."""
        if budget.is_over():
            self._cut = job.key, budget
        reason = budget.reason(tried)
        if reason is not None:
            job.refuse(reason)

    def was_cut(self, job: Job) -> bool:
        return self._cut is not None and self._cut[0] == job.key


class JobBudget:
    """The budget of the search for one job."""

    def __init__(self, action: ActionBudget) -> None:
        limits = action.limits
        own, least = _steps(limits.job), round(limits.min_job * STEPS_PER_SECOND)
        self.action = action
        self.whole = max(min(action.left, own), least)
        self.left = self.whole
        self.spent = 0
        self.field = "maxJobSearchDuration" if own <= action.left else f"maxActionSearchDuration of {action.action}"
        self.seconds = limits.job if own <= action.left else limits.action(action.action)
        self._generator_name, self._generator_left = "", inf
        self._cut: list[str] = []
        """Scenario generators that ran out of budget."""

    def begin(self, generator: str) -> None:
        """Start another scenario generator."""
        self._generator_name, self._generator_left = generator, _steps(self.action.limits.generator(generator))

    def generator_was_cut(self) -> None:
        """The current generator used up its own budget; another may follow."""
        self._cut.append(self._generator_name)

    def spend(self, steps: int) -> None:
        self.spent += steps
        self.left -= steps
        self.action.left -= steps
        self._generator_left -= steps

    def is_over(self) -> bool:
        return self.left <= 0

    def generator_is_over(self) -> bool:
        return self._generator_left <= 0 or self.left <= 0

    def reason(self, tried: int) -> Reason | None:
        """Why the search was cut short; None if it was not."""
        setting, seconds, steps = self.field, self.seconds, self.whole
        if not self.is_over():
            if not self._cut:
                return None
            seconds = self.action.limits.generator(self._cut[-1])
            setting, steps = f"maxGeneratorSearchDuration of {self._cut[-1]}", _steps(seconds)
        if not self.spent:
            text = f"No search for victims was made: {setting} ({seconds:g}s) was used up by jobs before it"
        else:
            text = f"The search for victims was cut short after {tried} scenarios: {setting} ({seconds:g}s) allows {steps:.0f} steps"
        figures: dict[str, int | float | str] = {"scenarios": tried, "steps": self.spent, "setting": setting, "seconds": seconds}
        return Reason("SearchCutShort", text, figures={**figures, "budget": max(0, steps)}, undone_by=_UNDONE_BY)


def _steps(seconds: float) -> float:
    return round(seconds * STEPS_PER_SECOND) if seconds else inf
