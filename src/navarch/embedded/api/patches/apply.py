"""Server-side apply: a manager sends the fields it wants and owns them.

A field that the manager sent last time and does not send now is removed, unless another manager owns it too. A field that another
manager owns with another value is a conflict (409), unless `force` takes it over.
"""

from __future__ import annotations

from typing import Any

from navarch.embedded.api.errors import ApiError, bad_request, cause, invalid, not_found, stale
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.kinds.types import Shape
from navarch.embedded.api.operations import Operations
from navarch.embedded.api.patches.field_sets import (
    ABSENT,
    Tree,
    Unkeyed,
    child_shape,
    compare,
    difference,
    element_of,
    intersection,
    is_granular,
    paths,
    set_of,
    union,
    without,
)
from navarch.embedded.api.patches.managed_fields import entry_of, is_apply_entry, owned, sorted_entries
from navarch.embedded.api.writing import WriteOptions, read_object
from navarch.embedded.storage.record import Record
from navarch.object_types import Manifest


def apply_patch(
    operations: Operations, kind: Kind, namespace: str, name: str, patch: Any, options: WriteOptions, subresource: str
) -> tuple[Record, bool]:
    """Apply a configuration; answers the record and whether it was created."""
    config = _configuration(kind, name, namespace, patch, options)
    current = operations.store.find(kind.stored, namespace, name)
    try:
        wanted = owned(kind, set_of(config, kind.shape), subresource)
    except Unkeyed as error:
        raise bad_request(f"{kind.kind} {name}: {error}") from None
    entry = entry_of(options.manager, "Apply", kind.api_version, subresource, wanted or {}, operations.store.clock())
    if current is None:
        if subresource or config["metadata"].get("resourceVersion"):
            raise not_found(kind.resource, name)
        config["metadata"]["name"] = name
        return operations.create_applied(kind, namespace, config, entry, options), True
    live = operations.served(kind, current)
    version = config["metadata"].pop("resourceVersion", None)
    entries: list[Manifest] = live["metadata"].pop("managedFields", None) or []
    before = next((each for each in entries if is_apply_entry(each, options.manager, subresource)), None)
    others = [each for each in entries if each is not before]
    merged = merge_applied(live, config, kind.shape)
    dropped = difference(before.get("fieldsV1") if before else None, wanted)
    for each in others:
        dropped = difference(dropped, each.get("fieldsV1"))
    merged = without(merged, kind.shape, dropped)
    others = _settle_conflicts(kind, live, merged, others, wanted, options)
    if version and version != str(current.revision):
        raise stale(kind.resource, name)
    if before is not None and before.get("fieldsV1") == entry["fieldsV1"]:
        entry["time"] = before.get("time", entry["time"])
    merged["metadata"]["managedFields"] = sorted_entries([*others, entry] if wanted else others)
    return operations.replace_applied(kind, current, merged, options, subresource), False


