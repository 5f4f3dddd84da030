"""Fields that field selectors may name, kind by kind, and how their values are read from an object.

The values are taken once, when an object is written, so a watch on `spec.nodeName=n1` compares strings and never decodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from navarch.object_types import Manifest

SELECTABLE: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver"),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "events.events.k8s.io": (
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "source",
        "type",
    ),
}
"""The two event kinds name the same values in the same order: the store keeps one tuple for both."""

_SWITCHES = frozenset({"spec.hostNetwork", "spec.unschedulable"})
_COUNTS = frozenset({"status.replicas", "status.successful"})


def reader(paths: tuple[str, ...]) -> Callable[[Manifest], tuple[str, ...]]:
    """A function that takes the values of `paths` from an object as text.

    >>> reader(("spec.nodeName", "spec.hostNetwork"))({"spec": {"nodeName": "n1"}})
    ('n1', 'false')
    """
    split = [(path, tuple(path.lstrip(".").split("."))) for path in paths]

    def read(obj: Manifest) -> tuple[str, ...]:
        return tuple(_read(obj, path, steps) for path, steps in split)

    return read


def _read(obj: Manifest, path: str, steps: tuple[str, ...]) -> str:
    if path == "source":
        source = obj.get("source")
        return str((source.get("component") if isinstance(source, dict) else "") or obj.get("reportingComponent") or "")
    if path == "status.successful":
        path, steps = "status.successful", ("status", "succeeded")
    value: Any = obj
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if path in _SWITCHES or isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "0" if path in _COUNTS else ""
    if path == "status.podIPs":
        return ",".join(str(each.get("ip", "")) for each in value)
    return str(value)
