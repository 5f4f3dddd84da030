"""Volumes, claims on them, and what nodes can attach: the storage objects that scheduling reads, as values of the model.

A cluster's `objects` hold these kinds as decoded manifests; `read` functions make the values, which `typed.of_kind` keeps.
Absent differs from empty where the API means different things by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from navarch.model.quantity import parse_value
from navarch.model.selectors import read_label_selector, read_node_selector
from navarch.model.spec import NO_LABELS, Labels, LabelSelector, NodeTerm, nothing
from navarch.object_types import ReadOnlyManifest

CLAIM, VOLUME, STORAGE_CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass"
CSI_NODE, CSI_DRIVER, CSI_CAPACITY, ATTACHMENT = "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment"
WAIT_FOR_CONSUMER = "WaitForFirstConsumer"

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_MIGRATED_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins"
IN_TREE: Mapping[str, tuple[str, str, str]] = {
    "awsElasticBlockStore": ("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "volumeID"),
    "gcePersistentDisk": ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "pdName"),
    "azureDisk": ("kubernetes.io/azure-disk", "disk.csi.azure.com", "diskURI"),
    "cinder": ("kubernetes.io/cinder", "cinder.csi.openstack.org", "volumeID"),
    "portworxVolume": ("kubernetes.io/portworx-volume", "pxd.portworx.com", "volumeID"),
}
"""In-tree kind of a volume -> (provisioner, the CSI driver it became, the field that identifies the disk)."""
CSI_DRIVER_OF: Mapping[str, str] = {provisioner: driver for provisioner, driver, _ in IN_TREE.values()}


class ClaimSpec(Struct, frozen=True):
    namespace: str
    name: str
    uid: str = ""
    volume: str = ""
    phase: str = ""
    deleting: bool = False
    storage_class: str = ""
    requested: int | None = None
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    selector: LabelSelector | None = None
    bind_completed: bool = False
    selected_node: str | None = None
    owner_uid: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    @property
    def is_bound(self) -> bool:
        return bool(self.volume) and self.bind_completed


class VolumeSpec(Struct, frozen=True, eq=False):
    name: str
    capacity: int = 0
    storage_class: str = ""
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    claim: tuple[str, str, str] | None = None
    """(namespace, name, uid) of the claim it is kept for."""
    phase: str = ""
    deleting: bool = False
    labels: Labels = field(default_factory=nothing)
    node_affinity: tuple[NodeTerm, ...] | None = None
    csi: tuple[str, str] | None = None
    """(driver, handle)"""
    in_tree: tuple[str, str] | None = None
    """(kind, identity of the disk)"""


class StorageClassSpec(Struct, frozen=True):
    name: str
    provisioner: str = ""
    binding_mode: str | None = None
    topologies: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = ()
    """Any of these; each is AND of (label, allowed values)."""


class CSINodeSpec(Struct, frozen=True):
    name: str
    limits: tuple[tuple[str, int], ...] = ()
    migrated: frozenset[str] = frozenset()
    """In-tree plugins whose volumes the node attaches through CSI."""


class CSIDriverSpec(Struct, frozen=True):
    name: str
    tracks_capacity: bool = False


class CapacitySpec(Struct, frozen=True):
    """What a driver can still provide of a class where `topology` holds; None: nowhere. `largest` None: unusable."""

    storage_class: str
    topology: LabelSelector | None = None
    largest: int | None = None


class AttachmentSpec(Struct, frozen=True):
    attacher: str
    node: str
    volume: str = ""


def _meta(manifest: ReadOnlyManifest) -> ReadOnlyManifest:
    return manifest.get("metadata") or {}


def _spec(manifest: ReadOnlyManifest) -> ReadOnlyManifest:
    return manifest.get("spec") or {}


def _annotations(manifest: ReadOnlyManifest) -> ReadOnlyManifest:
    return _meta(manifest).get("annotations") or {}


def _class_name(manifest: ReadOnlyManifest) -> str:
    annotated = _annotations(manifest).get(_CLASS_ANNOTATION)
    return str(annotated if annotated is not None else _spec(manifest).get("storageClassName") or "")


def _size(quantity: Any) -> int | None:
    return None if quantity is None else parse_value(quantity)


def read_claim(manifest: ReadOnlyManifest) -> ClaimSpec:
    meta, spec, annotations = _meta(manifest), _spec(manifest), _annotations(manifest)
    owners = [owner for owner in meta.get("ownerReferences") or () if owner.get("controller")]
    return ClaimSpec(
        namespace=meta.get("namespace") or "default",
        name=meta.get("name") or "",
        uid=meta.get("uid") or "",
        volume=spec.get("volumeName") or "",
        phase=(manifest.get("status") or {}).get("phase") or "",
        deleting=meta.get("deletionTimestamp") is not None,
        storage_class=_class_name(manifest),
        requested=_size(((spec.get("resources") or {}).get("requests") or {}).get("storage")),
        access_modes=frozenset(spec.get("accessModes") or ()),
        volume_mode=spec.get("volumeMode") or "Filesystem",
        attributes_class=spec.get("volumeAttributesClassName") or "",
        selector=read_label_selector(spec.get("selector")),
        bind_completed="pv.kubernetes.io/bind-completed" in annotations,
        selected_node=annotations.get("volume.kubernetes.io/selected-node"),
        owner_uid=(owners[0].get("uid") or "") if owners else "",
    )


def read_volume(manifest: ReadOnlyManifest) -> VolumeSpec:
    meta, spec = _meta(manifest), _spec(manifest)
    reference, csi = spec.get("claimRef"), spec.get("csi")
    in_tree = next(((kind, spec[kind].get(field) or "") for kind, (_, _, field) in IN_TREE.items() if spec.get(kind)), None)
    affinity = spec.get("nodeAffinity") or {}
    claim = None
    if reference is not None:
        claim = (reference.get("namespace") or "", reference.get("name") or "", reference.get("uid") or "")
    return VolumeSpec(
        name=meta.get("name") or "",
        capacity=_size((spec.get("capacity") or {}).get("storage")) or 0,
        storage_class=_class_name(manifest),
        access_modes=frozenset(spec.get("accessModes") or ()),
        volume_mode=spec.get("volumeMode") or "Filesystem",
        attributes_class=spec.get("volumeAttributesClassName") or "",
        claim=claim,
        phase=(manifest.get("status") or {}).get("phase") or "",
        deleting=meta.get("deletionTimestamp") is not None,
        labels=meta.get("labels") or NO_LABELS,
        node_affinity=read_node_selector(affinity.get("required")),
        csi=(csi.get("driver") or "", csi.get("volumeHandle") or "") if csi else None,
        in_tree=in_tree,
    )


def read_storage_class(manifest: ReadOnlyManifest) -> StorageClassSpec:
    terms = manifest.get("allowedTopologies") or ()
    return StorageClassSpec(
        name=_meta(manifest).get("name") or "",
        provisioner=manifest.get("provisioner") or "",
        binding_mode=manifest.get("volumeBindingMode"),
        topologies=tuple(
            tuple((e.get("key") or "", tuple(e.get("values") or ())) for e in term.get("matchLabelExpressions") or ())
            for term in terms
        ),
    )


def read_csi_node(manifest: ReadOnlyManifest) -> CSINodeSpec:
    drivers = _spec(manifest).get("drivers") or ()
    counts = [(d.get("name") or "", (d.get("allocatable") or {}).get("count")) for d in drivers]
    migrated = str(_annotations(manifest).get(_MIGRATED_ANNOTATION) or "")
    return CSINodeSpec(
        name=_meta(manifest).get("name") or "",
        limits=tuple((name, int(count)) for name, count in counts if count is not None),
        migrated=frozenset(part for part in migrated.split(",") if part),
    )


def read_csi_driver(manifest: ReadOnlyManifest) -> CSIDriverSpec:
    return CSIDriverSpec(_meta(manifest).get("name") or "", bool(_spec(manifest).get("storageCapacity")))


def read_capacity(manifest: ReadOnlyManifest) -> CapacitySpec:
    largest = manifest.get("maximumVolumeSize", manifest.get("capacity"))
    topology = read_label_selector(manifest.get("nodeTopology"))
    return CapacitySpec(manifest.get("storageClassName") or "", topology, _size(largest))


def read_attachment(manifest: ReadOnlyManifest) -> AttachmentSpec:
    spec = _spec(manifest)
    volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
    return AttachmentSpec(spec.get("attacher") or "", spec.get("nodeName") or "", volume)
