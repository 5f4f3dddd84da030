"""The shapes of objects: one `Shape` for every value in a kind, with what merging and normalising need to know.

Shapes of the built-in kinds come from `schemas/types.json`; those of custom kinds from their structural schema
(`crd_schema`). Patches, server-side apply, normalising and printing all read the same shapes, so a list that merges by
key does so everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

import msgspec

Base = Literal[
    "struct", "map", "list", "string", "integer", "number", "boolean", "quantity", "int-or-string", "time", "microtime",
    "bytes", "any", "schema",
]  # fmt: skip
SPECIAL: Mapping[str, Base] = {
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "int-or-string",
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "microtime",
    "runtime.RawExtension": "any",
    "meta.v1.FieldsV1": "any",
    "apiextensions.v1.JSON": "any",
    "apiextensions.v1.JSONSchemaPropsOrBool": "schema",
    "apiextensions.v1.JSONSchemaPropsOrArray": "schema",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "any",
}


@dataclass(slots=True, eq=False)
class Shape:
    """What one value is, and how it merges."""

    base: Base
    name: str = ""
    """The type's name for structs (`core.v1.Pod`), else empty."""
    format: str = ""
    fields: dict[str, Member] = field(default_factory=dict)
    always: tuple[Member, ...] = ()
    """Members of a struct that are written even when they are not set."""
    item: Shape | None = None
    """The values of a map or a list."""
    list_type: str = "atomic"
    list_keys: tuple[str, ...] = ()
    key_defaults: dict[str, Any] = field(default_factory=dict)
    """Defaults of keys that an item may leave out (a port's protocol)."""
    atomic: bool = False
    """A map or struct that server-side apply owns as a whole."""
    open: bool = False
    """A struct that keeps fields it does not name (custom kinds)."""


@dataclass(slots=True, eq=False)
class Member:
    """One field of a struct."""

    name: str
    shape: Shape
    pointer: bool = False
    always: bool = False
    patch_strategies: tuple[str, ...] = ()
    merge_key: str = ""


def data(name: str) -> Any:
    """One of the data files in `schemas/`."""
    return msgspec.json.decode((resources.files("navarch.embedded.schemas") / f"{name}.json").read_bytes())


@lru_cache(maxsize=1)
def schemas() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = data("types")
    return found


_shapes: dict[str, Shape] = {}


def shape_of(name: str) -> Shape:
    """The shape of a built-in type, made once; types may refer to themselves.

    >>> shape_of("core.v1.PodSpec").fields["containers"].shape.list_keys
    ('name',)
    """
    found = _shapes.get(name)
    if found is not None:
        return found
    if name in SPECIAL:
        found = _shapes[name] = Shape(SPECIAL[name], name)
        return found
    schema = schemas()[name]
    if "properties" not in schema:
        found = _shapes[name] = _anonymous(schema)
        return found
    shape = _shapes[name] = Shape("struct", name, atomic=schema.get("x-kubernetes-map-type") == "atomic")
    for field_name, prop in schema["properties"].items():
        shape.fields[field_name] = Member(
            field_name,
            _anonymous(prop),
            pointer=bool(prop.get("x-pointer")),
            always=bool(prop.get("x-always")),
            patch_strategies=tuple(filter(None, prop.get("x-kubernetes-patch-strategy", "").split(","))),
            merge_key=prop.get("x-kubernetes-patch-merge-key", ""),
        )
    shape.always = tuple(member for member in shape.fields.values() if member.always)
    return shape


def _anonymous(schema: dict[str, Any]) -> Shape:
    reference = schema.get("$ref")
    if reference:
        target = shape_of(reference)
        if schema.get("x-kubernetes-map-type") == "atomic" and not target.atomic:
            return Shape(target.base, target.name, fields=target.fields, always=target.always, atomic=True)
        return target
    kind = schema.get("type")
    if kind == "array":
        item = _anonymous(schema["items"])
        shape = Shape("list", item=item, list_type=schema.get("x-kubernetes-list-type", "atomic"))
        shape.list_keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        if "protocol" in shape.list_keys:
            shape.key_defaults = {"protocol": "TCP"}
        return shape
    if kind == "object":
        values = schema.get("additionalProperties")
        if not isinstance(values, dict):
            return Shape("any")
        return Shape("map", item=_anonymous(values), atomic=schema.get("x-kubernetes-map-type") == "atomic")
    if kind == "string" and schema.get("format") == "byte":
        return Shape("bytes")
    if kind in ("string", "integer", "number", "boolean"):
        return Shape(kind, format=schema.get("format", ""))
    return Shape("any")
