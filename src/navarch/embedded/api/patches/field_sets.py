"""Sets of fields in the FieldsV1 form: {"f:spec": {"f:replicas": {}}}.

A node without children is a field that is in the set; a node with children is in it too if it has a "." child. Elements
are `f:name` for fields, `k:{...}` for items of keyed lists, `v:...` for items of sets. None is the empty set. Trees are
never changed in place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from navarch.embedded.api.kinds.types import Shape

Tree = dict[str, Any]
LEAF: Tree = {}
ABSENT: Any = object()
ATOMIC = Shape("any")


class Unkeyed(ValueError):
    """An item of a keyed list that lacks one of its keys."""


def is_member(tree: Tree) -> bool:
    return not tree or "." in tree


def union(one: Tree | None, other: Tree | None) -> Tree | None:
    """All fields of both."""
    if one is None or other is None:
        return other if one is None else one
    if not one and not other:
        return LEAF
    out: Tree = {}
    if is_member(one) or is_member(other):
        out["."] = LEAF
    for key in [*one, *(each for each in other if each not in one)]:
        if key != ".":
            found = union(one.get(key), other.get(key))
            if found is not None:
                out[key] = found
    return _tidy(out)


def difference(one: Tree | None, other: Tree | None) -> Tree | None:
    """Fields of the first that are not in the second."""
    if one is None or other is None:
        return one
    out: Tree = {}
    if is_member(one) and not is_member(other):
        out["."] = LEAF
    for key, child in one.items():
        if key != ".":
            found = difference(child, other.get(key))
            if found is not None:
                out[key] = found
    return _tidy(out) if out else None


def intersection(one: Tree | None, other: Tree | None) -> Tree | None:
    """Fields that are in both."""
    if one is None or other is None:
        return None
    out: Tree = {}
    if is_member(one) and is_member(other):
        out["."] = LEAF
    for key, child in one.items():
        if key != "." and key in other:
            found = intersection(child, other[key])
            if found is not None:
                out[key] = found
    return _tidy(out) if out else None


def _tidy(tree: Tree) -> Tree:
    """A node whose only child is itself is a leaf."""
    return LEAF if len(tree) == 1 and "." in tree else tree


def paths(tree: Tree | None, lead: str = "") -> Iterator[str]:
    """The fields of a set as text: .spec.containers[name="c"].image"""
    if tree is None:
        return
    if lead and is_member(tree):
        yield lead
    for key, child in sorted(tree.items()):
        if key != ".":
            yield from paths(child, lead + _text(key))


def _text(element: str) -> str:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        inside = ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(json.loads(rest).items()))
        return f"[{inside}]"
    return f"[={rest}]"


def element_of(item: Any, shape: Shape) -> str:
    """The element that names an item of a keyed list or a set."""
    if shape.list_type == "set":
        return f"v:{json.dumps(item, separators=(',', ':'), sort_keys=True)}"
    if not isinstance(item, dict):
        raise Unkeyed(f"found {item!r}, expected an object with {', '.join(shape.list_keys)}")
    keys: Tree = {}
    for name in shape.list_keys:
        value = item.get(name, shape.key_defaults.get(name, ABSENT))
        if value is ABSENT:
            raise Unkeyed(f"element omits key field {name!r}")
        keys[name] = value
    return f"k:{json.dumps(keys, separators=(',', ':'), sort_keys=True)}"


def is_granular(shape: Shape, value: Any) -> bool:
    """Whether ownership goes deeper than this value."""
    if shape.atomic:
        return False
    if isinstance(value, dict):
        return shape.base in ("struct", "map")
    return isinstance(value, list) and shape.base == "list" and shape.list_type in ("map", "set")


def child_shape(shape: Shape, name: str) -> Shape:
    member = shape.fields.get(name)
    if member is not None:
        return member.shape
    if shape.item is not None:
        return shape.item
    return OPEN if shape.open else ATOMIC


OPEN = Shape("struct", open=True)
"""What a schema does not describe: objects are taken apart, lists are not."""


def set_of(value: Any, shape: Shape) -> Tree:
    """All fields that a configuration names (server-side apply)."""
    if not is_granular(shape, value) or not value:
        return LEAF
    out: Tree = {}
    if isinstance(value, dict):
        for name, each in value.items():
            child = set_of(each, child_shape(shape, name))
            if child and name not in shape.fields and shape.base == "map":
                child = {".": LEAF, **child}
            out[f"f:{name}"] = child
        return out
    assert shape.item is not None
    for item in value:
        child = set_of(item, shape.item) if shape.list_type == "map" else LEAF
        out[element_of(item, shape)] = {".": LEAF, **child} if child else LEAF
    return out


def compare(old: Any, new: Any, shape: Shape) -> tuple[Tree | None, Tree | None]:
    """(fields that were added or changed, fields that were removed)."""
    if new is ABSENT:
        return None, _everything(old, shape)
    if old is not ABSENT and old == new:
        return None, None
    if not is_granular(shape, new) or (old is not ABSENT and old is not None and type(old) is not type(new)):
        return LEAF, None
    try:
        before, after = _children(None if old is ABSENT else old, shape), _children(new, shape)
    except Unkeyed:
        return LEAF, None
    changed: Tree = {}
    removed: Tree = {}
    if old is ABSENT or not new:
        changed["."] = LEAF
    for element in [*after, *(each for each in before if each not in after)]:
        was, now = before.get(element, (ABSENT, ATOMIC)), after.get(element, (ABSENT, ATOMIC))
        up, down = compare(was[0], now[0], now[1] if now[0] is not ABSENT else was[1])
        if up is not None:
            changed[element] = up
        if down is not None:
            removed[element] = down
    return (_tidy(changed) if changed else None), (removed or None)


def _everything(value: Any, shape: Shape) -> Tree:
    """A value with all that is in it, each container named too."""
    if not is_granular(shape, value):
        return LEAF
    try:
        children = _children(value, shape)
    except Unkeyed:
        return LEAF
    out = {element: _everything(each, deeper) for element, (each, deeper) in children.items()}
    return {".": LEAF, **out} if out else LEAF


def _children(value: Any, shape: Shape) -> dict[str, tuple[Any, Shape]]:
    if value is None:
        return {}
    if isinstance(value, dict):
        return {f"f:{name}": (each, child_shape(shape, name)) for name, each in value.items()}
    assert shape.item is not None
    deeper = shape.item if shape.list_type == "map" else ATOMIC
    return {element_of(item, shape): (item, deeper) for item in value}


def without(value: Any, shape: Shape, fields: Tree | None) -> Any:
    """A value without the fields of a set; ABSENT if it is itself one of them with nothing left inside."""
    if fields is None:
        return value
    if not is_granular(shape, value):
        return ABSENT if is_member(fields) else value
    out: Any
    if isinstance(value, dict):
        out = {}
        for name, each in value.items():
            left = without(each, child_shape(shape, name), fields.get(f"f:{name}"))
            if left is not ABSENT:
                out[name] = left
    else:
        assert shape.item is not None
        deeper = shape.item if shape.list_type == "map" else ATOMIC
        kept = [without(item, deeper, fields.get(element_of(item, shape))) for item in value]
        out = [each for each in kept if each is not ABSENT]
        if shape.list_type == "map":
            out = [each for each in out if set(each) - set(shape.list_keys) or not _only_keys_left(each, value)]
    if not out and value:
        return ABSENT
    return ABSENT if is_member(fields) and not out else out


def _only_keys_left(item: Any, before: list[Any]) -> bool:
    """Whether an item lost everything but its keys."""
    return not any(item == each for each in before)
