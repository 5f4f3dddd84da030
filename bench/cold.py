"""A cold start without a server: the pods of a list, from JSON to the columns of the model.

    python -m bench.cold                     100,000 running pods on 5,000 nodes
    python -m bench.cold --pods 30000

Beside the list as the live scheduler reads it stands the same list one pod at a time, as a watch would bring it. Figures are
microseconds of CPU a pod; the model is the same in both (tests/properties/test_ingest.py).
"""

from __future__ import annotations

import argparse
import gc
from time import process_time
from typing import Any

import msgspec

from bench.report import Figure, show
from navarch.apis.core.pod_objects import Pod
from navarch.engine.policy import preset
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.kube.client import PAGE_SIZE
from navarch.kube.resources import PODS
from navarch.kube.watch.decoding import ObjectDecoder
from navarch.kube.watch.object_store import ObjectStore
from navarch.live.cache.handlers import PodHandler
from navarch.live.core import LiveCore
from navarch.live.ops.garbage_collection import collect_rarely
from navarch.model.resources import requests_from
from navarch.model.spec import NodeSpec

TARGET = 25.0
SIBLINGS = 20
"""Pods of one ReplicaSet."""
_AMOUNTS = {"cpu": "100m", "memory": "100Mi"}
_SINCE = "2026-01-01T00:00:02Z"


def pod(number: int, nodes: int) -> dict[str, Any]:
    """A running pod as an API server shows it."""
    owner = number // SIBLINGS
    token = f"kube-api-access-{number}"
    conditions = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "metadata": {
            "name": f"web-{owner}-{number}",
            "namespace": f"team-{owner % 50}",
            "uid": f"{number:032x}",
            "resourceVersion": str(number + 1),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": f"web-{owner}", "pod-template-hash": "5c8"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": f"web-{owner}", "uid": f"owner-{owner}", "controller": True}],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {"f:phase": {}}}}],
        },
        "spec": {
            "schedulerName": "navarch",
            "nodeName": f"node-{number % nodes}",
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "containers": [
                {"name": "c", "image": "web", "resources": {"requests": _AMOUNTS}, "volumeMounts": [{"name": token}]},
            ],
            "volumes": [{"name": token, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        },
        "status": {
            "phase": "Running",
            "startTime": _SINCE,
            "conditions": [{"type": each, "status": "True", "lastTransitionTime": _SINCE} for each in conditions],
            "containerStatuses": [{"name": "c", "ready": True, "allocatedResources": _AMOUNTS, "resources": {"requests": _AMOUNTS}}],
        },
    }


class OneByOne(PodHandler):
    """The same handler without the way for whole lists."""

    added_all = None  # type: ignore[assignment]


def pages(pods: int, nodes: int) -> list[bytes]:
    """The pages of a list as an API server sends them."""
    every = range(0, pods, PAGE_SIZE)
    return [_page([pod(number, nodes) for number in range(start, min(start + PAGE_SIZE, pods))]) for start in every]


def _page(items: list[dict[str, Any]]) -> bytes:
    return msgspec.json.encode({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": items})


def read(kind: type[PodHandler], bodies: list[bytes], nodes: int) -> float:
    """Seconds of CPU."""
    policy = preset("navarch", installed().catalogue())
    core = LiveCore(settings_for(policy, ("navarch",)), lambda instruction: None)
    allocatable = requests_from({"cpu": "64", "memory": "256Gi", "pods": "110"})
    for number in range(nodes):
        core.cache.put(NodeSpec(f"node-{number}", allocatable=allocatable))
    handler = kind(core.cache, PODS, lambda *reported: None)
    store: ObjectStore[Pod] = ObjectStore(handler, objects=core.cache.pods)
    decoder = ObjectDecoder(Pod)
    gc.collect()
    started = process_time()
    for body in bodies:
        store.add(decoder.page(body, "pods"))
    return process_time() - started


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=5_000)
    given = parser.parse_args(arguments)
    collect_rarely()  # as `navarch run` does
    bodies = pages(given.pods, given.nodes)
    single = min(read(OneByOne, bodies, given.nodes) for _ in range(2)) / given.pods * 1e6
    listed = min(read(PodHandler, bodies, given.nodes) for _ in range(2)) / given.pods * 1e6
    what = f"read one of {given.pods:,} running pods"
    show("bench/cold", [Figure(what, listed, "us", TARGET, single, "one at a time", "CPU; less is better")])


if __name__ == "__main__":
    main()
