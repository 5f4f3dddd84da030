"""Objects that plugins read as decoded manifests: the fields that are kept, and the checks for objects from files.

Only the fields of the Structs below reach the model, from files and from the live watch alike: the template of a ReplicaSet, for
example, would fill the memory and no plugin reads it. An object whose fields have other types than plugins rely on is refused:
a driver that is a mapping would fail in a plugin much later. `check` also stands in for the validation of an API server, which
files have not passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from navarch.apis.core import storage_objects
from navarch.apis.core.device_objects import (
    Attribute,
    Capacity,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from navarch.apis.core.objects import KubeObject, LabelSelectorPart, Part, from_manifest, nano_of
from navarch.apis.errors import QUANTITY, ObjectError
from navarch.model.spec import ObjectSpec


class _PlainSelector(Part, frozen=True):
    selector: dict[str, str] | None = None


class _Selector(Part, frozen=True):
    selector: LabelSelectorPart | None = None


class _Service(KubeObject, frozen=True):
    spec: _PlainSelector | None = None


class _Controller(KubeObject, frozen=True):
    spec: _Selector | None = None


class KeptObject(KubeObject, frozen=True):
    """A storage, device or topology object: all top-level fields that plugins read of any of these kinds."""

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


class _SelectorPart(Part, frozen=True):
    selector: Any = None
    type: str | None = None


class SelectingObject(KubeObject, frozen=True):
    """A Service or a workload: only the pods that it selects."""

    spec: _SelectorPart = _SelectorPart()


_SELECTING = frozenset({"ReplicaSet", "ReplicationController", "Service", "StatefulSet"})
NAMESPACED = _SELECTING | {
    "CSIStorageCapacity",
    "CompositePodGroup",
    "PersistentVolumeClaim",
    "ResourceClaim",
    "ResourceClaimTemplate",
}
"""Kept kinds whose objects have a namespace."""


_GROUPS: Mapping[str, frozenset[str]] = {
    "": frozenset({"LimitRange", "PersistentVolume", "PersistentVolumeClaim", "ReplicationController", "Service"}),
    "apps": frozenset({"ReplicaSet", "StatefulSet"}),
    "node.k8s.io": frozenset({"RuntimeClass"}),
    "resource.k8s.io": frozenset({"DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"}),
    "scheduling.k8s.io": frozenset({"CompositePodGroup"}),
    "shard.volcano.sh": frozenset({"NodeShard"}),
    "storage.k8s.io": frozenset({"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"}),
}
"""API group -> its kinds that plugins or admission read as they are."""


def is_of_its_group(api_version: str, kind: str) -> bool:
    """Whether a kind that plugins or admission read is meant, and not one of the same name in another API (Knative's Service).

    >>> is_of_its_group("v1", "Service"), is_of_its_group("serving.knative.dev/v1", "Service")
    (True, False)
    """
    return kind in _GROUPS.get(api_version.rpartition("/")[0], ())


def kept_struct(kind: str) -> type[KubeObject]:
    """The fields that are kept of this kind."""
    return SelectingObject if kind in _SELECTING else KeptObject


def kept_spec(found: KubeObject, kind: str) -> ObjectSpec:
    """The object as plugins read it; `found` is of `kept_struct`. Raises `ObjectError` for a field of another type than they rely
    on."""
    manifest = msgspec.to_builtins(found)
    manifest["kind"] = kind
    _form(manifest, kind)
    namespace = found.metadata.namespace or ("default" if kind in NAMESPACED else "")
    return ObjectSpec(kind, namespace, found.metadata.name, manifest)


_CHECKED: Mapping[str, type[KubeObject]] = {
    "DeviceClass": DeviceClass,
    "DeviceTaintRule": DeviceTaintRule,
    "ReplicaSet": _Controller,
    "ReplicationController": _Service,
    "ResourceClaim": ResourceClaim,
    "ResourceClaimTemplate": ResourceClaimTemplate,
    "ResourceSlice": ResourceSlice,
    "Service": _Service,
    "StatefulSet": _Controller,
    **{kind.__name__: kind for kind in storage_objects.CHECKED},
}


def _form(manifest: Mapping[str, Any], kind: str) -> KubeObject:
    """The object in its own Struct."""
    return from_manifest(manifest, _CHECKED.get(kind, KubeObject))


def check(manifest: Mapping[str, Any], kind: str) -> None:
    """Raises `ObjectError` for what an API server would refuse and a plugin would fail on."""
    found = _form(manifest, kind)
    if isinstance(found, ResourceSlice):
        _check_devices(found)


def _check_devices(found: ResourceSlice) -> None:
    for i, device in enumerate((found.spec.devices if found.spec else None) or ()):
        body, path = (device, f"spec.devices[{i}]") if device.basic is None else (device.basic, f"spec.devices[{i}].basic")
        for name, attribute in (body.attributes or {}).items():
            if attribute == Attribute():
                expected = "one of string, int, bool and version"
                raise ObjectError("ResourceSlice", found.metadata.name, f"{path}.attributes[{name}]", "nothing", expected)
        for name, amount in (body.capacity or {}).items():
            value = amount.value if isinstance(amount, Capacity) else amount
            where = f"{path}.capacity[{name}]"
            if value is None:
                raise ObjectError("ResourceSlice", found.metadata.name, where, "nothing", f"a value, {QUANTITY}")
            nano_of(value, "ResourceSlice", found.metadata.name, where)
