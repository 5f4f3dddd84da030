"""A pod that waits for its victims keeps the node that it was nominated for, and a cycle that tries it again says so."""

from __future__ import annotations

from typing import Any

from navarch.offline.plan import plan

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n0", "labels": {"kubernetes.io/hostname": "n0"}},
    "status": {"allocatable": {"cpu": "2", "pods": "9"}, "conditions": [{"type": "Ready", "status": "True"}]},
}


def pod(name: str, priority: int, status: dict[str, Any], node: str = "", **metadata: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"priority": priority, "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, **metadata},
        "spec": spec,
        "status": status,
    }


def decided(victim: dict[str, Any], waiting: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = plan([NODE, victim, waiting], policy="kube-scheduler").to_dict()["cycles"][0]
    return found


LEAVING = pod(
    "low",
    1,
    {"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True"}]},
    "n0",
    deletionTimestamp="2026-01-01T00:00:30Z",
    deletionGracePeriodSeconds=30,
)


def test_a_nomination_lasts_while_its_victim_is_leaving() -> None:
    cycle = decided(LEAVING, pod("high", 1000, {"phase": "Pending", "nominatedNodeName": "n0"}))
    assert cycle["evictions"] == []
    assert [(each["pod"], each["node"]) for each in cycle["nominations"]] == [("default/high", "n0")]


def test_a_nomination_ends_where_no_eviction_helps() -> None:
    equal = pod("low", 1000, {"phase": "Running"}, "n0")
    assert decided(equal, pod("high", 1000, {"phase": "Pending", "nominatedNodeName": "n0"}))["nominations"] == []
