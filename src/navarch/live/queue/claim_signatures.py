"""Claims on devices that were made for one pod, from a template: pods whose claims say the same are alike, though each names another.

Such a claim without devices keeps its pod waiting for devices, as it does every pod that has its like. One that is not there, has its
devices already, or was not made for the pod, is a matter of that claim alone.
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


def like(task: TaskSpec, claims: Claims) -> Hashable | None:
    """What the pod's shape has in common with that of others whose claims ask for the same; None: its claims stand for themselves."""
    said = []
    for use, name in task.shape.claims:
        claim = claims.get((task.namespace, name))
        if claim is None or any((claim.get("status") or {}).get(field) for field in ("allocation", "reservedFor")):
            return None
        meta = claim.get("metadata") or {}
        if meta.get("deletionTimestamp") or made_for(claim) != [task.uid]:
            return None
        said.append((use, msgspec.json.encode((claim.get("spec"), meta.get("labels") or {}), order="deterministic")))
    return replace(task.shape, claims=()), tuple(said)


def made_for(claim: Any) -> list[str]:
    """uid of who owns the claim; None: there is no such claim."""
    meta = (claim or {}).get("metadata") or {}
    return [owner.get("uid") or "" for owner in meta.get("ownerReferences") or ()]


def at_first_sight(shape: Shape, number: int) -> Hashable:
    """What a look at the pod alone tells of its shape, which is the `number`th."""
    return (shape.requests, len(shape.claims)) if shape.claims else number


def frees(before: Any, now: Any) -> bool:
    """Whether devices that the claim had are others' to have; None: there is no such claim."""

    def has(claim: Any) -> bool:
        return bool(((claim or {}).get("status") or {}).get("allocation"))

    return has(before) and not has(now)
