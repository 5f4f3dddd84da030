"""Claims that wait for their first consumer, the embedded API server they live on, and a cache that sees what a test shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.worlds.live_parts.cluster_cache import SETTINGS, cache

from navarch.apis.core.nodes import Node, read_node
from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.embedded.api.server import ApiServer
from navarch.engine.policy import load
from navarch.installed import installed
from navarch.kube.client import Client, PatchType
from navarch.kube.connect import connect
from navarch.kube.resources import Resource
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cycle import run_cycle
from navarch.live.prebind.volumes import Volumes
from navarch.model.spec import ObjectSpec

Object = dict[str, Any]
POLICY = {"actions": "allocate, backfill", "tiers": [{"plugins": [{"name": "predicates"}]}]}
CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False)
CLAIMS = Resource("", "v1", "persistentvolumeclaims")
VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)
HOST = "kubernetes.io/hostname"


def storage_class(provisioner: str = "example.com/disks") -> Object:
    return {
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name: str, **metadata: Any) -> Object:
    spec = {"storageClassName": "late", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default", **metadata}, "spec": spec}


def bound(found: Object, volume: str) -> Object:
    """What the volume controller makes of a claim."""
    annotations = {**found["metadata"].get("annotations", {}), "pv.kubernetes.io/bind-completed": "yes"}
    return {**found, "metadata": {**found["metadata"], "annotations": annotations}, "spec": {**found["spec"], "volumeName": volume}}


def volume(name: str, *nodes: str, key: str = HOST, **spec: Any) -> Object:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(nodes)}]}
    made = {
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        **({"hostPath": {"path": "/tmp"}} if "awsElasticBlockStore" not in spec else {}),
        **spec,
    }
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": made, "status": {"phase": "Available"}}


class Seen:
    """A cache with nodes, what it is shown, and the step that prepares volumes for what its cycles decide."""

    def __init__(
        self,
        client: Client,
        *nodes: str,
        timeout: float = 600.0,
        progress: Callable[[AssumedBind], None] = lambda bind: None,
    ) -> None:
        self.volumes: Volumes
        self.cache: ClusterCache = cache(on_volumes_changed=lambda: self.volumes.look())[0]
        for name in nodes or ("n0",):
            manifest = {"metadata": {"name": name, "labels": {HOST: name}}, "status": {"allocatable": {"cpu": "8", "pods": "10"}}}
            self.cache.put(read_node(from_manifest(manifest, Node), SETTINGS))
        self.volumes = Volumes(client, self.cache, timeout, progress)

    def shows(self, *manifests: Object) -> None:
        for manifest in manifests:
            meta = manifest["metadata"]
            self.cache.put(ObjectSpec(manifest["kind"], meta.get("namespace", ""), meta["name"], manifest))

    def pod(self, name: str, *claims: str) -> None:
        volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
        container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
        spec = {"schedulerName": "navarch", "containers": [container], "volumes": volumes}
        meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        self.cache.put_pod(from_manifest({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}, Pod))

    def decide(self) -> list[AssumedBind]:
        registry = installed()
        cycle = run_cycle(self.cache.cluster, load(POLICY, registry.catalogue(), "test"), registry, 0.0, 1, "c")
        self.volumes.plan(cycle)
        made = []
        for each in cycle.record.binds:
            bind = AssumedBind(each.uid, "default", each.uid.removeprefix("uid-"), each.node, each.job, 0.0)
            self.cache.assumed.binds[each.uid] = bind
            self.cache.refresh(each.uid)
            made.append(bind)
        return made

    def seen(self, kind: str, name: str) -> Object:
        """As cycles see it."""
        found: Object = self.cache.cluster.objects[kind]["" if kind == "PersistentVolume" else "default", name]
        return found


class Store:
    """The API server's side."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def make(self, manifest: Object) -> Object:
        """Create it, with its status."""
        resource = {"PersistentVolume": VOLUMES, "StorageClass": CLASSES}.get(manifest["kind"], CLAIMS)
        namespace = "default" if resource is CLAIMS else None
        made: Object = await self.client.create(resource, manifest, namespace=namespace)
        if manifest["kind"] == "PersistentVolume":
            made = await self.client.patch(resource, made["metadata"]["name"], manifest, PatchType.MERGE, subresource="status")
        return made

    async def claim(self, name: str) -> Object:
        return await self.client.get(CLAIMS, name, namespace="default")

    async def volume(self, name: str) -> Object:
        return await self.client.get(VOLUMES, name)

    async def change(self, resource: Resource, name: str, body: Object) -> Object:
        namespace = "default" if resource is CLAIMS else None
        made: Object = await self.client.patch(resource, name, body, PatchType.MERGE, namespace=namespace)
        return made


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Store]:
    async with ApiServer() as server, Client(connect(server.kubeconfig(folder / "kubeconfig"))) as client:
        yield Store(client)
