"""Mistakes in objects: which object, which field, what was found, what was expected.

A bad object never stops the others. A reader raises `ObjectError` for one object; its caller collects the errors of all objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from reprlib import Repr
from typing import Any, Final

import msgspec

_COMPLAINT: Final = re.compile(r"(?P<text>.*?)(?: - at `(?P<path>\$[^`]*)`)?$", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[(\.\.\.)\]")
_BOUND: Final = re.compile(r"([<>]=) (-?\d+)$")
_KNOWN_TYPES: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "nothing",
}
_PYTHON_TYPES: Final = {"str": str, "int": int, "float": float, "bool": bool, "object": Mapping, "array": (list, tuple)}


QUANTITY: Final = "a quantity such as 500m, 2 or 1.5Gi"
NOT_NEGATIVE: Final = "a quantity of 0 or more"


class ObjectError(ValueError):
    """One mistake in one object. `source` says where the object was read from, if it came from a file."""

    def __init__(self, kind: str, name: str, path: str, found: str, expected: str, source: str = "") -> None:
        self.kind, self.name, self.path, self.found, self.expected, self.source = kind, name, path, found, expected, source
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.source}: " if self.source else ""
        field = f" {self.path}:" if self.path else ""
        found = f" found {self.found}," if self.found else ""
        return f"{place}{self.kind} {self.name}:{field}{found} expected {self.expected}"

    def at(self, source: str) -> ObjectError:
        """The same mistake with its place."""
        return ObjectError(self.kind, self.name, self.path, self.found, self.expected, source)

    def within(self, kind: str, name: str, path: str) -> ObjectError:
        """The same mistake in the object that contains the part at `path`: in a workload, for a mistake in its pod template."""
        return ObjectError(kind, name, f"{path}.{self.path}" if self.path else path, self.found, self.expected, self.source)


_BRIEF: Final = Repr()
"""Bounds the work of `shown`: a few aliases in YAML can stand for millions of values."""
_BRIEF.maxlevel, _BRIEF.maxdict, _BRIEF.maxlist, _BRIEF.maxtuple, _BRIEF.maxset = 4, 6, 8, 8, 8
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 200


def shown(value: object, limit: int = 60) -> str:
    """A value as users would recognise it, cut to a readable length."""
    if value is None:
        return "nothing"
    text = _BRIEF.repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def from_validation(error: msgspec.ValidationError, manifest: object, kind: str, name: str) -> ObjectError:
    """A validation error of msgspec as an `ObjectError`, with the value of the field that it names."""
    match = _COMPLAINT.match(str(error))
    text = match["text"] if match else str(error)
    path = (match["path"] if match else None) or "$"
    wanted, _, got = text.partition(", got ")
    expected = wanted.removeprefix("Expected ")
    types = [part.strip(" `") for part in expected.split("|")]
    found, path = _value_at(manifest, path, text)
    known = [_KNOWN_TYPES[part] for part in types if part in _KNOWN_TYPES and part != "null"]
    if {"int", "float", "str"} <= set(types):
        known = [QUANTITY]
    if expected.startswith("`int` "):
        expected = f"a whole number {expected.removeprefix('`int` ')}"
    return ObjectError(kind, name, path, found, " or ".join(known) if known and got else expected[:1].lower() + expected[1:])


def _value_at(manifest: object, path: str, complaint: str) -> tuple[str, str]:
    """The value at a path like `$.spec.containers[0].resources.requests[...]`; `...` stands for some key of a mapping.
    The first key is taken under which the path ends at a value that causes the error."""
    got = complaint.partition(", got ")[2].strip("`")
    steps = _STEP.findall(path)
    value: Any = manifest
    walked = ""
    for i, (name, index, some) in enumerate(steps):
        if some and isinstance(value, Mapping):
            for key, item in value.items():
                if _is_to_blame(_below(item, steps[i + 1 :]), got, complaint):
                    value, walked = item, f"{walked}[{key}]"
                    break
            else:
                return got or shown(value), f"{walked}[...]"
        elif index and isinstance(value, Sequence) and int(index) < len(value):
            value, walked = value[int(index)], f"{walked}[{index}]"
        elif name and isinstance(value, Mapping):
            value, walked = value.get(name), f"{walked}.{name}" if walked else name
        else:
            return got or shown(value), walked
    return shown(value), walked


def _below(value: Any, steps: Sequence[tuple[str, str, str]]) -> object:
    """The value that the steps lead to."""
    for name, index, some in steps:
        if name and isinstance(value, Mapping):
            value = value.get(name)
        elif index and isinstance(value, Sequence) and int(index) < len(value):
            value = value[int(index)]
        elif some:
            return value
    return value


def _is_to_blame(value: object, got: str, complaint: str) -> bool:
    wanted = _PYTHON_TYPES.get(got)
    if got == "null":
        return value is None
    if wanted:
        return _is(value, got, wanted)
    bound = _BOUND.search(complaint)
    if bound is None or isinstance(value, bool) or not isinstance(value, int):
        return False
    return value < int(bound[2]) if bound[1] == ">=" else value > int(bound[2])


def _is(value: object, got: str, wanted: Any) -> bool:
    return isinstance(value, wanted) and not (got != "bool" and isinstance(value, bool))
