"""`evictions`: what each file means where it says nothing, and what the engine makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from navarch.engine.policy import PRESETS, PolicyError, load
from navarch.installed import installed
from navarch.offline.plan import plan


@pytest.mark.parametrize(
    "name, evictions",
    [
        ("navarch", "api"),
        ("volcano", "delete"),
        ("kube-batch", "delete"),
        ("kai", "delete"),
        ("kube-scheduler", "delete"),
    ],
)
def test_a_file_that_follows_another_system_deletes(name: str, evictions: str) -> None:
    assert load(PRESETS[name], installed().catalogue(), name).evictions == evictions


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_form_of_file_may_say_otherwise(name: str) -> None:
    for evictions in ("api", "delete"):
        assert load({**PRESETS[name], "evictions": evictions}, installed().catalogue(), name).evictions == evictions
    with pytest.raises(PolicyError, match="evictions: found 'politely', expected 'api' or 'delete'"):
        load({**PRESETS[name], "evictions": "politely"}, installed().catalogue(), name)


def test_a_flat_map_may_say_so() -> None:
    document = {"actions": "allocate", "plugins": "gang, predicates", "evictions": "delete"}
    assert load(document, installed().catalogue(), "flat").evictions == "delete"


def pod(name: str, priority: int, node: str = "", **labels: str) -> dict[str, Any]:
    spec = {"schedulerName": "navarch", "priority": priority, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "lab", "uid": name, "labels": labels},
        "spec": {**spec, **({"nodeName": node} if node else {})},
        "status": {"phase": "Running" if node else "Pending"},
    }


def objects(allowed: int) -> list[dict[str, Any]]:
    amounts = {"cpu": "2", "memory": "8Gi", "pods": "10"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}, "status": {"allocatable": amounts, "capacity": amounts}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "lab"},
        "spec": {"selector": {"matchLabels": {"app": "kept"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    return [node, budget, pod("kept", 5, "n0", app="kept"), pod("free", 10, "n0"), pod("high", 1000)]


POLICIES: dict[str, Mapping[str, Any]] = {
    "preempt": {
        "actions": "allocate, preempt",
        "tiers": [{"plugins": [{"name": "priority"}, {"name": "conformance"}, {"name": "predicates"}]}],
    },
    "gangpreempt": PRESETS["navarch"],
    "kube-scheduler": PRESETS["kube-scheduler"],
}


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("allowed, evictions, victims", [(0, "api", ["lab/free"]), (1, "api", ["lab/kept"])])
def test_a_pod_that_the_eviction_api_would_refuse_is_no_victim(policy: str, allowed: int, evictions: str, victims: list[str]) -> None:
    """`kept` has the lower priority and would go first."""
    found = plan(objects(allowed), policy={**POLICIES[policy], "evictions": evictions}).to_dict()["cycles"][0]
    assert [eviction["pod"] for eviction in found["evictions"]] == victims


def test_where_victims_are_deleted_a_budget_steers_and_vetoes_nothing() -> None:
    both = objects(0)
    both[3]["metadata"]["labels"] = {"app": "kept"}
    for policy, victims in (("delete", 1), ("api", 0)):
        found = plan(both, policy={**POLICIES["kube-scheduler"], "evictions": policy}).to_dict()["cycles"][0]
        assert len(found["evictions"]) == victims