def _configuration(kind: Kind, name: str, namespace: str, patch: Any, options: WriteOptions) -> Manifest:
    """The applied object, typed but without the zero values that a whole object would have."""
    if not isinstance(patch, dict):
        raise bad_request("the body of an apply request has to be an object")
    if not options.stated_manager:
        why = [cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")]
        raise invalid("PatchOptions", "meta.k8s.io", "", why)
    if patch.get("apiVersion") != kind.api_version or patch.get("kind") != kind.kind:
        raise bad_request(f"invalid object type: /{patch.get('apiVersion')}, Kind={patch.get('kind')}")
    metadata = patch.get("metadata") or {}
    if not isinstance(metadata, dict) or metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    if metadata.get("name") not in (None, "", name):
        raise bad_request(f"the name of the object ({metadata.get('name')}) does not match the name on the URL ({name})")
    if metadata.get("namespace") not in (None, "", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    checked = _checked(kind, name, namespace, patch, options)
    said: Manifest = _only(checked, patch)
    said["metadata"] = {**said.get("metadata", {}), "name": name}
    if namespace:
        said["metadata"]["namespace"] = namespace
    return said


def _checked(kind: Kind, name: str, namespace: str, patch: Manifest, options: WriteOptions) -> Manifest:
    """The applied fields, typed. A field that the kind does not have is an error, because the manager would own it."""
    reading = WriteOptions(field_validation="Warn")
    checked = read_object(kind, patch, reading)
    if reading.warnings and not kind.is_custom:
        field = reading.warnings[0].removeprefix('unknown field "').removesuffix('"')
        what = f"({namespace}/{name}; {kind.api_version}, Kind={kind.kind})"
        raise bad_request(f"failed to create typed patch object {what}: .{field}: field not declared in schema")
    options.warnings += reading.warnings
    return checked


def _only(checked: Any, said: Any) -> Any:
    """The checked values of what was said, and nothing that checking added."""
    if isinstance(checked, dict) and isinstance(said, dict):
        return {key: _only(value, said[key]) for key, value in checked.items() if said.get(key) is not None}
    if isinstance(checked, list) and isinstance(said, list) and len(checked) == len(said):
        return [_only(*pair) for pair in zip(checked, said)]
    return checked


def merge_applied(live: Any, config: Any, shape: Shape) -> Any:
    """Lay a configuration over an object; keyed lists merge item by item and keep the order of the object."""
    if config is ABSENT:
        return live
    if live is ABSENT or live is None or not is_granular(shape, config) or type(live) is not type(config):
        return config
    if isinstance(config, dict):
        out = dict(live)
        for name, each in config.items():
            out[name] = merge_applied(live.get(name, ABSENT), each, child_shape(shape, name))
        return out
    assert shape.item is not None
    if shape.list_type == "set":
        return [*live, *(each for each in config if each not in live)]
    try:
        said = {element_of(item, shape): item for item in config}
        merged = [merge_applied(item, said.pop(element_of(item, shape), ABSENT), shape.item) for item in live]
    except Unkeyed as error:
        raise bad_request(f"a keyed list cannot be merged: {error}") from None
    return [*merged, *said.values()]


def _settle_conflicts(
    kind: Kind, live: Manifest, merged: Manifest, others: list[Manifest], wanted: Tree | None, options: WriteOptions
) -> list[Manifest]:
    """409 if a change touches what others own; with force, or where nothing conflicts, the others' new entries."""
    changed, removed = compare(live, merged, kind.shape)
    touched = intersection(changed, wanted)
    causes: list[Manifest] = []
    kept: list[Manifest] = []
    for entry in others:
        contested = intersection(entry.get("fieldsV1"), touched)
        if contested is not None and not options.force:
            said = f"conflict with {_manager_of(entry)}"
            causes += [cause("FieldManagerConflict", said, path) for path in paths(contested)]
        left = difference(entry.get("fieldsV1"), union(contested, removed))
        if left is not None:
            kept.append({**entry, "fieldsV1": left})
    if causes:
        raise ApiError(409, "Conflict", _conflict_message(causes), causes=causes)
    return kept


def _manager_of(entry: Manifest) -> str:
    """A manager as messages name it; one that updates also by version."""
    said = f'"{entry.get("manager")}"'
    if entry.get("subresource"):
        said += f' with subresource "{entry["subresource"]}"'
    if entry.get("operation") == "Update":
        said += f" using {entry.get('apiVersion')}"
    return said


def _conflict_message(causes: list[Manifest]) -> str:
    if len(causes) == 1:
        return f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    lines: list[str] = []
    for said in sorted({each["message"] for each in causes}):
        lines.append(f"conflicts {said.removeprefix('conflict ')}:")
        lines += [f"- {each['field']}" for each in causes if each["message"] == said]
    listed = "\n".join(lines)
    return f"Apply failed with {len(causes)} conflicts: {listed}"
