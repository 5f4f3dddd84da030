"""A hollow cluster without HTTP in the loop's own (virtual) time, for tests of kubelets and controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from navarch.embedded.api.bootstrap import bootstrap
from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.kinds.crds import CustomKinds
from navarch.embedded.api.kinds.registry import Registry
from navarch.embedded.api.operations import Operations
from navarch.embedded.api.subresources.binding import bind
from navarch.embedded.controllers.housekeeping import Housekeeping
from navarch.embedded.hollow_cluster import HollowCluster
from navarch.embedded.kubelets.pod_behaviour import KubeletOptions
from navarch.embedded.node_sets import NodeSet
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import Store

Manifest = dict[str, Any]
EPOCH = 1_800_000_000.0


class World:
    """`async with World() as world:` gives a running cluster; `await world.until(...)` waits for a change, not for time."""

    def __init__(self, *, speed: float = 1.0, options: KubeletOptions | None = None, placing: bool = False) -> None:
        loop = asyncio.get_running_loop()
        self.store = Store(clock=lambda: EPOCH + loop.time())
        self.operations = Operations(self.store, Registry())
        CustomKinds(self.operations)
        self.housekeeping = Housekeeping(self.operations)
        self.hollow = HollowCluster(self.operations, speed=speed, options=options)
        self.hollow.timers.spent = lambda: 0.0  # or the speed of this machine, and its collector of garbage, would be in the times
        self.placing = placing

    async def __aenter__(self) -> World:
        self.housekeeping.start()
        bootstrap(self.operations)
        self.hollow.start()
        if self.placing:
            self.store.subscribe("pods", lambda event: self._place(event.record) if event.type == "ADDED" else None)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.hollow.stop()
        await self.housekeeping.stop()
        await self.store.close()

    def _place(self, pod: Record) -> None:
        """The simplest of schedulers: the pinned node, or the first."""
        terms = pod.obj["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
        pinned = [f["values"][0] for t in terms.get("nodeSelectorTerms", ()) for f in t.get("matchFields", ())]
        if not pod.obj["spec"].get("nodeName"):
            self.bind(pod.name, pinned[0] if pinned else self.store.list("nodes")[0].name, pod.namespace)

    def nodes(self, count: int = 1, **shape: Any) -> list[str]:
        manifests = list(NodeSet(count=count, **shape).manifests())
        self.hollow.add_nodes(manifests)
        return [each["metadata"]["name"] for each in manifests]

    def create(self, obj: Manifest, namespace: str = "default") -> Record:
        group = obj["apiVersion"].rpartition("/")[0]
        plural = {"NodeSet": "nodesets"}.get(obj["kind"], obj["kind"].lower() + "s")
        kind = self.operations.kind(f"{plural}.{group}" if group else plural)
        obj = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "namespace"}}
        return self.operations.create(kind, namespace if kind.namespaced else "", obj)

    def bind(self, pod: str, node: str, namespace: str = "default") -> None:
        bind(self.store, namespace, pod, {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}})

    def delete(self, resource: str, name: str, namespace: str = "default", **options: Any) -> None:
        kind = self.operations.kind(resource)
        self.operations.delete(kind, namespace if kind.namespaced else "", name, DeleteOptions(**options))

    def patch(self, resource: str, name: str, change: Callable[[Manifest], Any], namespace: str = "default") -> None:
        kind = self.operations.kind(resource)

        def changed(obj: Manifest) -> Manifest:
            change(obj)
            return obj

        self.operations.modify(kind, namespace if kind.namespaced else "", name, changed)

    def get(self, resource: str, name: str, namespace: str = "default") -> Manifest:
        kind = self.operations.kind(resource)
        return self.store.get(resource, namespace if kind.namespaced else "", name).decode()

    def pods(self, phase: str = "", namespace: str = "default") -> list[Manifest]:
        found = [record.decode() for record in self.store.list("pods", namespace)]
        return [pod for pod in found if not phase or pod["status"]["phase"] == phase]

    def phase(self, pod: str) -> str:
        return str(self.get("pods", pod)["status"].get("phase"))

    async def settle(self) -> None:
        """Let everything that is due now happen."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def until(self, holds: Callable[[], Any], within: float = 3600.0) -> None:
        """Wait for changes until a condition holds; it fails when the time (virtual) is over."""
        watches = [self.store.watch(resource, since=self.store.revision or 1) for resource in self.store.resources()]
        try:
            async with asyncio.timeout(within):
                while not holds():
                    await _first(watch.batch() for watch in watches)
        finally:
            for watch in watches:
                watch.close()


async def _first(waits: Iterable[Any]) -> None:
    tasks = [asyncio.ensure_future(each) for each in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
