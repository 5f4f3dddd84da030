"""scenarioSearchBudgets as a policy file gives them: names, defaults, and what is refused."""

from __future__ import annotations

import pytest

from navarch.engine.policy import PRESETS, PolicyError, load
from navarch.engine.policy.search_budgets import SearchBudgets
from navarch.engine.policy.values import Policy
from navarch.installed import installed


def read(**budgets: object) -> Policy:
    return load({**PRESETS["kai"], "compat": "strict", "scenarioSearchBudgets": budgets}, installed().catalogue(), "test")


def test_a_file_without_them_has_the_defaults() -> None:
    budgets = SearchBudgets.of(read())
    assert (budgets.action("reclaim"), budgets.job, budgets.min_job) == (300.0, 240.0, 0.0)
    assert (budgets.generator("NodeLocalGreedy"), budgets.generator("MultiNodeGang")) == (30.0, 120.0)


def test_a_default_that_is_given_holds_for_all_that_are_not_named() -> None:
    budgets = SearchBudgets.of(
        read(maxActionSearchDuration={"default": "10s"}, maxGeneratorSearchDuration={"default": "5s", "MultiNodeGang": "1m"})
    )
    assert (budgets.action("preempt"), budgets.generator("NodeLocalGreedy"), budgets.generator("MultiNodeGang")) == (10.0, 5.0, 60.0)


@pytest.mark.parametrize(
    "budgets, where, words",
    [
        ({"maxActionSearchDuration": {"allocate": "1s"}}, "maxActionSearchDuration.allocate", "unknown field"),
        ({"maxGeneratorSearchDuration": {"NodeLocal": "1s"}}, "maxGeneratorSearchDuration.NodeLocal", "NodeLocalGreedy"),
        ({"maxJobSearchDuration": "-1s"}, "maxJobSearchDuration", "-1"),
        (
            {"minJobSearchDuration": "5m"},
            "minJobSearchDuration",
            "found 300s, expected less than maxJobSearchDuration (240s)",
        ),
    ],
)
def test_impossible_budgets_are_refused(budgets: dict[str, object], where: str, words: str) -> None:
    with pytest.raises(PolicyError) as refused:
        read(**budgets)
    assert where in str(refused.value) and words in str(refused.value)


def test_a_job_without_a_most_may_have_any_least() -> None:
    assert SearchBudgets.of(read(maxJobSearchDuration="0s", minJobSearchDuration="5m")).min_job == 300.0
