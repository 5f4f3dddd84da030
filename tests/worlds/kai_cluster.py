"""A small GPU cluster with a tree of queues as KAI's users write it: two nodes of eight GPUs, `org` over `vision` and `speech`."""

from __future__ import annotations

from typing import Any

from navarch.testing.builders import PodBuilder, node, pod

Manifest = dict[str, Any]
BEGIN = "2026-01-01T00:00:00Z"
NOW = 1767225600.0
"""The same moment."""


def gpu_node(name: str, **labels: str) -> Manifest:
    built = node(name).cpu("64").memory("256Gi").gpu(8).label("nvidia.com/gpu.memory", "80000")
    for key, value in labels.items():
        built.label(key, value)
    return built


def queue(name: str, parent: str = "org", quota: float = 8, limit: float = -1, **spec: Any) -> Manifest:
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"cpu": unlimited, "memory": unlimited, "gpu": {"quota": quota, "limit": limit, "overQuotaWeight": 1}}
    over = {"parentQueue": parent} if parent else {}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {**over, **spec, "resources": resources},
    }


def group(name: str, least: int = 1, queue: str = "vision", started: str = "", **spec: Any) -> Manifest:
    annotations = {"kai.scheduler/last-start-timestamp": started} if started else {}
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "lab", "creationTimestamp": BEGIN, "annotations": annotations},
        "spec": {"minMember": least, "queue": queue, **spec},
    }


def worker(name: str, of: str, gpus: int = 0, part: str = "") -> PodBuilder:
    built = pod(name, "lab").cpu("1").memory("1G").created(BEGIN).annotate("pod-group-name", of)
    if gpus:
        built.gpu(gpus)
    return built.label("kai.scheduler/subgroup-name", part) if part else built


def workers(of: str, count: int, gpus: int = 8, part: str = "") -> list[Manifest]:
    return [worker(f"{of}-{part}{number}", of, gpus, part) for number in range(count)]


CLUSTER = [gpu_node("gpu-1"), gpu_node("gpu-2"), queue("org", "", 16)]
TEAMS = [queue("vision"), queue("speech")]
