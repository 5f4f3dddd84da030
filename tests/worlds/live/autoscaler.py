"""A small model of the Cluster Autoscaler: which pods may buy a node, and how many nodes they buy.

It follows what the Cluster Autoscaler reads: a pod counts if it has no node, is not being deleted, has no nominated node, and says
PodScheduled=False with the reason `Unschedulable`. Pods that fit onto the nodes that are there buy nothing; a nominated pod occupies
its node. It knows no gangs and no queues.
"""

from __future__ import annotations

from typing import Any

from tests.worlds.live.cluster import NODES, World
from tests.worlds.live.conditions import conditions

from navarch.kube.resources import PODS

Pod = dict[str, Any]


class ClusterAutoscaler:
    """`cpu`: the size of the nodes that it buys."""

    def __init__(self, world: World, cpu: int) -> None:
        self._world = world
        self._cpu = cpu
        self.bought = 0

    async def scan(self) -> int:
        """Look once, and buy what is needed. Returns how many nodes were bought so far."""
        pods = (await self._world.client.list(PODS, namespace=self._world.namespace)).items
        nodes = (await self._world.client.list(NODES)).items
        free = {node["metadata"]["name"]: int(node["status"]["allocatable"]["cpu"]) for node in nodes}
        for pod in pods:
            holds = pod["spec"].get("nodeName") or pod["status"].get("nominatedNodeName")
            if holds:
                free[holds] -= _cpus(pod)
        for pod in sorted(filter(may_buy, pods), key=_cpus, reverse=True):
            room = next((name for name, left in sorted(free.items()) if left >= _cpus(pod)), "")
            if not room:
                self.bought += 1
                room = f"bought-{self._world.namespace}-{self.bought}"
                await self._world.node(room, cpu=str(self._cpu))
                free[room] = self._cpu
            free[room] -= _cpus(pod)
        return self.bought


def may_buy(pod: Pod) -> bool:
    if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp") or pod["status"].get("nominatedNodeName"):
        return False
    told = conditions(pod).get("PodScheduled", {})
    return (told.get("status"), told.get("reason")) == ("False", "Unschedulable")


def _cpus(pod: Pod) -> int:
    return sum(int(container["resources"]["requests"]["cpu"]) for container in pod["spec"]["containers"])
