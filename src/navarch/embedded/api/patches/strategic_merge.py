"""Strategic merge patch: like a merge patch, but lists merge by the key that their field declares.

Directives: `$patch: replace | delete | merge`, `$retainKeys`, `$deleteFromPrimitiveList/x`, `$setElementOrder/x`.
"""

from __future__ import annotations

import json
from typing import Any

from navarch.embedded.api.errors import bad_request
from navarch.embedded.api.kinds.types import Member, Shape
from navarch.object_types import Manifest

DIRECTIVE = "$patch"
RETAIN = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
ORDER = "$setElementOrder/"


def strategic_merge(original: Manifest, patch: Manifest, shape: Shape | None) -> Manifest:
    """Apply a patch to an object of a shape; the inputs are left alone.

    >>> from navarch.embedded.api.kinds.types import shape_of
    >>> pod = {"status": {"conditions": [{"type": "A", "status": "True"}]}}
    >>> strategic_merge(pod, {"status": {"conditions": [{"type": "B", "status": "False"}]}}, shape_of("core.v1.Pod"))
    {'status': {'conditions': [{'type': 'B', 'status': 'False'}, {'type': 'A', 'status': 'True'}]}}
    """
    directive = patch.get(DIRECTIVE)
    if directive == "replace":
        return {key: _plain(value) for key, value in patch.items() if key != DIRECTIVE and value is not None}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"unknown {DIRECTIVE} directive: found {directive!r}, expected replace, delete or merge")
    out = dict(original)
    retained = patch.get(RETAIN)
    if isinstance(retained, list):
        out = {key: value for key, value in out.items() if key in retained}
    for key, value in patch.items():
        if key in (DIRECTIVE, RETAIN):
            continue
        if key.startswith(DELETE_FROM):
            _delete_from(out, key.removeprefix(DELETE_FROM), value)
        elif key.startswith(ORDER):
            continue
        elif value is None:
            out.pop(key, None)
        else:
            member = _member(shape, key)
            out[key] = _merge_value(out.get(key), value, member, patch.get(ORDER + key))
    for key, order in patch.items():
        name = key.removeprefix(ORDER)
        if key.startswith(ORDER) and name not in patch and isinstance(out.get(name), list):
            member = _member(shape, name)
            out[name] = _ordered(out[name], out[name], order, member.merge_key)
    return out


def _member(shape: Shape | None, key: str) -> Member:
    if shape is not None:
        found = shape.fields.get(key)
        if found is not None:
            return found
        if shape.base == "map" and shape.item is not None:
            return Member(key, shape.item)
    return Member(key, Shape("any"))


def _merge_value(current: Any, patch: Any, member: Member, order: Any) -> Any:
    if isinstance(patch, dict):
        if "replace" in member.patch_strategies and DIRECTIVE not in patch:
            return _plain(patch)
        base = current if isinstance(current, dict) else {}
        return strategic_merge(base, patch, member.shape)
    if isinstance(patch, list):
        if "merge" not in member.patch_strategies:
            return _plain(patch)
        present = current if isinstance(current, list) else []
        if member.merge_key:
            merged = _merge_maps(present, patch, member)
        else:
            known = _places(present, "")
            merged = [*present, *(each for each in patch if _mark(each, "") not in known)]
        return _ordered(merged, present, order if isinstance(order, list) else patch, member.merge_key)
    return patch


def _merge_maps(current: list[Any], patch: list[Any], member: Member) -> list[Any]:
    key, item = member.merge_key, member.shape.item
    for each in patch:
        if not isinstance(each, dict):
            raise bad_request(f"{member.name}: found {each!r} in a strategic merge patch, expected objects with {key!r}")
        if each.get(DIRECTIVE) == "replace" and len(each) == 1:
            return [_plain(other) for other in patch if other is not each]
    out: list[Any] = list(current)
    places = _places(out, key)
    added: list[Any] = []
    deleted: set[Any] = set()
    for each in patch:
        if each.get(DIRECTIVE) == "replace":
            continue
        if key not in each:
            raise bad_request(f"{member.name}: map: {each} does not contain declared merge key: {key}")
        mark = _mark(each, key)
        if each.get(DIRECTIVE) == "delete":
            deleted.add(mark)
        elif mark in places and mark not in deleted:
            out[places[mark]] = strategic_merge(out[places[mark]], each, item)
        else:
            added.append(strategic_merge({}, each, item))
    return [*(other for other in out if _mark(other, key) not in deleted), *added]


def _mark(item: Any, key: str) -> Any:
    """The identity of a list item: the value of its merge key, or the item itself. Always hashable."""
    value = item.get(key) if key and isinstance(item, dict) else item
    return value if isinstance(value, str | int | float | None) else json.dumps(value, sort_keys=True)


def _places(items: list[Any], key: str) -> dict[Any, int]:
    """Identity -> first index."""
    places: dict[Any, int] = {}
    for index, item in enumerate(items):
        places.setdefault(_mark(item, key), index)
    return places


def _ordered(merged: list[Any], current: list[Any], order: Any, key: str) -> list[Any]:
    """Items that the order names come in that order; others stay where they were relative to their neighbours."""
    if not isinstance(order, list):
        return merged
    ranks, places = _places(order, key), _places(current, key)
    named = sorted((item for item in merged if _mark(item, key) in ranks), key=lambda item: ranks[_mark(item, key)])
    others = [item for item in merged if _mark(item, key) not in ranks]
    out: list[Any] = []
    first_named = first_other = 0
    while first_named < len(named) and first_other < len(others):
        other = places.get(_mark(others[first_other], key), -1)
        if 0 <= other < places.get(_mark(named[first_named], key), -1):
            out.append(others[first_other])
            first_other += 1
        else:
            out.append(named[first_named])
            first_named += 1
    return [*out, *named[first_named:], *others[first_other:]]


def _delete_from(out: Manifest, name: str, values: Any) -> None:
    if not isinstance(values, list):
        raise bad_request(f"{DELETE_FROM}{name}: found {values!r}, expected a list")
    if isinstance(out.get(name), list):
        out[name] = [each for each in out[name] if each not in values]


def _plain(value: Any) -> Any:
    """A patch taken as a value: without directives and nulls."""
    if isinstance(value, dict):
        return {
            key: _plain(each)
            for key, each in value.items()
            if each is not None and key not in (DIRECTIVE, RETAIN) and not key.startswith((ORDER, DELETE_FROM))
        }
    if isinstance(value, list):
        return [_plain(each) for each in value if not (isinstance(each, dict) and each.get(DIRECTIVE) in ("delete", "replace"))]
    return value
