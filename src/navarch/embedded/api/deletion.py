"""How an object goes: at once, after a grace period (pods), or when its last finalizer is taken away.

`begin` decides. A pod is always marked first; one on a node stays until its kubelet deletes it with grace 0, one without a
node goes at once, so that its watchers see it marked and then gone. The propagation policy becomes a finalizer that
the garbage collector works off (`garbage`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from navarch.embedded.api.errors import bad_request, cause, conflict, invalid
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.writing import read_typed
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import timestamp
from navarch.object_types import Manifest

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
POLICIES = ("Orphan", "Background", "Foreground")


@dataclass(slots=True)
class DeleteOptions:
    """metav1.DeleteOptions, from the body or the query."""

    grace: int | None = None
    propagation: str = ""
    uid: str = ""
    version: str = ""
    dry_run: bool = False

    @classmethod
    def of(cls, body: Any, query: dict[str, str]) -> DeleteOptions:
        """Read a body (may be None) and query parameters; the body goes first."""
        found: Manifest = {} if body is None else read_typed("meta.v1.DeleteOptions", body)
        if found.get("kind") not in (None, "", "DeleteOptions"):
            raise bad_request(f"DeleteOptions: kind: found {found['kind']!r}, expected 'DeleteOptions'")
        grace = found.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
        try:
            grace = None if grace is None else int(grace)
        except (TypeError, ValueError):
            raise bad_request(f"gracePeriodSeconds: found {grace!r}, expected an integer") from None
        propagation = found.get("propagationPolicy") or query.get("propagationPolicy") or ""
        orphan = found.get("orphanDependents")
        if orphan is None and "orphanDependents" in query:
            orphan = query["orphanDependents"] == "true"
        if orphan is not None and not propagation:
            propagation = "Orphan" if orphan else "Background"
        if propagation and propagation not in POLICIES:
            said = f'Unsupported value: "{propagation}": supported values: "Foreground", "Background", "Orphan", "nil"'
            why = [cause("FieldValueNotSupported", said, "propagationPolicy")]
            raise invalid("DeleteOptions", "meta.k8s.io", "", why)
        preconditions = found.get("preconditions") or {}
        dry_run = found.get("dryRun") or ([query["dryRun"]] if query.get("dryRun") else [])
        return cls(
            grace,
            propagation,
            str(preconditions.get("uid") or ""),
            str(preconditions.get("resourceVersion") or ""),
            bool(dry_run),
        )

    def check(self, kind: Kind, current: Record) -> None:
        """409 if the preconditions do not hold."""
        resource = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
        if self.uid and self.uid != current.uid:
            said = f"the UID in the precondition ({self.uid}) does not match the UID in record ({current.uid}). "
            raise conflict(resource, current.name, f"{said}The object might have been deleted and then recreated")
        if self.version and self.version != str(current.revision):
            said = f"the ResourceVersion in the precondition ({self.version}) does not match the ResourceVersion in record "
            raise conflict(resource, current.name, f"{said}({current.revision}). The object might have been modified")


@dataclass(frozen=True, slots=True)
class Deletion:
    """The object as it was left, and whether it is gone."""

    record: Record
    finished: bool


def grace_of(obj: Manifest, options: DeleteOptions) -> int:
    """How many seconds a pod gets: what is asked or what it says, but none if nothing runs."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if options.grace is not None:
        grace = options.grace
    else:
        stated = spec.get("terminationGracePeriodSeconds")
        grace = 30 if stated is None else stated
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    return 1 if grace < 0 else grace


def begin(kind: Kind, obj: Manifest, options: DeleteOptions, now: float) -> Manifest | None:
    """The object marked for deletion, or None if it may go at once. Changes the copy it is given."""
    metadata = obj["metadata"]
    finalizers = [each for each in metadata.get("finalizers") or () if each not in (ORPHAN, FOREGROUND)]
    kept = [each for each in metadata.get("finalizers") or () if each in (ORPHAN, FOREGROUND)]
    if options.propagation == "Orphan":
        kept = [ORPHAN]
    elif options.propagation == "Foreground":
        kept = [FOREGROUND]
    elif options.propagation == "Background":
        kept = []
    finalizers += kept
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    grace = grace_of(obj, options) if kind.resource == "pods" else 0
    if kind.resource == "namespaces" and (obj.get("spec") or {}).get("finalizers"):
        obj.setdefault("status", {})["phase"] = "Terminating"
        metadata.setdefault("deletionTimestamp", timestamp(now))
        return obj
    if not finalizers and kind.resource != "pods":
        return None
    before = metadata.get("deletionGracePeriodSeconds")
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = timestamp(now + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        _next_generation(metadata)
    elif before is not None and grace < before:  # a second delete may only shorten the wait
        metadata["deletionTimestamp"] = timestamp(now + grace)
        metadata["deletionGracePeriodSeconds"] = grace
    return obj


def _next_generation(metadata: Manifest) -> None:
    if metadata.get("generation"):
        metadata["generation"] += 1


def is_finished(obj: Manifest) -> bool:
    """Whether a deleted object can be removed: it has no finalizer and no grace period left."""
    metadata = obj["metadata"]
    if metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"):
        return False
    if obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"):
        return False
    return bool(metadata.get("deletionTimestamp"))
