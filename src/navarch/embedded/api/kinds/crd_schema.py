"""Structural schemas of custom kinds: prune what they do not name, fill defaults, refuse what does not fit.

A schema is compiled once, when its CustomResourceDefinition is established. Pruning and defaulting follow the rules of
apiextensions: unknown fields go away unless `x-kubernetes-preserve-unknown-fields` keeps them, a null where a default
exists is replaced by it, embedded resources keep apiVersion, kind and metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from navarch.embedded.api.errors import cause
from navarch.embedded.api.kinds.types import Member, Shape, shape_of
from navarch.embedded.api.validation.names import is_dns_label, is_subdomain
from navarch.model.patterns import PatternError, compile_pattern
from navarch.model.quantity import QuantityError, parse_nano
from navarch.object_types import Manifest

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
_JSON_TYPE = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")


class CustomSchema:
    """One version's schema."""

    def __init__(self, schema: Manifest) -> None:
        self.schema = schema
        self.has_defaults = '"default"' in json.dumps(schema)
        self.shape = shape_of_schema(schema)
        self.shape.fields["metadata"] = Member("metadata", shape_of("meta.v1.ObjectMeta"), always=True)
        for name in ("apiVersion", "kind"):
            self.shape.fields[name] = Member(name, Shape("string"))

    def prune(self, value: Manifest) -> tuple[Manifest, list[str]]:
        """A copy without fields that the schema does not name, and the paths of those."""
        dropped: list[str] = []
        pruned: Manifest = _prune(value, self.schema, "", dropped)
        return pruned, dropped

    def default(self, obj: Manifest) -> None:
        """Fill defaults in place."""
        if self.has_defaults:
            _default(obj, self.schema)

    def faults(self, obj: Manifest) -> list[Manifest]:
        """Causes for each value that does not fit."""
        body = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
        return list(_faults(body, self.schema, "", root=True))


def shape_of_schema(schema: Manifest) -> Shape:
    """The shape that patches and server-side apply see."""
    kind = schema.get("type")
    if schema.get(INT_OR_STRING):
        return Shape("int-or-string")
    if kind == "object":
        if schema.get("properties"):
            shape = Shape("struct", open=bool(schema.get(PRESERVE)))
            shape.atomic = schema.get("x-kubernetes-map-type") == "atomic"
            for name, prop in schema["properties"].items():
                shape.fields[name] = Member(name, shape_of_schema(prop), pointer=True)
            return shape
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            atomic = schema.get("x-kubernetes-map-type") == "atomic"
            return Shape("map", item=shape_of_schema(values), atomic=atomic)
        return Shape("struct", open=True, atomic=schema.get("x-kubernetes-map-type") == "atomic")
    if kind == "array":
        item = schema.get("items") or {}
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        shape = Shape("list", item=shape_of_schema(item), list_keys=keys)
        shape.list_type = schema.get("x-kubernetes-list-type") or "atomic"
        properties = item.get("properties") or {}
        shape.key_defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}
        return shape
    if kind in ("string", "integer", "number", "boolean"):
        return Shape(kind)
    return Shape("any")


def _prune(value: Any, schema: Manifest, path: str, dropped: list[str]) -> Any:
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        values = schema.get("additionalProperties")
        keep = bool(schema.get(PRESERVE)) or values is True
        out: Manifest = {}
        for key, each in value.items():
            where = f"{path}.{key}" if path else str(key)
            if key in properties:
                out[key] = _prune(each, properties[key], where, dropped)
            elif isinstance(values, dict):
                out[key] = _prune(each, values, where, dropped)
            elif keep or (schema.get(EMBEDDED) and key in ("apiVersion", "kind", "metadata")):
                out[key] = each
            else:
                dropped.append(where)
        return out
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            return [_prune(each, items, f"{path}[{index}]", dropped) for index, each in enumerate(value)]
    return value


def _default(value: Any, schema: Manifest) -> None:
    if isinstance(value, dict):
        for name, prop in (schema.get("properties") or {}).items():
            if "default" in prop and (name not in value or (value[name] is None and not prop.get("nullable"))):
                value[name] = deepcopy(prop["default"])
            if name in value:
                _default(value[name], prop)
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            named = schema.get("properties") or {}
            for key, each in value.items():
                if key not in named:
                    _default(each, values)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for each in value:
            _default(each, schema["items"])


def _wrong(message: str, path: str, value: Any, reason: str = "FieldValueInvalid") -> Manifest:
    shown = json.dumps(value) if not isinstance(value, dict | list) else json.dumps(value, separators=(",", ":"))
    return cause(reason, f"Invalid value: {shown}: {message}", path or "<nil>")


def _faults(value: Any, schema: Manifest, path: str, root: bool = False) -> Iterator[Manifest]:
    if value is None:
        if schema.get("nullable") or not schema.get("type"):
            return
        found = f'Invalid value: "null": {path} in body must be of type {schema["type"]}: "null"'
        yield cause("FieldValueTypeInvalid", found, path)
        return
    if schema.get(INT_OR_STRING):
        if not isinstance(value, int | str) or isinstance(value, bool):
            message = f'Invalid value: "{_type_of(value)}": {path} in body must be of type integer,string: "{_type_of(value)}"'
            yield cause("FieldValueTypeInvalid", message, path)
            return
    elif schema.get("type") and not _is_type(value, schema["type"]):
        found = _type_of(value)
        message = f'Invalid value: "{found}": {path} in body must be of type {schema["type"]}: "{found}"'
        yield cause("FieldValueTypeInvalid", message, path)
        return
    if "enum" in schema and value not in schema["enum"]:
        offered = ", ".join(json.dumps(each) for each in schema["enum"])
        yield cause("FieldValueNotSupported", f"Unsupported value: {json.dumps(value)}: supported values: {offered}", path)
    if isinstance(value, dict):
        yield from _object_faults(value, schema, path, root)
    elif isinstance(value, list):
        yield from _array_faults(value, schema, path)
    elif isinstance(value, str):
        yield from _string_faults(value, schema, path)
    elif not isinstance(value, bool):
        yield from _number_faults(value, schema, path)
    yield from _combined_faults(value, schema, path)


