"""Budgets of victim searches in a policy file: per action, per job, per scenario generator.

Durations in seconds; zero is no bound. Defaults are KAI's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from navarch.engine.arguments import Argument
from navarch.engine.policy.findings import Findings
from navarch.engine.policy.schema import Fields, Nested

if TYPE_CHECKING:
    from navarch.engine.policy.values import Policy

ACTIONS = ("default", "reclaim", "preempt", "consolidation")
GENERATORS = {"NodeLocalGreedy": 30.0, "MultiNodeGang": 120.0}
"""Ways of choosing victims, by the names that budgets know them under, and their defaults."""
_ACTION, _JOB, _MIN_JOB, _GENERATOR = 300.0, 240.0, 0.0, 120.0


def _given(name: str, seconds: float, of: str) -> Argument:
    return Argument(name, "duration", seconds, f"how long {of} may search for victims; 0: no bound", minimum=0.0)


FIELDS: Fields = (
    Nested("maxActionSearchDuration", tuple(_given(name, _ACTION, "an action") for name in ACTIONS)),
    _given("maxJobSearchDuration", _JOB, "one job"),
    Argument("minJobSearchDuration", "duration", _MIN_JOB, "what a job gets even if its action has less left", minimum=0.0),
    Nested(
        "maxGeneratorSearchDuration",
        tuple(_given(name, seconds, "one way") for name, seconds in (("default", _GENERATOR), *GENERATORS.items())),
    ),
)


class SearchBudgets(Struct, frozen=True):
    """
    >>> budgets = SearchBudgets(actions={"default": 10.0, "reclaim": 60.0})
    >>> budgets.action("reclaim"), budgets.action("preempt"), budgets.job, budgets.generator("NodeLocalGreedy")
    (60.0, 10.0, 240.0, 30.0)
    """

    actions: Mapping[str, float] = field(default_factory=dict)
    job: float = _JOB
    min_job: float = _MIN_JOB
    generators: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, policy: Policy) -> SearchBudgets:
        given = policy.search_budgets
        return cls(
            actions=_durations(given.get("maxActionSearchDuration")),
            job=_seconds(given.get("maxJobSearchDuration", _JOB)),
            min_job=_seconds(given.get("minJobSearchDuration", _MIN_JOB)),
            generators=_durations(given.get("maxGeneratorSearchDuration")),
        )

    def action(self, name: str) -> float:
        return self.actions.get(name, self.actions.get("default", _ACTION))

    def generator(self, name: str) -> float:
        return self.generators.get(name, self.generators.get("default", GENERATORS.get(name, _GENERATOR)))


def check_budgets(findings: Findings, given: Mapping[str, object]) -> None:
    """A check across fields: the minimum for a job must not exceed its maximum."""
    least = _seconds(given.get("minJobSearchDuration", _MIN_JOB))
    most = _seconds(given.get("maxJobSearchDuration", _JOB))
    if most and least >= most:
        text = f"found {least:g}s, expected less than maxJobSearchDuration ({most:g}s)"
        findings.mistake(("scenarioSearchBudgets", "minJobSearchDuration"), text)


def _durations(value: object) -> dict[str, float]:
    return {str(key): _seconds(each) for key, each in value.items()} if isinstance(value, Mapping) else {}


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
