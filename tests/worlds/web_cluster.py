"""A small cluster with GPUs for tests of the dashboard."""

from __future__ import annotations

from typing import Any, Final

from tests.worlds.live.cluster import NODES, QUEUES, World

from navarch.kube.resources import PODS

GPU: Final = "nvidia.com/gpu"


async def gpu_node(world: World, name: str, gpus: int, **labels: str) -> None:
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: str(gpus)}
    status = {"capacity": capacity, "allocatable": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
    await world.client.create(NODES, body)


async def gpu_pod(world: World, name: str, gpus: int, group: str, node: str = "", namespace: str = "", **spec: Any) -> None:
    body = world.pod_body(name, "1", group, "navarch", **({"nodeName": node} if node else {}), **spec)
    body["metadata"]["namespace"] = namespace or world.namespace
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
    await world.client.create(PODS, body, namespace=namespace or world.namespace)


async def queue(world: World, name: str, weight: int = 1) -> None:
    body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": weight}}
    await world.clusterwide(QUEUES, body)


async def small_cluster(world: World) -> None:
    """Two nodes of 8 GPUs; `held` holds 4 of each, `wide` waits for two pods of 8 GPUs each."""
    await queue(world, "research", 2)
    await gpu_node(world, "n1", 8, **{"topology.kubernetes.io/zone": "a"})
    await gpu_node(world, "n2", 8, **{"topology.kubernetes.io/zone": "b"})
    await world.group("held", 2, queue="research")
    for number in (1, 2):
        await gpu_pod(world, f"held-{number}", 4, "held", f"n{number}")
    await world.group("wide", 2, queue="research")
    for number in (1, 2):
        await gpu_pod(world, f"wide-{number}", 8, "wide", labels={"user": "jane"})
