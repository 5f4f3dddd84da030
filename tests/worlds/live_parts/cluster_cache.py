"""A cluster cache and the objects that tests put into it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from navarch.apis.core.nodes import Node, read_node
from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.volcano.podgroups import PodGroup, read_pod_group
from navarch.engine.reasons import Event
from navarch.live.cache.assumed_pods import AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache

SETTINGS = Settings()


class Heard:
    def __init__(self) -> None:
        self.notices: list[tuple[Event, str, bool]] = []

    def __call__(self, event: Event, job: str = "", *, urgent: bool = True, freed: object = None) -> None:
        self.notices.append((event, job, urgent))


def cache(assumed: AssumedPods | None = None, settings: Settings = SETTINGS, **callbacks: Any) -> tuple[ClusterCache, Heard]:
    """`callbacks` as `ClusterCache` takes them."""
    heard = Heard()
    made = ClusterCache(settings, AssumedPods() if assumed is None else assumed, heard, **callbacks)
    return made, heard


def pod(name: str, node: str = "", phase: str = "Pending", group: str = "", cpu: str = "1", scheduler: str = "navarch") -> Pod:
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if group:
        metadata["annotations"] = {"scheduling.k8s.io/group-name": group}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec: dict[str, Any] = {"schedulerName": scheduler, "containers": [container]}
    if node:
        spec["nodeName"] = node
        metadata["labels"] = {"topology.kubernetes.io/zone": f"zone of {node}"}  # as the API server does at binding
    return from_manifest({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, Pod)


def node(name: str, cpu: str = "4") -> Any:
    capacity = {"cpu": cpu, "pods": "10"}
    return read_node(from_manifest({"metadata": {"name": name}, "status": {"allocatable": capacity}}, Node), SETTINGS)


def group(name: str, members: int, **more: Any) -> Any:
    manifest = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": {"minMember": members, **more}}
    return read_pod_group(from_manifest(manifest, PodGroup), SETTINGS)


def put(made: ClusterCache, found: Pod) -> None:
    """As the informer does it: the store first, then the handler with what was there before."""
    key = (found.metadata.namespace or "", found.metadata.name)
    old = made.pods.get(key)
    made.pods[key] = found
    made.put_pod(found, old)


def figures(made: ClusterCache) -> dict[str, Any]:
    cluster = made.cluster
    snapshot = cluster.snapshot()
    names = list(snapshot.resource_names)

    def column(values: Any, row: int) -> dict[str, int]:
        return {name: int(values[i, row]) for i, name in enumerate(names) if values[i, row]}

    return {
        "nodes": {
            name: (column(snapshot.nodes.allocatable, i), column(snapshot.nodes.used, i), column(snapshot.nodes.releasing, i))
            for i, name in enumerate(snapshot.nodes.names)
        },
        "jobs": {
            key: (cluster.jobs.specs[row], cluster.jobs.counts[row].tolist(), column(cluster.jobs.allocated, row))
            for key, row in cluster.jobs.rows.of.items()
        },
        "tasks": {uid: cluster.tasks.specs[row] for uid, row in cluster.tasks.rows.of.items()},
        "queues": dict(cluster.queues),
    }


names = st.sampled_from("abcd")
