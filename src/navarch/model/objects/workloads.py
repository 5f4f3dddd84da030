"""Objects that own or select pods (Services, ReplicaSets ...). Default topology spreading finds a pod's peers by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from navarch.model.objects.typed import of_kind
from navarch.model.selectors import equalities, read_label_selector
from navarch.model.snapshot import Snapshot
from navarch.model.spec import LabelSelector
from navarch.object_types import ObjectKey

SERVICE = "Service"
CONTROLLERS = ("ReplicationController", "ReplicaSet", "StatefulSet")


class ServiceSpec(Struct, frozen=True):
    """No pair: the Service selects nothing."""

    namespace: str
    name: str
    selector: tuple[tuple[str, str], ...] = ()


class ControllerSpec(Struct, frozen=True):
    kind: str
    namespace: str
    name: str
    selector: LabelSelector | None = None


def read_service(manifest: Mapping[str, Any]) -> ServiceSpec:
    meta, spec = manifest["metadata"], manifest.get("spec") or {}
    pairs = tuple(sorted((spec.get("selector") or {}).items()))
    return ServiceSpec(meta.get("namespace") or "default", meta["name"], pairs)


def read_controller(manifest: Mapping[str, Any]) -> ControllerSpec:
    """A ReplicationController's selector is a plain map of labels."""
    meta, selector, kind = manifest["metadata"], (manifest.get("spec") or {}).get("selector"), manifest["kind"]
    if kind == "ReplicationController":
        read: LabelSelector | None = LabelSelector(equalities(selector or {}))
    else:
        read = read_label_selector(selector)
    return ControllerSpec(kind, meta.get("namespace") or "default", meta["name"], read)


def services(snapshot: Snapshot) -> Mapping[ObjectKey, ServiceSpec]:
    return of_kind(snapshot, SERVICE, read_service, namespaced=True)


def controllers(snapshot: Snapshot, kind: str) -> Mapping[ObjectKey, ControllerSpec]:
    return of_kind(snapshot, kind, read_controller, namespaced=True)
