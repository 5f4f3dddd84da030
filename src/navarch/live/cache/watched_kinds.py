"""Which kinds are watched, at which versions, and the fields that are kept of those which plugins read as manifests.

The list comes from the dialects' registry, so a new dialect is watched without a word here. Kinds that have no reader there
(`registry.KEPT`) are decoded to the few fields that scheduling reads and handed on as plain mappings.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from navarch.apis.core.objects import KubeObject, Part
from navarch.apis.dialect import Kind
from navarch.apis.registry import KEPT, KINDS
from navarch.apis.volcano.job_schedulers import KIND as POD_MAKERS
from navarch.kube.client import Client
from navarch.kube.resources import Resource


class Manifest(KubeObject, frozen=True):
    """A storage, device or topology object: all top-level fields that any of those kinds has."""

    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
    provisioner: str | None = None
    parameters: dict[str, str] | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[Any] | None = None
    storage_class_name: str | None = None
    capacity: Any = None
    maximum_volume_size: Any = None
    node_topology: dict[str, Any] | None = None


class SelectorPart(Part, frozen=True):
    selector: Any = None
    type: str | None = None


class Selecting(KubeObject, frozen=True):
    """A Service or a workload: only whom it selects. Its template would fill the memory and nobody reads it."""

    spec: SelectorPart = SelectorPart()


class Watched(Struct, frozen=True):
    """`candidates` are versions of one kind in order of preference; `reader` None: handed on as a mapping."""

    kind: str
    candidates: tuple[Resource, ...]
    struct: type[KubeObject]
    reader: Kind | None = None
    optional: bool = True


_CORE = frozenset({"Node", "Namespace", "ResourceQuota", "PriorityClass", "PodDisruptionBudget"})
"""Served by every API server: without them nothing is decided."""

_KEPT: dict[str, tuple[str, tuple[str, ...], str, bool, type[KubeObject]]] = {
    "PersistentVolume": ("", ("v1",), "persistentvolumes", False, Manifest),
    "PersistentVolumeClaim": ("", ("v1",), "persistentvolumeclaims", True, Manifest),
    "Service": ("", ("v1",), "services", True, Selecting),
    "ReplicationController": ("", ("v1",), "replicationcontrollers", True, Selecting),
    "ReplicaSet": ("apps", ("v1",), "replicasets", True, Selecting),
    "StatefulSet": ("apps", ("v1",), "statefulsets", True, Selecting),
    "StorageClass": ("storage.k8s.io", ("v1",), "storageclasses", False, Manifest),
    "CSINode": ("storage.k8s.io", ("v1",), "csinodes", False, Manifest),
    "CSIDriver": ("storage.k8s.io", ("v1",), "csidrivers", False, Manifest),
    "CSIStorageCapacity": ("storage.k8s.io", ("v1",), "csistoragecapacities", True, Manifest),
    "VolumeAttachment": ("storage.k8s.io", ("v1",), "volumeattachments", False, Manifest),
    "ResourceClaim": ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "resourceclaims", True, Manifest),
    "ResourceSlice": ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "resourceslices", False, Manifest),
    "DeviceClass": ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "deviceclasses", False, Manifest),
    "HyperNode": ("topology.volcano.sh", ("v1alpha1",), "hypernodes", False, Manifest),
    "NodeShard": ("shard.volcano.sh", ("v1alpha1",), "nodeshards", False, Manifest),
    "Numatopology": ("nodeinfo.volcano.sh", ("v1alpha1",), "numatopologies", False, Manifest),
}
"""Where each kept kind is served. Templates of claims are not here: a controller makes the claims, and those we watch."""


def watched() -> list[Watched]:
    """Every kind but pods, in an order that does not change: what others refer to comes first."""
    found: dict[tuple[str, str], Watched] = {}
    for (api_version, name), kind in KINDS.items():
        group, _, version = api_version.rpartition("/")
        resource = Resource(group, version, kind.plural, namespaced=kind.namespaced)
        before = found.get((group, name))
        candidates = (*before.candidates, resource) if before else (resource,)
        found[group, name] = Watched(name, candidates, kind.struct, kind, optional=name not in _CORE)
    jobs = (Resource("batch.volcano.sh", "v1alpha1", POD_MAKERS.plural),)
    found["batch.volcano.sh", POD_MAKERS.kind] = Watched(POD_MAKERS.kind, jobs, POD_MAKERS.struct, POD_MAKERS)
    for name in sorted(KEPT & _KEPT.keys()):
        group, versions, plural, namespaced, struct = _KEPT[name]
        if (group, name) not in found:
            candidates = tuple(Resource(group, version, plural, namespaced=namespaced) for version in versions)
            found[group, name] = Watched(name, candidates, struct, None)
    return list(found.values())


async def choose(client: Client, kind: Watched) -> Resource:
    """The version to watch: the first that is served, else the first (which is then waited for)."""
    if len(kind.candidates) == 1:
        return kind.candidates[0]
    return await client.discovery.first_served(kind.candidates) or kind.candidates[0]
