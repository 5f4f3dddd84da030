"""What differs from kind to kind when an object is created or updated, beyond defaults and validation.

The server owns some parts of an object: a client that creates a pod cannot set its status, an update of the spec cannot
change the status nor the other way round. `prepare_create` and `prepare_update` enforce that.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from copy import deepcopy

from navarch.apis.admission.admission import default_tolerations
from navarch.apis.admission.workload_defaults import TEMPLATE_GENERATION
from navarch.embedded.api.kinds.normalise import Normaliser
from navarch.embedded.api.kinds.registry import Kind
from navarch.model.label_syntax import parse_int64
from navarch.object_types import Manifest

KEEPS_STATUS_ON_CREATE = frozenset({"nodes", "events"})
SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
RETURNS_DELETED = frozenset(
    {
        "pods", "persistentvolumes", "persistentvolumeclaims", "serviceaccounts", "services", "resourcequotas",
        "namespaces", "podtemplates", "storageclasses.storage.k8s.io", "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io", "volumeattachments.storage.k8s.io", "volumeattributesclasses.storage.k8s.io",
        "deviceclasses.resource.k8s.io", "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
    }
)  # fmt: skip
"""Kinds whose DELETE answers with the object and not with a Status."""


def prepare_create(kind: Kind, obj: Manifest) -> None:
    """Take away what clients may not set. Changes the object."""
    metadata = obj["metadata"]
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"):
        metadata.pop(name, None)
    if kind.counts_generations:
        metadata["generation"] = 1
    if kind.has_status and kind.resource not in KEEPS_STATUS_ON_CREATE:
        if kind.is_custom:
            obj.pop("status", None)
        elif "status" in obj:
            obj["status"] = Normaliser().zero(kind.shape.fields["status"])
    if kind.resource == "secrets":
        _secret(obj)


def generate(kind: Kind, obj: Manifest) -> None:
    """Add what the server itself decides of a new object and no client owns. Changes the object; its uid is set."""
    change = ON_CREATE.get(kind.resource)
    if change is not None:
        change(obj)


def prepare_update(kind: Kind, obj: Manifest, old: Manifest, subresource: str) -> None:
    """Keep what this endpoint may not change as it was. Changes `obj`."""
    if subresource in PARTS:
        PARTS[subresource](obj, old)
    metadata, before = obj["metadata"], old["metadata"]
    if subresource == "status":
        _only_status(kind, obj, old)
        metadata = obj["metadata"]
    elif kind.has_status:
        if "status" in old:
            obj["status"] = old["status"]
        else:
            obj.pop("status", None)
    for name in SERVER_OWNED:
        if name in before:
            metadata[name] = before[name]
        else:
            metadata.pop(name, None)
    if kind.counts_generations and _spec(obj) != _spec(old):
        metadata["generation"] = before.get("generation", 0) + 1
    if not subresource:
        change = ON_UPDATE.get(kind.resource)
        if change is not None:
            change(obj, old)


def _spec(obj: Manifest) -> Manifest:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status", "apiVersion", "kind")}


def _only_status(kind: Kind, obj: Manifest, old: Manifest) -> None:
    if kind.is_custom:
        metadata = dict(old["metadata"])
        if "managedFields" in obj["metadata"]:
            metadata["managedFields"] = obj["metadata"]["managedFields"]
        obj["metadata"] = metadata
    for key in [key for key in obj if key not in ("metadata", "status", "apiVersion", "kind")]:
        if key not in old:
            del obj[key]
    for key, value in old.items():
        if key not in ("metadata", "status"):
            obj[key] = value
    if kind.resource == "pods":
        _keep(obj["metadata"], old["metadata"], "ownerReferences")
    elif kind.resource == "deployments.apps":
        _keep(obj["metadata"], old["metadata"], "labels")


def _keep(metadata: Manifest, before: Manifest, name: str) -> None:
    if name in before:
        metadata[name] = before[name]
    else:
        metadata.pop(name, None)


def _namespace(obj: Manifest) -> None:
    obj["spec"] = {"finalizers": ["kubernetes"]}
    obj["status"] = {"phase": "Active"}
    obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]


def _namespace_update(obj: Manifest, old: Manifest) -> None:
    obj["spec"] = old.get("spec", {})


def _job(obj: Manifest) -> None:
    """A job selects its pods by its own uid, unless its author selects them by hand."""
    spec = obj["spec"]
    if spec.get("manualSelector"):
        return
    uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    metadata = spec.setdefault("template", {}).setdefault("metadata", {})
    labels = metadata.setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels[f"{prefix}controller-uid"] = uid
        labels[f"{prefix}job-name"] = name
    if not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def _job_update(obj: Manifest, old: Manifest) -> None:
    """A client may send back the manifest it wrote: what the server generated into it stays."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    if spec.get("manualSelector"):
        return
    if before.get("selector") is not None:
        spec.setdefault("selector", before["selector"])
    old_labels = ((before.get("template") or {}).get("metadata") or {}).get("labels") or {}
    for key in ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"):
        if key in old_labels:
            metadata = spec.setdefault("template", {}).setdefault("metadata", {})
            metadata.setdefault("labels", {}).setdefault(key, old_labels[key])


