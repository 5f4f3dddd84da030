"""Which kinds are watched, and at which versions.

The list comes from the registry of APIs, so a new API is watched without a change here. Kinds that have no reader there
(`registry.KEPT`) are decoded to the few fields that scheduling reads (`kept_objects`).
"""

from __future__ import annotations

from msgspec import Struct

from navarch.apis.core.kept_objects import NAMESPACED, kept_struct
from navarch.apis.core.objects import KubeObject
from navarch.apis.dialect import Kind
from navarch.apis.registry import KEPT, KINDS
from navarch.apis.volcano.job_schedulers import KIND as POD_MAKERS
from navarch.kube.resources import Resource


class Watched(Struct, frozen=True):
    """`candidates` are versions of one kind in order of preference; `reader` None: handed on as a mapping."""

    kind: str
    candidates: tuple[Resource, ...]
    struct: type[KubeObject]
    reader: Kind | None = None
    optional: bool = True


_CORE = frozenset({"Node", "Namespace", "ResourceQuota", "PriorityClass", "PodDisruptionBudget"})
"""Served by every API server; without them nothing is decided."""

_SERVED: dict[str, tuple[str, tuple[str, ...], str]] = {
    "PersistentVolume": ("", ("v1",), "persistentvolumes"),
    "PersistentVolumeClaim": ("", ("v1",), "persistentvolumeclaims"),
    "Service": ("", ("v1",), "services"),
    "ReplicationController": ("", ("v1",), "replicationcontrollers"),
    "ReplicaSet": ("apps", ("v1",), "replicasets"),
    "StatefulSet": ("apps", ("v1",), "statefulsets"),
    "StorageClass": ("storage.k8s.io", ("v1",), "storageclasses"),
    "CSINode": ("storage.k8s.io", ("v1",), "csinodes"),
    "CSIDriver": ("storage.k8s.io", ("v1",), "csidrivers"),
    "CSIStorageCapacity": ("storage.k8s.io", ("v1",), "csistoragecapacities"),
    "VolumeAttachment": ("storage.k8s.io", ("v1",), "volumeattachments"),
    "ResourceClaim": ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "resourceclaims"),
    "ResourceSlice": ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "resourceslices"),
    "DeviceTaintRule": ("resource.k8s.io", ("v1", "v1beta2", "v1alpha3"), "devicetaintrules"),
    "DeviceClass": ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), "deviceclasses"),
    "HyperNode": ("topology.volcano.sh", ("v1alpha1",), "hypernodes"),
    "CompositePodGroup": ("scheduling.k8s.io", ("v1beta1", "v1alpha3"), "compositepodgroups"),
    "NodeShard": ("shard.volcano.sh", ("v1alpha1",), "nodeshards"),
}
"""Kept kind -> API group, versions and plural. ResourceClaimTemplates are not watched: a controller makes the claims, which are."""


def watched() -> list[Watched]:
    """Every kind but pods, in a fixed order: kinds that others refer to come first."""
    found: dict[tuple[str, str], Watched] = {}
    for (api_version, name), kind in KINDS.items():
        group, _, version = api_version.rpartition("/")
        resource = Resource(group, version, kind.plural, namespaced=kind.namespaced)
        before = found.get((group, name))
        candidates = (*before.candidates, resource) if before else (resource,)
        found[group, name] = Watched(name, candidates, kind.struct, kind, optional=name not in _CORE)
    jobs = (Resource("batch.volcano.sh", "v1alpha1", POD_MAKERS.plural),)
    found["batch.volcano.sh", POD_MAKERS.kind] = Watched(POD_MAKERS.kind, jobs, POD_MAKERS.struct, POD_MAKERS)
    for name in sorted(KEPT & _SERVED.keys()):
        group, versions, plural = _SERVED[name]
        if (group, name) not in found:
            candidates = tuple(Resource(group, version, plural, namespaced=name in NAMESPACED) for version in versions)
            found[group, name] = Watched(name, candidates, kept_struct(name), None)
    return list(found.values())
