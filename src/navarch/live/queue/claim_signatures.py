"""Signatures of ResourceClaims that a template made for one pod.

Each pod from a template has a claim with a name of its own. Two such pods are equivalent when their claims ask for the same devices.
A claim counts by its content only while it waits for devices like every other: it exists, the pod owns it, and it has no devices
yet. In every other case the claim's name stays part of the pod's shape, so the pod is equivalent to no other.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from navarch.model.spec import Shape, TaskSpec

KIND = "ResourceClaim"
Claims = Mapping[tuple[str, str], Any]
"""(namespace, name) -> the claim as decoded."""


def claim_signature(task: TaskSpec, claims: Claims) -> Hashable | None:
    """The pod's shape with each claim's name replaced by its content; None if a claim cannot be compared by content."""
    contents = []
    for use, name in task.shape.claims:
        claim = claims.get((task.namespace, name))
        if claim is None or any((claim.get("status") or {}).get(field) for field in ("allocation", "reservedFor")):
            return None
        meta = claim.get("metadata") or {}
        if meta.get("deletionTimestamp") or owner_uids(claim) != [task.uid]:
            return None
        contents.append((use, msgspec.json.encode((claim.get("spec"), meta.get("labels") or {}), order="deterministic")))
    return replace(task.shape, claims=()), tuple(contents)


def owner_uids(claim: Any) -> list[str]:
    """The uids of the claim's owners. `claim` is None if it does not exist."""
    meta = (claim or {}).get("metadata") or {}
    return [owner.get("uid") or "" for owner in meta.get("ownerReferences") or ()]


def quick_shape_signature(shape: Shape, number: int) -> Hashable:
    """A coarse signature of a shape, computed without reading claims. `number` is the shape's row in the shape table."""
    return (shape.requests, len(shape.claims)) if shape.claims else number


def releases_devices(before: Any, now: Any) -> bool:
    """Whether the claim had devices before and has none now. Each version is None if the claim did not exist."""

    def has_devices(claim: Any) -> bool:
        return bool(((claim or {}).get("status") or {}).get("allocation"))

    return has_devices(before) and not has_devices(now)
