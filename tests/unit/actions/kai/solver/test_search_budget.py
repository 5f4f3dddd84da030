"""Searches for victims end when their budget is used up, and jobs are told so; budgets are steps, so every run ends alike."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.kai_objects import cycle, group, node, pod, queue

from navarch.engine.policy import PRESETS


def world(gangs: int = 1) -> list[dict[str, Any]]:
    """Four full nodes whose pods a queue holds beyond its quota; gangs of two pods that want two whole nodes wait."""
    objects = [queue("dep"), queue("rich", "dep", quota=0), queue("poor", "dep", quota=16)]
    objects += [node(f"n{i}", 4) for i in range(4)]
    for i in range(16):
        objects += [group(f"r{i:02d}", "rich", age=30 - i), pod(f"r{i:02d}", f"r{i:02d}", 1, on=f"n{i % 4}")]
    for g in range(gangs):
        objects += [group(f"w{g}", "poor", 2, age=9 - g), pod(f"w{g}-a", f"w{g}", 4), pod(f"w{g}-b", f"w{g}", 4)]
    return objects


def reasons(found: dict[str, Any], job: str) -> list[dict[str, Any]]:
    return [r for each in found["jobs"] if each["job"] == f"ns/{job}" for r in each["reasons"] if r["code"] == "SearchCutShort"]


def budgeted(compat: str, **budgets: Any) -> dict[str, Any]:
    return {**PRESETS["kai"], "compat": compat, "actions": "allocate, reclaim", "scenarioSearchBudgets": budgets}


@pytest.mark.parametrize("compat", ["strict", "kai"])
def test_without_a_bound_both_gangs_are_served(compat: str) -> None:
    found = cycle(*world(2), policy=budgeted(compat, maxJobSearchDuration="0s", maxActionSearchDuration={"default": "0s"}))
    assert len(found["evictions"]) == 16
    assert not reasons(found, "w0") and not reasons(found, "w1")


@pytest.mark.parametrize("compat", ["strict", "kai"])
def test_a_job_whose_search_is_cut_short_is_told(compat: str) -> None:
    found = cycle(*world(), policy=budgeted(compat, maxJobSearchDuration="200us"))
    assert not found["evictions"]
    (reason,) = reasons(found, "w0")
    assert "maxJobSearchDuration (0.0002s) allows 2 steps" in reason["message"]
    assert reason["figures"]["setting"] == "maxJobSearchDuration"
    assert reason["figures"]["budget"] == 2
    assert "policy changed" in reason["undoneBy"]


def test_in_strict_mode_the_next_job_has_a_search_of_its_own() -> None:
    small = [group("s", "poor", 1, age=1), pod("s", "s", 1)]
    found = cycle(*world(), *small, policy=budgeted("strict", maxJobSearchDuration="1200us"))
    assert reasons(found, "w0")
    assert [each["for"] for each in found["evictions"]] == ["ns/s"]


@pytest.mark.parametrize("least, evicted", [("0s", 8), ("100ms", 16)])
def test_a_job_gets_its_least_even_if_the_action_has_used_up_its_own(least: str, evicted: int) -> None:
    """Enough for the first gang, and nothing for the second unless each has a right to some."""
    probe = cycle(*world(), policy=budgeted("strict"))
    assert len(probe["evictions"]) == 8
    budgets = {"maxActionSearchDuration": {"reclaim": f"{steps_of_one_gang()}00us"}, "minJobSearchDuration": least}
    found = cycle(*world(2), policy=budgeted("strict", **budgets))
    assert len(found["evictions"]) == evicted
    assert bool(reasons(found, "w1")) == (evicted == 8)


def steps_of_one_gang() -> int:
    """The smallest budget, in steps, with which one gang is served."""
    for steps in range(1, 400):
        found = cycle(*world(), policy=budgeted("strict", maxActionSearchDuration={"reclaim": f"{steps}00us"}))
        if found["evictions"] and not reasons(found, "w0"):
            return steps
    raise AssertionError("no budget was enough")


def test_a_way_of_choosing_victims_that_used_up_its_budget_leaves_it_to_the_next() -> None:
    ways = {"NodeLocalGreedy": "100us", "MultiNodeGang": "1s"}
    found = cycle(*world(), policy=budgeted("kai", maxGeneratorSearchDuration=ways))
    assert len(found["evictions"]) == 8
    neither = cycle(*world(), policy=budgeted("kai", maxGeneratorSearchDuration={"default": "100us"}))
    assert not neither["evictions"]
    (reason,) = reasons(neither, "w0")
    assert "maxGeneratorSearchDuration of MultiNodeGang (0.0001s) allows 1 steps" in reason["message"]


def test_the_same_budget_ends_a_search_at_the_same_place() -> None:
    policy = budgeted("kai", maxJobSearchDuration="3ms")
    assert cycle(*world(), policy=policy)["jobs"] == cycle(*world(), policy=policy)["jobs"]
