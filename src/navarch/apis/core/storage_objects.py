"""Volumes, claims and objects of CSI drivers as the API defines them. The Structs only check types; plugins read the manifests."""

from __future__ import annotations

from navarch.apis.core.objects import Int32, KubeObject, LabelSelectorPart, Part, Quantity, ResourceList
from navarch.apis.core.pod_objects import NodeSelector


class Resources(Part, frozen=True):
    requests: ResourceList | None = None


class Status(Part, frozen=True):
    phase: str | None = None


class ClaimPart(Part, frozen=True):
    access_modes: tuple[str, ...] | None = None
    resources: Resources | None = None
    selector: LabelSelectorPart | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None


class PersistentVolumeClaim(KubeObject, frozen=True):
    spec: ClaimPart | None = None
    status: Status | None = None


class ClaimReference(Part, frozen=True):
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class CsiVolume(Part, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class VolumeAffinity(Part, frozen=True):
    required: NodeSelector | None = None


class VolumePart(Part, frozen=True):
    access_modes: tuple[str, ...] | None = None
    capacity: ResourceList | None = None
    claim_ref: ClaimReference | None = None
    csi: CsiVolume | None = None
    node_affinity: VolumeAffinity | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None


class PersistentVolume(KubeObject, frozen=True):
    spec: VolumePart | None = None
    status: Status | None = None


class TopologyRequirement(Part, frozen=True):
    key: str = ""
    values: tuple[str, ...] | None = None


class TopologyTerm(Part, frozen=True):
    match_label_expressions: tuple[TopologyRequirement, ...] | None = None


class StorageClass(KubeObject, frozen=True):
    allowed_topologies: tuple[TopologyTerm, ...] | None = None
    provisioner: str | None = None
    volume_binding_mode: str | None = None


class AttachLimit(Part, frozen=True):
    count: Int32 | None = None


class NodeDriver(Part, frozen=True):
    name: str = ""
    allocatable: AttachLimit | None = None
    topology_keys: tuple[str, ...] | None = None


class NodeDrivers(Part, frozen=True):
    drivers: tuple[NodeDriver, ...] | None = None


class CSINode(KubeObject, frozen=True):
    spec: NodeDrivers | None = None


class DriverPart(Part, frozen=True):
    attach_required: bool | None = None
    storage_capacity: bool | None = None


class CSIDriver(KubeObject, frozen=True):
    spec: DriverPart | None = None


class CSIStorageCapacity(KubeObject, frozen=True):
    capacity: Quantity = None
    maximum_volume_size: Quantity = None
    node_topology: LabelSelectorPart | None = None
    storage_class_name: str | None = None


class AttachedVolume(Part, frozen=True):
    persistent_volume_name: str | None = None


class AttachmentPart(Part, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachedVolume | None = None


class VolumeAttachment(KubeObject, frozen=True):
    spec: AttachmentPart | None = None


CHECKED: tuple[type[KubeObject], ...] = (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
"""Each class has the name of its kind."""
