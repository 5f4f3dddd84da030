"""The storage objects of a snapshot, and the claims of a pod among them: what the four volume rules share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from navarch.engine.node_functions import Rejection, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.objects import storage
from navarch.model.objects.storage import ClaimSpec, CSINodeSpec, StorageClassSpec, VolumeSpec
from navarch.model.objects.typed import of_kind
from navarch.model.snapshot import Snapshot
from navarch.object_types import ObjectKey


def claims(snapshot: Snapshot) -> Mapping[ObjectKey, ClaimSpec]:
    return of_kind(snapshot, storage.CLAIM, storage.read_claim, namespaced=True)


def volumes(snapshot: Snapshot) -> Mapping[ObjectKey, VolumeSpec]:
    return of_kind(snapshot, storage.VOLUME, storage.read_volume)


def storage_classes(snapshot: Snapshot) -> Mapping[ObjectKey, StorageClassSpec]:
    return of_kind(snapshot, storage.STORAGE_CLASS, storage.read_storage_class)


def csi_nodes(snapshot: Snapshot) -> Mapping[ObjectKey, CSINodeSpec]:
    return of_kind(snapshot, storage.CSI_NODE, storage.read_csi_node)


def versions(snapshot: Snapshot, *kinds: str) -> Hashable:
    """Equal as long as no object of these kinds changed."""
    return tuple(snapshot.versions.get(kind, 0) for kind in kinds)


def find_claim(snapshot: Snapshot, namespace: str, name: str) -> ClaimSpec | None:
    return claims(snapshot).get((namespace, name))


def unusable(problem: str, *, error: bool = False) -> Rejection:
    """What no node can help with: a claim, a volume or a storage class has to change."""
    return Rejection(problem, error=error, undone_by=(Event.VOLUME_CHANGED,), reason="VolumeUnusable")


def missing(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def ownership_problem(session: Session, task: TaskClass, claim: ClaimSpec) -> str:
    """Empty when the claim of a generic ephemeral volume belongs to the pod. Such a pod is alone in its class."""
    pod = session.task(task.task)
    if claim.owner_uid and claim.owner_uid == pod.uid:
        return ""
    return f"PVC {claim.namespace}/{claim.name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
