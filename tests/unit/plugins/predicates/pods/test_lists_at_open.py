"""Volcano draws up the nodes with pods that have rules about pods when a cycle opens. Rules of the pods there hold in their domain."""

from __future__ import annotations

from typing import Any

import pytest

import navarch

_TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "rack"}
_REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}
_PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": _TERM}]}


def _node(name: str, rack: str, cpu: str) -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, "rack": rack}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": room, "capacity": room}}


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "labels": {"app": "web"}, "annotations": {"scheduling.k8s.io/group-name": name}}
    container = {"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    phase = "Running" if "nodeName" in spec else "Pending"
    whole = {"schedulerName": "volcano", "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole, "status": {"phase": phase}}


def _group(name: str) -> dict[str, Any]:
    spec, metadata = {"minMember": 1, "queue": "default"}, {"name": name, "namespace": "ns"}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}


_QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "default"},
    "spec": {"weight": 1},
    "status": {"state": "Open"},
}


@pytest.mark.parametrize("apart", [_REQUIRED, _PREFERRED], ids=["required", "preferred"])
def test_a_rule_of_a_placed_pod_holds_on_every_node_of_its_rack(apart: dict[str, Any]) -> None:
    objects = [
        _node("a1", "a", "16"),
        _node("a2", "a", "16"),
        _node("b1", "b", "4"),
        _QUEUE,
        _group("there"),
        _group("new"),
        _pod("there", nodeName="a1", affinity={"podAntiAffinity": apart}),
        _pod("new"),
    ]
    policy = {"actions": "allocate", "compat": "volcano", "tiers": [{"plugins": [{"name": "predicates"}, {"name": "nodeorder"}]}]}
    cycle = navarch.plan(objects, policy=policy).to_dict()["cycles"][0]
    assert {bind["pod"]: bind["node"] for bind in cycle["binds"]} == {"ns/new": "b1"}
