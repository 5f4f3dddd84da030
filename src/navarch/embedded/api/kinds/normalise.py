"""Bring an object into the form in which a real API server would give it back.

kube-apiserver decodes a body into Go structs and encodes it again. That drops unknown fields and empty values, refuses
values of the wrong type, and rewrites quantities and times. Here the same is done on dicts, guided by shapes; the input
is not changed. About 60 us for a pod.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Any

from navarch.embedded.api.kinds.types import Member, Shape, shape_of
from navarch.model.quantity import QuantityError, canonical

_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MICROS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)")
_EMPTY: tuple[Any, ...] = ("", 0, False)
_ZERO: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "quantity": "0", "int-or-string": 0}
_GO_TYPE = {"string": "string", "boolean": "bool", "number": "float64", "bytes": "[]uint8", "time": "string"}


class Mistyped(ValueError):
    """A value whose JSON type does not fit its field."""


class Normaliser:
    """One pass over one object; afterwards `unknown` lists the fields that were dropped."""

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def struct(self, value: Any, shape: Shape, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _mistyped(value, shape, path)
        out: dict[str, Any] = {}
        fields = shape.fields
        for name, each in value.items():
            member = fields.get(name)
            if member is None:
                self.unknown.append(f"{path}.{name}" if path else str(name))
                continue
            if each is None:
                continue
            base = member.shape.base
            if base == "string":
                if each.__class__ is not str:
                    raise _mistyped(each, member.shape, f"{path}.{name}", shape.name)
            else:
                each = self.value(each, member.shape, f"{path}.{name}" if path else name, shape.name)
            if member.pointer:
                out[name] = each
            elif each == [] or each == {}:
                if member.always:  # Go writes an unset list or map only if it is not empty
                    out[name] = None if base in ("list", "map") else each
            elif member.always or (each is not None and each not in _EMPTY):
                out[name] = each
        for member in shape.always:
            if member.name not in out:
                out[member.name] = self.zero(member)
        return out

    def zero(self, member: Member) -> Any:
        """What Go writes for a field that was never set."""
        base = member.shape.base
        if member.pointer:
            return None
        return self.struct({}, member.shape, "") if base == "struct" else _ZERO.get(base)

    def value(self, value: Any, shape: Shape, path: str, holder: str = "") -> Any:
        """One value. `holder` is the type that declares the field; the error names it."""
        base = shape.base
        if base == "struct":
            if value is not None and not isinstance(value, dict):
                raise _mistyped(value, shape, path, holder)
            return self.struct({} if value is None else value, shape, path)
        if base == "any":
            return value
        if base == "schema":  # a JSON schema inside a JSON schema, or a plain yes or no
            if isinstance(value, bool):
                return value
            return self.struct(value, shape_of("apiextensions.v1.JSONSchemaProps"), path)
        if value is None:
            return _ZERO.get(base)
        if base == "list":
            if value.__class__ is not list:
                raise _mistyped(value, shape, path, holder)
            item = shape.item
            assert item is not None
            return [self.value(each, item, f"{path}[{index}]", holder) for index, each in enumerate(value)]
        if base == "map":
            if not isinstance(value, dict):
                raise _mistyped(value, shape, path, holder)
            item = shape.item
            assert item is not None
            return {key: self.value(each, item, f"{path}.{key}", holder) for key, each in value.items()}
        return scalar(value, shape, path, holder)


def scalar(value: Any, shape: Shape, path: str, holder: str = "") -> Any:
    """A leaf of the object, checked and in canonical form."""
    base = shape.base
    kind = value.__class__
    if base == "string":
        if kind is str:
            return value
    elif base == "integer":
        if kind is int and _fits(value, shape.format):
            return value
    elif base == "boolean":
        if kind is bool:
            return value
    elif base == "quantity":
        if kind in (str, int, float):
            try:
                return canonical(value)
            except QuantityError as error:
                raise Mistyped(f"{path}: quantities must match the regular expression: {error}") from None
    elif base == "int-or-string":
        if kind is str or (kind is int and _fits(value, "int32")):
            return value
    elif base in ("time", "microtime"):
        if kind is str:
            return _time(value, base == "microtime")
    elif base == "bytes":
        if kind is str:
            return _base64(value, path)
    elif kind in (int, float):
        return value
    raise _mistyped(value, shape, path, holder)


def _fits(value: int, form: str) -> bool:
    bits = 31 if form == "int32" else 63
    return -(1 << bits) <= value < (1 << bits)


def _base64(value: str, path: str) -> str:
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise Mistyped(f"{path}: illegal base64 data: found {value[:40]!r}") from None
    return value.replace("\n", "").replace("\r", "")


def _time(value: str, micro: bool) -> str | None:
    if (_MICROS if micro else _SECONDS).fullmatch(value):
        return value
    if not value:
        return None
    match = _RFC3339.fullmatch(value)
    if match is None:
        layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
        raise Mistyped(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"')
    date, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(date.upper() + zone.upper().replace("Z", "+00:00")).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Mistyped(f'parsing time "{value}": out of range') from None
    text = f"{moment.year:04d}{moment.strftime('-%m-%dT%H:%M:%S')}"
    return f"{text}.{(fraction or '')[:6].ljust(6, '0')}Z" if micro else f"{text}Z"


def _mistyped(value: Any, shape: Shape, path: str, holder: str = "") -> Mistyped:
    found = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")
    expected = _GO_TYPE.get(shape.base)
    if shape.base == "integer":
        expected = shape.format or "int64"
        found = f"{found} {value}" if found == "number" else found
    elif expected is None:
        expected = {"struct": shape.name.removeprefix("core."), "list": "[]", "map": "map[string]"}.get(shape.base, shape.base)
    where = ".".join(filter(None, (holder.rpartition(".")[2], re.sub(r"\[\d+\]", "", path))))
    return Mistyped(f"json: cannot unmarshal {found} into Go struct field {where} of type {expected}")
