"""Nested sections of a policy file, declared once and checked. Every mistake names its path and line."""

from __future__ import annotations

from msgspec import Struct

from navarch.engine.arguments import Argument, WrongKind, find
from navarch.engine.policy.findings import Findings
from navarch.engine.policy.source import Path


class Nested(Struct, frozen=True):
    """A mapping inside a mapping, or with `many` a list of such mappings."""

    name: str
    fields: tuple[Argument | Nested, ...]
    many: bool = False
    no_effect: str = ""
    """Why it has no effect; empty: it has."""


Fields = tuple[Argument | Nested, ...]


def check(findings: Findings, path: Path, value: object, fields: Fields, what: str) -> dict[str, object]:
    """What was given and holds, of its kinds; durations in seconds."""
    nested = {f.name: f for f in fields if isinstance(f, Nested)}
    plain = tuple(f for f in fields if isinstance(f, Argument))
    held: dict[str, object] = {}
    for name, raw in findings.mapping(path, value).items():
        inner = (*path, name)
        if name in nested:
            if nested[name].no_effect:
                findings.warn(inner, f"{name} of {what} has no effect: {nested[name].no_effect}")
            held[name] = _nested(findings, inner, raw, nested[name], what)
            continue
        argument = find(plain, name)
        if argument is None:
            findings.unknown(inner, f"field of {what}", name, [f.name for f in fields])
            continue
        if not argument.has_effect:
            findings.warn(inner, f"{name} of {what} has no effect: {argument.doc}")
        try:
            held[name] = argument.read(raw, findings.reading)
            if argument.check_entry is not None:
                held[name] = findings.entries(inner, held[name], argument.check_entry, what)
        except WrongKind as wrong:
            findings.object_to(inner, str(wrong), "its default is used")
    return held


def _nested(findings: Findings, path: Path, value: object, nested: Nested, what: str) -> object:
    if not nested.many:
        return check(findings, path, value, nested.fields, what)
    return [check(findings, (*path, i), item, nested.fields, what) for i, item in enumerate(findings.items(path, value))]
