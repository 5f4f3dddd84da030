"""Simulated jobs and their queues in KAI's words, for policies with KAI's plugins: these know only queues of KAI's tree.

Queues that a trace names and the cluster does not have are equal: without quota or limit, and with the same weight. All jobs are
preemptible, because KAI starts others only within the quota of their queue.
"""

from __future__ import annotations

from typing import Any

from navarch.simulator.jobs import GROUP_NAME

PARENT = "simulated"


def kai_object(document: dict[str, Any]) -> dict[str, Any]:
    """The same PodGroup or pod in KAI's words."""
    if document["kind"] == "PodGroup":
        spec = {**document["spec"], "preemptibility": "preemptible"}
        return {**document, "apiVersion": "scheduling.run.ai/v2alpha2", "spec": spec}
    if document["kind"] == "Pod":
        annotations = dict(document["metadata"]["annotations"])
        annotations["pod-group-name"] = annotations.pop(GROUP_NAME)
        return {**document, "metadata": {**document["metadata"], "annotations": annotations}}
    return document


def kai_queues(name: str) -> list[dict[str, Any]]:
    """The queue, and the queue above it."""
    return [_queue(PARENT, quota=-1), _queue(name, quota=0, parent=PARENT)]


def _queue(name: str, quota: int, parent: str = "") -> dict[str, Any]:
    resources = {each: {"quota": quota, "limit": -1, "overQuotaWeight": 1} for each in ("cpu", "memory", "gpu")}
    spec: dict[str, Any] = {"resources": resources, **({"parentQueue": parent} if parent else {})}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
