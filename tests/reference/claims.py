"""Persistent volume claims of a pod, and the lookups that the four volume plugins share."""

from __future__ import annotations

from typing import NamedTuple

from tests.reference.cluster import Cluster, Object, annotations_of, name_of, namespace_of

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class ClaimUse(NamedTuple):
    name: str
    ephemeral: bool


def claim_of_volume(pod: Object, volume: Object) -> ClaimUse | None:
    """Presence decides, also of an empty object."""
    if volume.get("persistentVolumeClaim") is not None:
        return ClaimUse(volume["persistentVolumeClaim"].get("claimName") or "", False)
    if volume.get("ephemeral") is not None:
        return ClaimUse(f"{name_of(pod)}-{volume['name']}", True)
    return None


def volumes_of(pod: Object) -> list[Object]:
    return pod["spec"].get("volumes") or []


def claims_of(pod: Object) -> list[ClaimUse]:
    found = [claim_of_volume(pod, volume) for volume in volumes_of(pod)]
    return [claim for claim in found if claim is not None]


def find_claim(cluster: Cluster, pod: Object, claim: ClaimUse) -> Object | None:
    return cluster.find("PersistentVolumeClaim", claim.name, namespace_of(pod))


def claim_missing(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def class_name(claim_or_volume: Object) -> str:
    annotated = annotations_of(claim_or_volume).get(CLASS_ANNOTATION)
    return annotated if annotated is not None else claim_or_volume["spec"].get("storageClassName") or ""


def ownership_problem(pod: Object, claim: Object) -> str:
    """Empty when the claim of a generic ephemeral volume belongs to this pod."""
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("uid") == pod["metadata"].get("uid"):
            return ""
    return f"PVC {namespace_of(claim)}/{name_of(claim)} was not created for pod {namespace_of(pod)}/{name_of(pod)} (pod is not owner)"
