"""Disruption budgets and cool-down times bind the actions that evict whole gangs, as the default policy has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import navarch
from navarch.testing.builders import budget, node, pod, pod_group, priority_class, queue

CLUSTER = [node("n").cpu(4), queue("default"), queue("research"), priority_class("high", 9)]


def gang(name: str, count: int, minimum: int, *, runs: bool = True, labels: Mapping[str, str] | None = None) -> list[Any]:
    """A group and its pods of one CPU each. `high` has priority 9, `wants` asks in queue research."""
    group = pod_group(name, minimum).queue("research" if name == "wants" else "default").phase("Running" if runs else "Pending")
    pods = [pod(f"{name}-{number}").cpu(1).in_group(name).label("app", name) for number in range(count)]
    if name == "high":
        group.priority_class(name)
    for each in pods:
        if name == "high":
            each.priority_class(name).priority(9)
        if runs:
            each.on("n").child("status")["startTime"] = "2026-01-01T00:00:00Z"
        for key, value in (labels or {}).items():
            each.label(key, value)
    return [group, *pods]


def gone(*world: Any, now: str = "2026-01-01T00:01:00Z") -> list[str]:
    return sorted(eviction.pod for eviction in navarch.plan([*CLUSTER, *world], policy="navarch", now=now).evictions)


@pytest.mark.parametrize(("allowed", "expected"), [(4, 4), (3, 0), (1, 0)])
def test_a_gang_goes_whole_within_its_budget_or_stays(allowed: int, expected: int) -> None:
    world = [*gang("low", 4, 4), budget("low", {"app": "low"}, allowed), *gang("high", 4, 4, runs=False)]
    assert len(gone(*world)) == expected


@pytest.mark.parametrize(("allowed", "expected"), [(4, 2), (2, 2), (1, 0)])
def test_what_a_gang_can_spare_goes_pod_by_pod(allowed: int, expected: int) -> None:
    world = [*gang("low", 4, 1), budget("low", {"app": "low"}, allowed), *gang("high", 2, 2, runs=False)]
    assert len(gone(*world)) == expected


def test_a_budget_that_one_gang_cannot_use_is_left_for_others() -> None:
    """The budget allows one pod. The gang of two would need two, the single pod after it needs one."""
    low = [*gang("a", 2, 2, labels={"team": "x"}), *gang("b", 1, 1, labels={"team": "x"}), *gang("c", 1, 1, labels={"team": "y"})]
    assert gone(*low, budget("x", {"team": "x"}, 1), *gang("high", 2, 2, runs=False)) == ["default/b-0", "default/c-0"]


@pytest.mark.parametrize(("allowed", "expected"), [(2, 2), (1, 0)])
def test_gang_reclaim_minds_budgets(allowed: int, expected: int) -> None:
    budgets = [budget("own", {"app": "a-own"}, 0), budget("borrows", {"app": "borrows"}, allowed)]
    assert len(gone(*gang("a-own", 2, 2), *gang("borrows", 2, 2), *budgets, *gang("wants", 2, 2, runs=False))) == expected


def test_a_gang_that_has_just_started_cools_down() -> None:
    cooling = {"volcano.sh/cooldown-time": "10m"}
    world = [*gang("low", 4, 4, labels=cooling), *gang("high", 4, 4, runs=False)]
    assert gone(*world) == []
    assert len(gone(*world, now="2026-01-01T00:11:00Z")) == 4