def _service(obj: Manifest) -> None:
    """An address of the cluster's range, from the uid: no two are likely to meet, and none is ever reached."""
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return
    if not spec.get("clusterIP"):
        number = int(obj["metadata"]["uid"][:8], 16) % 65000 + 100
        spec["clusterIP"] = f"10.96.{number // 256}.{number % 256}"
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _protect(finalizer: str) -> Callable[[Manifest], None]:
    """Kinds that may not go while something uses them (`protection` takes the finalizer off)."""

    def change(obj: Manifest) -> None:
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if finalizer not in finalizers:
            finalizers.append(finalizer)

    return change


def _volume(obj: Manifest) -> None:
    _protect("kubernetes.io/pv-protection")(obj)
    obj["status"].setdefault("lastPhaseTransitionTime", obj["metadata"]["creationTimestamp"])


def _service_update(obj: Manifest, old: Manifest) -> None:
    """A service keeps the address it was given."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if key in before:
            spec.setdefault(key, before[key])


def _secret(obj: Manifest) -> None:
    for key, text in (obj.pop("stringData", None) or {}).items():
        obj.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def _secret_update(obj: Manifest, old: Manifest) -> None:
    _secret(obj)


def _pod_update(obj: Manifest, old: Manifest) -> None:
    """A pod keeps the priority that admission gave it, also when a client sends its first manifest again."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    for key in ("priority", "preemptionPolicy", "priorityClassName"):
        if key in before:
            spec.setdefault(key, before[key])
    default_tolerations(spec)


def _daemon_set_update(obj: Manifest, old: Manifest) -> None:
    """The old count of template changes, kept as an annotation."""
    count = parse_int64((old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION) or "1") or 1
    changed = (obj.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template")
    obj["metadata"].setdefault("annotations", {})[TEMPLATE_GENERATION] = str(count + changed)


def _only_resources(obj: Manifest, old: Manifest) -> None:
    """pods/resize: only the resources of containers may change."""
    asked = {each.get("name"): each for part in CONTAINERS for each in (obj.get("spec") or {}).get(part) or ()}
    _become(obj, old)
    for part in CONTAINERS:
        for container in obj["spec"].get(part) or ():
            found = asked.get(container.get("name"), {})
            for field in ("resources", "resizePolicy"):
                if field in found:
                    container[field] = found[field]


def _only_ephemeral(obj: Manifest, old: Manifest) -> None:
    """pods/ephemeralcontainers: only ephemeral containers may change."""
    asked = (obj.get("spec") or {}).get("ephemeralContainers")
    _become(obj, old)
    if asked:
        obj["spec"]["ephemeralContainers"] = asked


def _only_finalizers(obj: Manifest, old: Manifest) -> None:
    """namespaces/finalize: only the namespace's finalizers may change."""
    asked = (obj.get("spec") or {}).get("finalizers")
    _become(obj, old)
    obj["spec"] = {"finalizers": asked} if asked else {}


def _become(obj: Manifest, old: Manifest) -> None:
    version = obj["metadata"].get("resourceVersion")
    obj.clear()
    obj.update(deepcopy(old))
    if version:
        obj["metadata"]["resourceVersion"] = version


CONTAINERS = ("containers", "initContainers")
PARTS: dict[str, Callable[[Manifest, Manifest], None]] = {
    "resize": _only_resources,
    "ephemeralcontainers": _only_ephemeral,
    "finalize": _only_finalizers,
}
"""Endpoints that write one part of an object."""
ON_CREATE: dict[str, Callable[[Manifest], None]] = {
    "namespaces": _namespace,
    "jobs.batch": _job,
    "services": _service,
    "persistentvolumeclaims": _protect("kubernetes.io/pvc-protection"),
    "persistentvolumes": _volume,
    "podgroups.scheduling.k8s.io": _protect("scheduling.k8s.io/podgroup-protection"),
}
ON_UPDATE: dict[str, Callable[[Manifest, Manifest], None]] = {
    "namespaces": _namespace_update,
    "jobs.batch": _job_update,
    "secrets": _secret_update,
    "pods": _pod_update,
    "services": _service_update,
    "daemonsets.apps": _daemon_set_update,
}
