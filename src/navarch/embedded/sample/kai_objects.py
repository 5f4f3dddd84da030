"""The sample in KAI's words. Under KAI's policy Volcano's queues have no place in the tree of queues."""

from __future__ import annotations

from typing import Final

from navarch.embedded.sample.size import Size
from navarch.object_types import Manifest

PARENT: Final = "sample"


def kai_object(document: Manifest, size: Size) -> Manifest:
    """The same object in KAI's words: a queue with half of the cluster as its quota, a preemptible group, pods that name it."""
    match document["kind"]:
        case "Queue":
            return _queue(document["metadata"]["name"], size.slots // 2, size, parent=PARENT)
        case "PodGroup":
            spec = {**document["spec"], "preemptibility": "preemptible"}
            return {**document, "apiVersion": "scheduling.run.ai/v2alpha2", "spec": spec}
        case "Job":
            noted = document["spec"]["template"]["metadata"]["annotations"]
            noted["pod-group-name"] = noted.pop("scheduling.k8s.io/group-name")
        case "Deployment":
            document["spec"]["template"]["spec"]["schedulerName"] = "kai-scheduler"  # so it is in KAI's default queue
    return document


def parent_queue(size: Size) -> Manifest:
    """The queue above the others, with all of the cluster as its quota."""
    return _queue(PARENT, size.slots, size, parent="")


def _queue(name: str, slots: int, size: Size, *, parent: str) -> Manifest:
    unbounded = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {each: dict(unbounded) for each in ("cpu", "memory", "gpu")}
    each = int(size.amount.removesuffix("m"))
    resources["cpu" if size.unit == "cpu" else "gpu"]["quota"] = slots * each
    spec: Manifest = {"resources": resources, **({"parentQueue": parent} if parent else {})}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
