"""Objects that plugins read as decoded manifests, checked where a plugin would trip over them much later.

Selectors go into sets and are compared with labels of pods; anything but text there is a mistake in the file, and is told
with its field like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navarch.apis.core import storage_objects
from navarch.apis.core.device_objects import (
    Attribute,
    Capacity,
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from navarch.apis.core.objects import KubeObject, LabelSelectorPart, Part, from_manifest, nano_of
from navarch.apis.errors import QUANTITY, ObjectError


class _PlainSelector(Part, frozen=True):
    selector: dict[str, str] | None = None


class _Selector(Part, frozen=True):
    selector: LabelSelectorPart | None = None


class _Service(KubeObject, frozen=True):
    spec: _PlainSelector | None = None


class _Controller(KubeObject, frozen=True):
    spec: _Selector | None = None


_CHECKED: Mapping[str, type[KubeObject]] = {
    "DeviceClass": DeviceClass,
    "ReplicaSet": _Controller,
    "ReplicationController": _Service,
    "ResourceClaim": ResourceClaim,
    "ResourceClaimTemplate": ResourceClaimTemplate,
    "ResourceSlice": ResourceSlice,
    "Service": _Service,
    "StatefulSet": _Controller,
    **{kind.__name__: kind for kind in storage_objects.CHECKED},
}


def kept(manifest: Mapping[str, Any], kind: str) -> KubeObject:
    """The object as far as it is checked here, or an `ObjectError`."""
    found = from_manifest(manifest, _CHECKED.get(kind, KubeObject))
    if isinstance(found, ResourceSlice):
        _check_devices(found)
    return found


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
