"""Checks for the objects that admission looks up: LimitRange, RuntimeClass, and volume objects with defaults of their own.

Admission reads plain mappings and relies on validation by an API server. Objects from files have passed none, so they are checked
here.
"""

from __future__ import annotations

from typing import Any

from navarch.apis.admission.admission import AdmissionContext, admit
from navarch.apis.core.amounts import amounts
from navarch.apis.core.objects import KubeObject, Part, ResourceList, from_manifest, identity
from navarch.apis.core.pod_objects import TolerationPart
from navarch.apis.errors import ObjectError
from navarch.object_types import ReadOnlyManifest

LOOKED_UP = frozenset({"LimitRange", "RuntimeClass"})
DEFAULTED = frozenset({"PersistentVolume", "PersistentVolumeClaim", "StorageClass"})


class LimitRangeItem(Part, frozen=True):
    type: str
    default: ResourceList | None = None
    default_request: ResourceList | None = None
    max: ResourceList | None = None
    min: ResourceList | None = None
    max_limit_request_ratio: ResourceList | None = None


class LimitRangePart(Part, frozen=True):
    limits: tuple[LimitRangeItem, ...] | None = None


class LimitRange(KubeObject, frozen=True):
    spec: LimitRangePart = LimitRangePart()


class Overhead(Part, frozen=True):
    pod_fixed: ResourceList | None = None


class RuntimeScheduling(Part, frozen=True):
    node_selector: dict[str, str] | None = None
    tolerations: tuple[TolerationPart, ...] | None = None


class RuntimeClass(KubeObject, frozen=True):
    overhead: Overhead | None = None
    scheduling: RuntimeScheduling | None = None


def looked_up(manifest: ReadOnlyManifest) -> dict[str, Any]:
    """The manifest, after the fields that admission reads are checked."""
    kind, name = identity(manifest)
    if kind == "LimitRange":
        for i, item in enumerate(from_manifest(manifest, LimitRange).spec.limits or ()):
            for field, found in (
                ("default", item.default),
                ("defaultRequest", item.default_request),
                ("max", item.max),
                ("min", item.min),
                ("maxLimitRequestRatio", item.max_limit_request_ratio),
            ):
                amounts(found, kind, name, f"spec.limits[{i}].{field}")
    else:
        runtime = from_manifest(manifest, RuntimeClass)
        amounts(runtime.overhead.pod_fixed if runtime.overhead else None, kind, name, "overhead.podFixed")
    return dict(manifest)


def defaulted(manifest: ReadOnlyManifest, context: AdmissionContext) -> ReadOnlyManifest:
    """A volume object with the defaults that plugins read: storage class, binding mode, volume mode."""
    try:
        return admit(dict(manifest), context).obj
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        expected = f"an object that an API server accepts, but: {type(error).__name__} {error}"
        raise ObjectError(*identity(manifest), "spec", "", expected) from error
