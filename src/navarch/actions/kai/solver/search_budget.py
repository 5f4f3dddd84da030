"""How long a search for victims may go on, counted in steps and not by a clock.

`scenarioSearchBudgets` are durations. A decision that depended on how fast a machine happens to be could not be replayed, so
every second of them is worth `STEPS_PER_SECOND` steps: a batch of victims taken from the line is one, so is every task that
a trial evicts or places. On the machine of the benchmarks a step takes about a ten-thousandth of a second (bench/solver).

An action has a budget, each job in it one of its own within what the action has left, and each way of choosing victims one within
the job's; zero means no bound. A job gets `minJobSearchDuration` even if the action has less left. What ends a search is
told to the job: that it was cut short, after how much, and which setting would let it go on.
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
    """What the searches of one action in one cycle may cost."""

    def __init__(self, session: Session, action: str) -> None:
        self.session = session
        self.action = action
        self.limits = SearchBudgets.of(session.policy)
        self.left = _steps(self.limits.action(action))
        self._cut: tuple[str, JobBudget] | None = None

    def for_job(self) -> JobBudget:
        return JobBudget(self)

    def nothing_found(self, job: Job, budget: JobBudget, tried: int) -> None:
        """The search for the job ended without victims; it is told if that was not for want of any."""
        if budget.is_over():
            self._cut = job.key, budget
        reason = budget.reason(tried)
        if reason is not None:
            job.refuse(reason)

    def was_cut(self, job: Job) -> bool:
        return self._cut is not None and self._cut[0] == job.key

    def closed_to(self, job: Job) -> bool:
        """Whether no search is made any more, because one that was cut short ended the action; the job is told."""
        if self._cut is None or not self.session.semantics.cut_search_ends_action:
            return False
        key, budget = self._cut
        text = f"No search for victims was made: that for {key} was cut short by {budget.field} ({budget.seconds:g}s)"
        figures: dict[str, int | float | str] = {"scenarios": 0, "setting": budget.field, "seconds": budget.seconds, "job": key}
        job.refuse(Reason("SearchCutShort", text, figures=figures, undone_by=_UNDONE_BY))
        return True


class JobBudget:
    """What the search for one job may cost."""

    def __init__(self, action: ActionBudget) -> None:
        limits = action.limits
        own, least = _steps(limits.job), round(limits.min_job * STEPS_PER_SECOND)
        self.action = action
        self.whole = max(min(action.left, own), least)
        self.left = self.whole
        self.spent = 0
        self.field = "maxJobSearchDuration" if own <= action.left else f"maxActionSearchDuration of {action.action}"
        self.seconds = limits.job if own <= action.left else limits.action(action.action)
        self._way, self._generator = "", inf
        self._cut: list[str] = []
        """Ways of choosing victims that did not come to their end."""

    def begin(self, generator: str) -> None:
        """Another way of choosing victims is tried."""
        self._way, self._generator = generator, _steps(self.action.limits.generator(generator))

    def way_is_cut(self) -> None:
        """The way that is being tried used up its own budget; another may follow."""
        self._cut.append(self._way)

    def spend(self, steps: int) -> None:
        self.spent += steps
        self.left -= steps
        self.action.left -= steps
        self._generator -= steps

    def is_over(self) -> bool:
        return self.left <= 0

    def generator_is_over(self) -> bool:
        return self._generator <= 0 or self.left <= 0

    def reason(self, tried: int) -> Reason | None:
        """Why the search did not come to its end, if it did not."""
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
