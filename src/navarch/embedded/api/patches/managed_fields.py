"""metadata.managedFields: which manager set which field, updated on every write.

A plain write (create, update, patch) takes the fields it changed from all other managers. Server-side apply checks for conflicts
first (`apply`). Fields that the server sets itself (identity, generation, the status on the main endpoint) have no manager.
"""

from __future__ import annotations

from typing import Any

import msgspec

from navarch.embedded.api.kinds.normalise import Normaliser
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.patches.field_sets import LEAF, Tree, compare, difference, union
from navarch.embedded.api.writing import WriteOptions
from navarch.embedded.storage.store import timestamp
from navarch.object_types import Manifest

UNOWNED: Tree = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {
        ".": LEAF,
        **{
            f"f:{name}": LEAF
            for name in (
                "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion",
                "deletionTimestamp", "deletionGracePeriodSeconds",
            )
        },
    },
}  # fmt: skip
_zeros: dict[str, Manifest] = {}


def zero_of(kind: Kind) -> Manifest:
    """A new object of a kind before any manager set a field."""
    if kind.is_custom:
        return {"metadata": {}}
    found = _zeros.get(kind.shape.name)
    if found is None:
        found = _zeros[kind.shape.name] = Normaliser().struct({}, kind.shape, "")
    return found


def owned(kind: Kind, fields: Tree | None, subresource: str) -> Tree | None:
    """The part of a set that a writer of an endpoint may own."""
    if fields is None:
        return None
    kept = {key: child for key, child in fields.items() if key not in ("f:apiVersion", "f:kind", ".")}
    if subresource == "status":
        kept = {key: child for key, child in kept.items() if key in ("f:status", "f:metadata")}
        if kind.is_custom:
            kept.pop("f:metadata", None)
    elif kind.has_status:
        kept.pop("f:status", None)
    return difference(kept or None, {"f:metadata": UNOWNED["f:metadata"]})


def track(kind: Kind, obj: Manifest, old: Manifest | None, options: WriteOptions, subresource: str, now: float) -> None:
    """Note in `obj` what this write set. Changes obj["metadata"]["managedFields"]."""
    entries = _entries(obj, old)
    if old is not None and not entries:  # fields of an object without managers are tracked only after its first apply
        return _write(obj, [])
    if old is None:
        changed, removed = _fields_of_new(kind, obj), None
    else:
        changed, removed = compare(old, obj, kind.shape)
        changed, removed = owned(kind, changed, subresource), owned(kind, removed, subresource)
    if changed is None and removed is None:
        _write(obj, entries)
        return
    manager = options.manager or "navarch"
    gone = union(changed, removed)
    kept: list[Manifest] = []
    mine: Manifest | None = None
    for entry in entries:
        if _is(entry, manager, "Update", kind.api_version, subresource):
            mine = entry
            continue
        left = difference(entry.get("fieldsV1"), gone)
        if left is not None:
            kept.append(entry if left == entry.get("fieldsV1") else {**entry, "fieldsV1": left})
    fields = union(difference(mine.get("fieldsV1") if mine else None, removed), changed)
    if fields is not None:
        entry = entry_of(manager, "Update", kind.api_version, subresource, fields, now)
        if subresource == "scale":
            del entry["time"]
        kept.append(entry)
    _write(obj, sorted_entries(kept))


_fields_of: dict[bytes, Tree | None] = {}
KEPT_FIELDS = 4096


def _fields_of_new(kind: Kind, obj: Manifest) -> Tree | None:
    """What the creator of an object owns. Pods come by the thousand with one spec: the same content has the same fields."""
    metadata = {key: value for key, value in obj["metadata"].items() if f"f:{key}" not in UNOWNED["f:metadata"]}
    rest = [value for key, value in obj.items() if key not in ("metadata", "status")]
    mark = msgspec.json.encode([kind.api_version, kind.plural, metadata, list(obj), rest])
    if mark not in _fields_of:
        if len(_fields_of) >= KEPT_FIELDS:
            _fields_of.clear()
        _fields_of[mark] = owned(kind, compare(zero_of(kind), obj, kind.shape)[0], "")
    return _fields_of[mark]


def entry_of(manager: str, operation: str, api_version: str, subresource: str, fields: Tree, now: float) -> Manifest:
    """One entry of managedFields."""
    entry: Manifest = {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if subresource:
        entry["subresource"] = subresource
    entry["time"] = timestamp(now)
    return entry


def sorted_entries(entries: list[Manifest]) -> list[Manifest]:
    """Appliers first, then by time, then by name."""
    return sorted(entries, key=lambda each: tuple(each.get(name, "") for name in ("operation", "time", "manager", "subresource")))


def _is(entry: Manifest, manager: str, operation: str, api_version: str, subresource: str) -> bool:
    return (
        entry.get("manager") == manager
        and entry.get("operation") == operation
        and entry.get("apiVersion") == api_version
        and entry.get("subresource", "") == subresource
    )


def is_apply_entry(entry: Manifest, manager: str, subresource: str) -> bool:
    """Whether an entry holds what a manager applied."""
    return _is(entry, manager, "Apply", str(entry.get("apiVersion")), subresource)


def _entries(obj: Manifest, old: Manifest | None) -> list[Manifest]:
    """The entries to start from: what the client sent if it sent any that make sense, else what is stored."""
    sent = obj["metadata"].get("managedFields")
    stored = (old or {"metadata": {}})["metadata"].get("managedFields") or []
    if old is None or not sent:
        return list(stored)
    if sent == [{}] or any(not isinstance(each.get("fieldsV1"), dict) for each in sent):
        return []
    return list(sent)


def _write(obj: Manifest, entries: list[Any]) -> None:
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)
