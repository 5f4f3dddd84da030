"""Which pods the Eviction API would refuse, and so no action chooses where the policy evicts through it."""

from __future__ import annotations

from typing import Any

import pytest

import navarch


def pod(name: str, priority: int, node: str = "", **labels: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"priority": priority, "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}
    if node:
        spec["nodeName"] = node
    status = {"phase": "Running" if node else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def budget(name: str, allowed: int, selector: dict[str, Any] | None) -> dict[str, Any]:
    metadata, status = {"name": name, "namespace": "default"}, {"disruptionsAllowed": allowed}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"selector": selector},
        "status": status,
    }


APP = {"matchLabels": {"app": "low"}}
POLICY = {
    "actions": "allocate, preempt",
    "tiers": [{"plugins": [{"name": "priority"}, {"name": "predicates"}]}],
}


@pytest.mark.parametrize(
    ("budgets", "by_api", "by_deletion"),
    [
        ([], 1, 1),
        ([budget("a", 1, APP)], 1, 1),
        ([budget("a", 0, APP)], 0, 1),
        ([budget("a", 1, APP), budget("b", 1, APP)], 0, 1),
        ([budget("a", 1, APP), budget("b", 1, {"matchLabels": {"app": "other"}})], 1, 1),
        ([budget("a", 0, {})], 0, 1),
        ([budget("a", 0, None)], 1, 1),
    ],
    ids=["none", "open", "closed", "two", "two-of-others", "closed-for-all-pods", "without-a-selector"],
)
def test_budgets_protect_from_the_eviction_api_alone(budgets: list[dict[str, Any]], by_api: int, by_deletion: int) -> None:
    status = {"allocatable": {"cpu": "2", "pods": "10"}, "conditions": [{"type": "Ready", "status": "True"}]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status}
    world = [node, pod("low", 1, "n", app="low"), pod("high", 100), *budgets]
    for evictions, expected in (("api", by_api), ("delete", by_deletion)):
        assert len(navarch.plan(world, policy={**POLICY, "evictions": evictions}).evictions) == expected, evictions
