"""A node that refused one task of a role, and later tasks of the role that would fit there."""

from __future__ import annotations

from typing import Any

import pytest

import navarch


def pod(name: str, cpu: int, role: str = "worker") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    annotations = {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": role}
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container]},
        "status": {"phase": "Pending"},
    }


def objects(*pods: dict[str, Any]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for name, cpu in (("a-small", "2"), ("b-large", "8")):
        amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        out.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status})
    api = "scheduling.volcano.sh/v1beta1"
    queue = {"apiVersion": api, "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
    spec = {"minMember": len(pods), "queue": "default"}
    group = {"apiVersion": api, "kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"}, "spec": spec}
    return [*out, queue, {**group, "status": {"phase": "Inqueue"}}, *pods]


def plan(compat: str, *pods: dict[str, Any], cache: bool = True) -> navarch.Plan:
    policy: dict[str, Any] = {
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}],
        "compat": compat,
        "configurations": [{"name": "allocate", "arguments": {"predicateErrorCacheEnable": cache}}],
    }
    return navarch.plan(objects(*pods), policy=policy)


def places(made: navarch.Plan) -> dict[str, str]:
    return {bind.pod.removeprefix("default/"): bind.node for bind in made.records[0].binds}


BOTH = (pod("w-0", 4), pod("w-1", 1))


@pytest.mark.parametrize(
    ("compat", "cache", "node"), [("strict", True, "a-small"), ("volcano", True, "b-large"), ("volcano", False, "a-small")]
)
def test_a_smaller_task_of_the_role(compat: str, cache: bool, node: str) -> None:
    assert places(plan(compat, *BOTH, cache=cache)) == {"w-0": "b-large", "w-1": node}


def test_other_roles_are_tried_everywhere() -> None:
    assert places(plan("volcano", pod("w-0", 4), pod("w-1", 1, "other"))) == {"w-0": "b-large", "w-1": "a-small"}


def test_the_message_has_what_each_node_said_first() -> None:
    made = plan("volcano", pod("w-0", 7), pod("w-1", 2))
    (condition,) = made.to_dict()["cycles"][0]["jobs"][0]["conditions"]
    assert condition["message"].endswith("Origin reason is w-1: 0/2 nodes are unavailable: 2 Insufficient cpu.")