def _object_faults(value: Manifest, schema: Manifest, path: str, root: bool) -> Iterator[Manifest]:
    lead = f"{path}." if path else ""
    for name in schema.get("required") or ():
        if name not in value and not (root and name in ("metadata", "apiVersion", "kind")):
            yield cause("FieldValueRequired", "Required value", f"{lead}{name}")
    properties = schema.get("properties") or {}
    values = schema.get("additionalProperties")
    for name, each in value.items():
        if name in properties:
            yield from _faults(each, properties[name], f"{lead}{name}")
        elif isinstance(values, dict):
            yield from _faults(each, values, f"{lead}{name}")
    count = len(value)
    if count > schema.get("maxProperties", count):
        yield cause("FieldValueTooMany", f"Too many: {count}: must have at most {schema['maxProperties']} items", path)
    if count < schema.get("minProperties", count):
        yield _wrong(f"{path} in body should have at least {schema['minProperties']} properties", path, value)


def _array_faults(value: list[Any], schema: Manifest, path: str) -> Iterator[Manifest]:
    items = schema.get("items")
    if isinstance(items, dict):
        for index, each in enumerate(value):
            yield from _faults(each, items, f"{path}[{index}]")
    if len(value) > schema.get("maxItems", len(value)):
        yield cause("FieldValueTooMany", f"Too many: {len(value)}: must have at most {schema['maxItems']} items", path)
    if len(value) < schema.get("minItems", 0):
        yield _wrong(f"{path} in body should have at least {schema['minItems']} items", path, len(value))
    list_type = schema.get("x-kubernetes-list-type")
    if list_type not in ("set", "map") and not schema.get("uniqueItems"):
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen: list[Any] = []
    for index, each in enumerate(value):
        mark = {key: each.get(key) for key in keys} if list_type == "map" and isinstance(each, dict) else each
        if mark in seen:
            yield cause("FieldValueDuplicate", f"Duplicate value: {json.dumps(mark)}", f"{path}[{index}]")
        seen.append(mark)


def _string_faults(value: str, schema: Manifest, path: str) -> Iterator[Manifest]:
    if len(value) > schema.get("maxLength", len(value)):
        yield cause("FieldValueTooLong", f"Too long: may not be more than {schema['maxLength']} bytes", path)
    if len(value) < schema.get("minLength", 0):
        yield _wrong(f"{path} in body should be at least {schema['minLength']} chars long", path, value)
    pattern = schema.get("pattern")
    if pattern and not _search(pattern, value):
        yield _wrong(f"{path} in body should match '{pattern}'", path, value)
    form = schema.get("format")
    if form and not _has_format(value, form):
        yield _wrong(f"{path} in body must be of type {form}: {json.dumps(value)}", path, value)


def _number_faults(value: float, schema: Manifest, path: str) -> Iterator[Manifest]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and (value < least or (schema.get("exclusiveMinimum") and value == least)):
        bound = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield _wrong(f"{path} in body should be {bound} {least}", path, value)
    if most is not None and (value > most or (schema.get("exclusiveMaximum") and value == most)):
        bound = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield _wrong(f"{path} in body should be {bound} {most}", path, value)
    step = schema.get("multipleOf")
    if step and value % step:
        yield _wrong(f"{path} in body should be a multiple of {step}", path, value)
    if schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
        yield _wrong(f"{path} in body must be of type int32", path, value)


def _combined_faults(value: Any, schema: Manifest, path: str) -> Iterator[Manifest]:
    for part in schema.get("allOf") or ():
        yield from _faults(value, part, path)
    options = schema.get("anyOf")
    if options and not any(_fits(value, part, path) for part in options):
        yield _wrong(f"{path} in body must validate at least one schema (anyOf)", path, value)
    options = schema.get("oneOf")
    if options and sum(_fits(value, part, path) for part in options) != 1:
        yield _wrong(f"{path} in body must validate one and only one schema (oneOf)", path, value)
    if schema.get("not") and _fits(value, schema["not"], path):
        yield _wrong(f"{path} in body must not validate the schema (not)", path, value)


def _fits(value: Any, schema: Manifest, path: str) -> bool:
    return next(_faults(value, schema, path), None) is None


def _type_of(value: Any) -> str:
    return _JSON_TYPE.get(type(value), "null")


def _is_type(value: Any, wanted: str) -> bool:
    found = _type_of(value)
    if wanted == "number":
        return found in ("integer", "number")
    if wanted == "integer" and found == "number":
        return bool(value == int(value))
    return found == wanted


def _search(pattern: str, value: str) -> bool:
    try:
        return compile_pattern(pattern).search(value)
    except PatternError:  # the server that accepted the definition knew more of patterns: no value is refused for it
        return True


def _has_format(value: str, form: str) -> bool:
    if form == "date-time":
        return bool(_DATE_TIME.fullmatch(value))
    if form == "uuid":
        return bool(_UUID.fullmatch(value))
    if form == "quantity":
        try:
            parse_nano(value)
        except QuantityError:
            return False
    if form in ("dns1123subdomain", "hostname"):
        return is_subdomain(value)
    return is_dns_label(value) if form == "dns1123label" else True
