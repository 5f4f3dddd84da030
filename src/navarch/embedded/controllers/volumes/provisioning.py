"""Hollow provisioning: the volume that a storage class's provisioner would make for a claim, or why it would make none.

Every provisioner is played here, so that manifests written for some cloud run; only `kubernetes.io/no-provisioner` makes nothing.
Where the class names topologies, the volume can be reached from there only: from all of them, or from that of the chosen node.
"""

from __future__ import annotations

from collections.abc import Sequence

from navarch.embedded.api.operations import Operations
from navarch.embedded.storage.record import Record
from navarch.model.objects.storage import ClaimSpec, StorageClassSpec, read_storage_class
from navarch.model.spec import Labels
from navarch.object_types import Manifest

CLASSES = "storageclasses.storage.k8s.io"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
STANDARD: Manifest = {
    "metadata": {"name": "standard", "annotations": {IS_DEFAULT: "true"}},
    "provisioner": "navarch.io/hollow",
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowVolumeExpansion": True,
}


def ensure_standard_class(operations: Operations) -> None:
    """The default class of a cluster that has no class yet."""
    if not operations.store.count(CLASSES):
        operations.create(operations.kind(CLASSES), "", STANDARD)


def refusal(claim: ClaimSpec, found: StorageClassSpec | None, labels: Labels | None) -> str:
    """Why no volume can be made; `labels` are those of the chosen node, if one was chosen."""
    if found is None:
        return f'storageclass.storage.k8s.io "{claim.storage_class}" not found'
    if found.provisioner == NO_PROVISIONER:
        return f"no volume plugin matched name: {NO_PROVISIONER}"
    if claim.selector is not None:
        return "claim Selector is not supported"
    if labels is not None and found.topologies and _term_at(found, labels) is None:
        return f'node "{claim.selected_node}" is in none of the allowedTopologies of storage class "{found.name}"'
    return ""


def provisioned(claim: ClaimSpec, record: Record, storage_class: Manifest, labels: Labels | None) -> Manifest:
    """The volume, kept for its claim from the start."""
    found = read_storage_class(storage_class)
    asked = record.obj["spec"]
    name = f"pvc-{claim.uid}"
    spec: Manifest = {
        "capacity": {"storage": asked["resources"]["requests"]["storage"]},
        "accessModes": list(asked["accessModes"]),
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": found.name,
        "volumeMode": claim.volume_mode,
        "csi": {"driver": found.provisioner, "volumeHandle": name},
        "claimRef": reference(record),
    }
    for key, value in (
        ("mountOptions", storage_class.get("mountOptions")),
        ("volumeAttributesClassName", claim.attributes_class),
        ("nodeAffinity", _affinity(found, labels)),
    ):
        if value:
            spec[key] = value
    return {"metadata": {"name": name, "annotations": {PROVISIONED_BY: found.provisioner}}, "spec": spec}


def reference(claim: Record) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": str(claim.revision),
    }


Term = tuple[tuple[str, tuple[str, ...]], ...]


def _term_at(found: StorageClassSpec, labels: Labels) -> Term | None:
    """The first term that a node is in, with that node's own values. A term without expressions holds nowhere."""
    for term in found.topologies:
        if term and all(labels.get(key) in values for key, values in term):
            return tuple((key, (labels[key],)) for key, _ in term)
    return None


def _affinity(found: StorageClassSpec, labels: Labels | None) -> Manifest | None:
    terms: Sequence[Term] = [term for term in found.topologies if term]
    if labels is not None:
        here = _term_at(found, labels)
        terms = [here] if here is not None else []
    if not terms:
        return None
    return {
        "required": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)} for key, values in term]}
                for term in terms
            ]
        }
    }
