"""Nodes, queues, groups and pods as KAI users write them, and a cycle over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navarch.engine.policy import Policy
from navarch.offline.plan import plan

NOW = 1_767_225_600.0


UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def node(name: str, gpus: int = 2, memory: int = 40_000) -> dict[str, Any]:
    allocatable = {"cpu": "32", "memory": "128Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    labels = {"nvidia.com/gpu.memory": str(memory), "nvidia.com/gpu.count": str(gpus)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}


def queue(name: str, parent: str = "", quota: float = -1, limit: float = -1) -> dict[str, Any]:
    gpu = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    spec = {"resources": {"gpu": gpu, "cpu": UNLIMITED, "memory": UNLIMITED}} | ({"parentQueue": parent} if parent else {})
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def group(name: str, in_queue: str, least: int = 1, age: int = 1, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns", "creationTimestamp": f"2025-12-31T23:{59 - age:02d}:00Z"}
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": {"minMember": least, "queue": in_queue, **spec},
    }


def pod(name: str, in_group: str, gpus: int = 0, fraction: str = "", on: str = "", shares: str = "") -> dict[str, Any]:
    annotations = {"pod-group-name": in_group} | ({"gpu-fraction": fraction} if fraction else {})
    requests = {"cpu": "1", "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    meta = {"name": name, "namespace": "ns", "uid": name, "annotations": annotations, "creationTimestamp": "2025-12-31T22:00:00Z"}
    if shares:
        meta["labels"] = {"runai-gpu-group": shares}
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}}
    spec: dict[str, Any] = {"schedulerName": "kai-scheduler", "containers": [container]}
    if on:
        spec["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running" if on else "Pending"}}


def cycle(*objects: dict[str, Any], policy: str | Mapping[str, object] | Policy = "kai", cycles: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = plan(objects, policy=policy, now=NOW, cycles=cycles).to_dict()["cycles"][-1]
    return found
