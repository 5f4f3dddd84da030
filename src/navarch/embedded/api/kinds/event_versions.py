"""Events have two APIs, core/v1 and events.k8s.io/v1, over one store: the same facts under other names."""

from __future__ import annotations

from navarch.object_types import Manifest

NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""core/v1 -> events.k8s.io/v1; what is not named here is called the same."""
DROPPED = frozenset({"reportingComponent", "reportingInstance"})
"""Left out of the newer form when empty."""
_BACK = {new: old for old, new in NAMES.items()}


def from_core(obj: Manifest) -> Manifest:
    """A core event as events.k8s.io/v1 shows it.

    >>> from_core({"kind": "Event", "message": "hi"})
    {'kind': 'Event', 'note': 'hi', 'apiVersion': 'events.k8s.io/v1'}
    """
    out = {NAMES.get(key, key): value for key, value in obj.items() if value != "" or key not in DROPPED}
    return {**out, "apiVersion": "events.k8s.io/v1"}


def to_core(obj: Manifest) -> Manifest:
    """An events.k8s.io/v1 event as it is stored."""
    out = {_BACK.get(key, key): value for key, value in obj.items()}
    out["apiVersion"] = "v1"
    out.setdefault("involvedObject", {})
    out.setdefault("source", {})
    return out
