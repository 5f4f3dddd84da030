"""Groups of groups (`scheduling.k8s.io` CompositePodGroup) as a cycle reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from navarch.model.objects.typed import of_kind
from navarch.model.snapshot import Snapshot
from navarch.object_types import ObjectKey

KIND: Final = "CompositePodGroup"
DEEPEST: Final = 4
"""Levels of groups that the API allows, the group with pods included."""


class CompositeGroup(Struct, frozen=True):
    namespace: str
    name: str
    uid: str = ""
    parent: str = ""
    minimum: int = 1
    """How many of its child groups start together."""
    label: str = ""
    """All nodes of its groups have the same value of this label; empty: no constraint."""
    priority: int | None = None
    priority_class: str = ""
    disrupted_together: bool = False
    preemption_policy: str = ""


def composite_groups(snapshot: Snapshot) -> Mapping[ObjectKey, CompositeGroup]:
    """(namespace, name) -> the group. One that cannot be read is left out with a warning."""
    return of_kind(snapshot, KIND, read_composite_group, namespaced=True)


def read_composite_group(manifest: Mapping[str, Any]) -> CompositeGroup:
    """ValueError where a field is not what the API allows.

    >>> spec = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, "disruptionMode": {"all": {}}}
    >>> found = read_composite_group({"metadata": {"name": "g"}, "spec": spec})
    >>> found.minimum, found.disrupted_together
    (2, True)
    """
    meta, spec = manifest["metadata"], manifest.get("spec") or {}
    policy = spec.get("schedulingPolicy") or {}
    gang = policy.get("gang")
    if (gang is None) == (policy.get("basic") is None):
        raise ValueError("spec.schedulingPolicy: expected basic or gang")
    minimum = 1 if gang is None else gang.get("minGroupCount")
    if not isinstance(minimum, int) or minimum < 1:
        raise ValueError(f"spec.schedulingPolicy.gang.minGroupCount: found {minimum!r}, expected 1 or more")
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or ()
    if len(topology) > 1:
        raise ValueError(f"spec.schedulingConstraints.topology: found {len(topology)} constraints, expected one at most")
    priority = spec.get("priority")
    return CompositeGroup(
        namespace=meta.get("namespace") or "default",
        name=meta["name"],
        uid=meta.get("uid") or "",
        parent=spec.get("parentCompositePodGroupName") or "",
        minimum=minimum,
        label=topology[0]["key"] if topology else "",
        priority=priority if isinstance(priority, int) else None,
        priority_class=spec.get("priorityClassName") or "",
        disrupted_together=(spec.get("disruptionMode") or {}).get("all") is not None,
        preemption_policy=spec.get("preemptionPolicy") or "",
    )
