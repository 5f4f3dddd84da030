"""The fields of a workload that give its number of pods and its pod template. A wrong value is reported with its field."""

from __future__ import annotations

from collections.abc import Mapping

from navarch.apis.core.objects import identity
from navarch.apis.errors import ObjectError, shown
from navarch.object_types import ReadOnlyManifest

MOST_PODS = 1_000_000
"""The most pods of one workload. A larger number is a typing mistake, and its pods would take hours to make."""


def count(owner: ReadOnlyManifest, path: str, value: object, otherwise: int) -> int:
    """A number of pods.

    >>> count({"kind": "Job", "metadata": {"name": "a"}}, "spec.parallelism", None, 1)
    1
    """
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_PODS:
        raise ObjectError(*identity(owner), path, shown(value), f"a whole number from 0 to {MOST_PODS}")
    return value


def template_at(owner: ReadOnlyManifest, path: str, value: object) -> ReadOnlyManifest:
    """A pod template. Its spec is checked when the pods are read."""
    template = _mapping(owner, path, value, "a pod template")
    if template.get("metadata") is not None:
        metadata = _mapping(owner, f"{path}.metadata", template["metadata"], "a mapping")
        for field in ("labels", "annotations"):
            if metadata.get(field) is not None:
                _mapping(owner, f"{path}.metadata.{field}", metadata[field], "a mapping")
    _mapping(owner, f"{path}.spec", template.get("spec"), "the spec of a pod")
    return template


def mappings(owner: ReadOnlyManifest, path: str, value: object) -> list[ReadOnlyManifest]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ObjectError(*identity(owner), path, shown(value), "a list")
    return [_mapping(owner, f"{path}[{i}]", item, "a mapping") for i, item in enumerate(value)]


def _mapping(owner: ReadOnlyManifest, path: str, value: object, expected: str) -> ReadOnlyManifest:
    if not isinstance(value, Mapping):
        raise ObjectError(*identity(owner), path, shown(value), expected)
    return value
