"""Protobuf bodies: typed Go clients send their creates and updates so. Decoded only; answers are always JSON.

A body is four magic bytes and a `runtime.Unknown` envelope that names the kind and holds the message. The tables in
`schemas/protobuf.json` say what each field number is; what Go embeds is spread into its holder, as JSON has it.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from navarch.embedded.api.errors import bad_request
from navarch.embedded.api.kinds.types import data

PROTOBUF = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
GROUP_FOLDERS = {"": "core"}
Field = tuple[str, str, str]
Wire = tuple[int, int, Any]


class Malformed(ValueError):
    """Bytes that are not the message they should be."""


@lru_cache(maxsize=1)
def messages() -> dict[str, dict[int, Field]]:
    """message -> field number -> (JSON name, shape, type)."""
    return {
        name: {int(number): (each[0], each[1], each[2]) for number, each in fields.items()}
        for name, fields in data("protobuf").items()
    }


def decode_object(body: bytes) -> dict[str, Any]:
    """The JSON form of a protobuf body, with apiVersion and kind; 400 if it cannot be read."""
    if not body.startswith(MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        api_version = kind = ""
        raw = b""
        for number, _, value in wires(body[len(MAGIC) :]):
            if number == 1:
                for inner, _, text in wires(_bytes(value)):
                    if inner == 1:
                        api_version = _bytes(text).decode()
                    elif inner == 2:
                        kind = _bytes(text).decode()
            elif number == 2:
                raw = _bytes(value)
        name = message_name(api_version, kind)
        if name not in messages():
            raise bad_request(f'no kind "{kind}" is registered for version "{api_version}" in this server')
        return {"apiVersion": api_version, "kind": kind, **_message(raw, name, 0)}
    except (Malformed, UnicodeDecodeError, struct.error, OverflowError, msgspec.DecodeError) as error:
        raise bad_request(f"the protobuf body cannot be decoded: {error}") from None


def message_name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    if kind == "DeleteOptions":
        return "meta.v1.DeleteOptions"
    return f"{group.partition('.')[0] if group else 'core'}.{version}.{kind}"


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed("a length-delimited field was expected")
    return value


def _varint(body: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(body) or shift > 63:
            raise Malformed("a varint does not end")
        byte = body[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7


def wires(body: bytes) -> Iterator[Wire]:
    """(field number, wire type, value) of each field of a message."""
    position = 0
    while position < len(body):
        tag, position = _varint(body, position)
        number, kind = tag >> 3, tag & 7
        value: Any
        if kind == 0:
            value, position = _varint(body, position)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if position + size > len(body):
                raise Malformed("a fixed field is cut short")
            value, position = body[position : position + size], position + size
        elif kind == 2:
            length, position = _varint(body, position)
            if position + length > len(body):
                raise Malformed("a field is longer than its message")
            value, position = body[position : position + length], position + length
        else:
            raise Malformed(f"wire type {kind} is not used by Kubernetes")
        yield number, kind, value


def _message(body: bytes, name: str, depth: int) -> Any:
    if depth > 100:
        raise Malformed("messages are nested too deeply")
    special = SPECIAL.get(name)
    if special is not None:
        return special(body)
    fields = messages()[name]
    out: dict[str, Any] = {}
    for number, _, value in wires(body):
        field = fields.get(number)
        if field is None:
            continue
        json_name, shape, kind = field
        if shape == "{}":
            key, entry = _entry(_bytes(value), kind, depth)
            out.setdefault(json_name, {})[key] = entry
        elif shape == "[]":
            out.setdefault(json_name, []).append(_value(value, kind, depth))
        elif not json_name:
            out.update(_value(value, kind, depth))
        else:
            out[json_name] = _value(value, kind, depth)
    if name.endswith("ExtraValue") or name == "meta.v1.Verbs":
        return out.get("items", [])
    return out


def _entry(body: bytes, kind: str, depth: int) -> tuple[str, Any]:
    key, value = "", None
    for number, _, each in wires(body):
        if number == 1:
            key = _bytes(each).decode()
        elif number == 2:
            value = _value(each, kind, depth)
    if value is None:
        value = _value(b"", kind, depth)
    return key, value


def _value(value: Any, kind: str, depth: int) -> Any:
    if "." in kind:
        return _message(_bytes(value), kind, depth + 1)
    if kind == "string":
        return _bytes(value).decode()
    if kind == "bytes":
        return base64.b64encode(_bytes(value)).decode()
    if kind == "bool":
        return bool(value)
    if kind == "double":
        return struct.unpack("<d", _bytes(value))[0]
    if not isinstance(value, int):
        raise Malformed(f"a number was expected for {kind}")
    return value - (1 << 64) if value >= 1 << 63 else value


def _time(body: bytes, digits: int) -> str | None:
    seconds = nanos = 0
    for number, _, value in wires(body):
        if number == 1:
            seconds = _value(value, "int64", 0)
        elif number == 2:
            nanos = _value(value, "int32", 0)
    if not body:
        return None
    moment = datetime.fromtimestamp(0, UTC).timestamp() + seconds
    text = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{nanos // 1000:06d}Z" if digits else f"{text}Z"


def _text(body: bytes) -> str:
    return next((_bytes(value).decode() for number, _, value in wires(body) if number == 1), "0")


def _int_or_string(body: bytes) -> int | str:
    kind = whole = 0
    text = ""
    for number, _, value in wires(body):
        if number == 1:
            kind = value
        elif number == 2:
            whole = _value(value, "int32", 0)
        elif number == 3:
            text = _bytes(value).decode()
    return text if kind == 1 else whole


def _raw_json(body: bytes) -> Any:
    raw = next((_bytes(value) for number, _, value in wires(body) if number == 1), b"null")
    return msgspec.json.decode(raw)


def _schema_or(body: bytes) -> Any:
    """JSONSchemaPropsOrBool, OrArray and OrStringArray: a schema, or the other thing."""
    schema: Any = None
    others: list[Any] = []
    flag = False
    for number, kind, value in wires(body):
        if kind == 0:
            flag = bool(value)
        elif number == 1 or (number == 2 and schema is None and not others and flag):
            schema = _message(_bytes(value), "apiextensions.v1.JSONSchemaProps", 1)
        else:
            others.append(value)
    if schema is not None:
        return schema
    if others:
        try:
            return [_bytes(each).decode() for each in others]
        except UnicodeDecodeError:
            return [_message(_bytes(each), "apiextensions.v1.JSONSchemaProps", 1) for each in others]
    return flag


SPECIAL: dict[str, Any] = {
    "meta.v1.Time": lambda body: _time(body, 0),
    "meta.v1.MicroTime": lambda body: _time(body, 6),
    "resource.Quantity": _text,
    "intstr.IntOrString": _int_or_string,
    "runtime.RawExtension": _raw_json,
    "meta.v1.FieldsV1": _raw_json,
    "apiextensions.v1.JSON": _raw_json,
    "apiextensions.v1.JSONSchemaPropsOrBool": _schema_or,
    "apiextensions.v1.JSONSchemaPropsOrArray": _schema_or,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": _schema_or,
}
