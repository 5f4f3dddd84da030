"""Priority classes for live tests."""

from __future__ import annotations

from functools import partial

from tests.worlds.live.cluster import World

from navarch.kube.errors import Forbidden
from navarch.kube.resources import PODS, Resource

CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)


async def classes(world: World) -> None:
    for name, value in (("low", 10), ("high", 1000)):
        made = f"{name}-{world.namespace}"
        await world.clusterwide(CLASSES, {"metadata": {"name": made}, "value": value})
        await world.eventually(partial(_takes, world, made), bool)


async def _takes(world: World, priority_class: str) -> bool:
    """Admission knows a class from a watch of its own, and forbids pods of one that it has not seen yet."""
    pod = world.pod_body("of-a-class", "1", "", "nobody", priorityClassName=priority_class)
    try:
        await world.client.create(PODS, pod, namespace=world.namespace, dry_run=True)
    except Forbidden:
        return False
    return True
