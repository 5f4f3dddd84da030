"""pods/binding: give a pod its node, once.

The rules are checked in kube-apiserver's order, because clients read the first failure. The node need not exist.
"""

from __future__ import annotations

from typing import Any

from navarch.embedded.api.errors import ApiError, bad_request, cause, conflict, invalid
from navarch.embedded.api.writing import read_typed
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import Store, timestamp
from navarch.object_types import Manifest

TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def bind(store: Store, namespace: str, name: str, body: Any, dry_run: bool = False) -> Record:
    """Bind a pod as a Binding object says; 409 if the pod may not be bound (any more). An empty `name` is read from the object."""
    body = read_typed("core.v1.Binding", body)
    metadata: Manifest = body.get("metadata") or {}
    name = name or str(metadata.get("name") or "")
    if not name:
        raise bad_request("the Binding object names no pod: metadata.name is required")
    if metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    if metadata.get("namespace") not in (None, "", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    node = _target(body, name)
    current = store.get("pods", namespace, name)
    _preconditions(current, metadata)
    pod = current.decode()
    spec = pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = node
    _merge(pod["metadata"], "annotations", metadata.get("annotations"))
    _merge(pod["metadata"], "labels", {**_topology(store, node), **(metadata.get("labels") or {})})
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    _scheduled(status, timestamp(store.clock()))
    return current if dry_run else store.update("pods", pod)


def _target(body: Manifest, name: str) -> str:
    target = body.get("target")
    if not isinstance(target, dict) or not target.get("name"):
        raise invalid("Binding", "", name, [cause("FieldValueRequired", "Required value", "target.name")])
    if target.get("kind") not in (None, "", "Node"):
        message = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise invalid("Binding", "", name, [cause("FieldValueNotSupported", message, "target.kind")])
    return str(target["name"])


def _preconditions(current: Record, metadata: Manifest) -> None:
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if uid and uid != current.uid:
        said = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current.uid}"
        raise conflict("pods", current.name, said)
    if version and version != str(current.revision):
        said = f"Precondition failed: ResourceVersion in precondition: {version}, "
        raise conflict("pods", current.name, f"{said}ResourceVersion in object meta: {current.revision}")


def _refused(name: str, message: str) -> ApiError:
    return conflict("pods/binding", name, message)


def _merge(metadata: Manifest, field: str, more: Manifest | None) -> None:
    if more:
        metadata[field] = {**(metadata.get(field) or {}), **{str(key): str(value) for key, value in more.items()}}


def _topology(store: Store, node: str) -> dict[str, str]:
    record = store.find("nodes", "", node)
    labels = record.labels if record is not None else {}
    return {label: labels[label] for label in TOPOLOGY_LABELS if label in labels}


def _scheduled(status: Manifest, now: str) -> None:
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    conditions = [each for each in status.get("conditions") or () if each.get("type") != "PodScheduled"]
    before = next((each for each in status.get("conditions") or () if each.get("type") == "PodScheduled"), None)
    if before is not None and before.get("status") == "True":
        condition["lastTransitionTime"] = before.get("lastTransitionTime") or now
    status["conditions"] = [*conditions, condition]
