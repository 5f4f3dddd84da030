"""The values that device expressions handle beyond plain ones: versions, amounts, and the device itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, Final

from msgspec import Struct, field

from navarch.model.quantity import NANO, QuantityError, format_nano, parse_nano

_IDENTIFIER = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER: Final = re.compile(
    rf"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_LONGEST_VERSION: Final = 1024
_LONGEST_QUANTITY: Final = 256
_MOST_DIGITS: Final = 19
"""A number of a version fits into 64 bits."""


def shortened(text: str) -> str:
    """A text as messages show it: expressions can build long ones."""
    return repr(text) if len(text) <= 100 else f"{text[:100]!r}..."


class CelError(ValueError):
    """Anything wrong with an expression; says what and where."""


class CelRuntimeError(CelError):
    """The expression is sound but this device gives it nothing to work with, e.g. an attribute is missing."""


class CelCostError(CelError):
    """The evaluation took more steps than it may. No `||` makes good for it."""


@total_ordering
@dataclass(frozen=True, eq=False, slots=True)
class Semver:
    """A semantic version 2.0.0; build metadata has no say in the order. A dataclass, because a Struct keeps its own `!=`."""

    major: int
    minor: int
    patch: int
    pre_release: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, *, normalise: bool = False) -> Semver:
        """`normalise` accepts a leading v, missing parts and leading zeros."""
        found = text[: _LONGEST_VERSION + 1]
        if normalise:
            core = re.split(r"[-+]", found.removeprefix("v"), maxsplit=1)[0]
            rest = found.removeprefix("v")[len(core) :]
            parts = [part.lstrip("0") or "0" if part.isdigit() else part for part in core.split(".")]
            found = ".".join(parts + ["0"] * (3 - len(parts))) + rest
        match = _SEMVER.fullmatch(found) if len(found) <= _LONGEST_VERSION else None
        if match is None or any(len(number) > _MOST_DIGITS for number in match.groups()[:3]):
            raise CelRuntimeError(f"{shortened(text)} is not a semantic version: expected major.minor.patch")
        major, minor, patch, pre = match.groups()
        return cls(int(major), int(minor), int(patch), tuple(pre.split(".")) if pre else ())

    def _order(self) -> tuple[Any, ...]:
        # A release stands above its pre-releases; among those, numbers stand below words.
        words = tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in self.pre_release)
        return self.major, self.minor, self.patch, not self.pre_release, words

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._order() == other._order()

    def __lt__(self, other: Semver) -> bool:
        return self._order() < other._order()

    def __hash__(self) -> int:
        return hash(self._order())


class Amount(Struct, frozen=True, order=True):
    """A Kubernetes quantity, exact in billionths."""

    nano: int

    @classmethod
    def parse(cls, text: str) -> Amount:
        if len(text) > _LONGEST_QUANTITY:
            raise CelRuntimeError(f"{shortened(text)} is not a quantity: found {len(text)} characters")
        try:
            return cls(parse_nano(text))
        except QuantityError as error:
            raise CelRuntimeError(str(error)) from error

    @property
    def whole(self) -> bool:
        return self.nano % NANO == 0

    def __str__(self) -> str:
        return format_nano(self.nano)


class Domains(dict[str, Any]):
    """Domain to its entries. A domain without entries reads as empty; `in` is false for it."""

    def __missing__(self, domain: str) -> Mapping[str, Any]:
        return {}


class Device(Struct, frozen=True):
    """What an expression knows as `device`."""

    driver: str
    attributes: Domains = field(default_factory=Domains)
    capacity: Domains = field(default_factory=Domains)
    allow_multiple: bool = False

    @classmethod
    def read(cls, driver: str, manifest: Mapping[str, Any]) -> Device:
        """A device of a ResourceSlice; names without a domain belong to the driver's."""
        body = manifest.get("basic") or manifest
        attributes, capacity = Domains(), Domains()
        for name, entry in (body.get("attributes") or {}).items():
            domain, _, short = name.rpartition("/")
            attributes.setdefault(domain or driver, {})[short] = _attribute(name, entry)
        for name, entry in (body.get("capacity") or {}).items():
            domain, _, short = name.rpartition("/")
            value = entry["value"] if isinstance(entry, Mapping) else entry
            capacity.setdefault(domain or driver, {})[short] = Amount(parse_nano(value))
        return cls(driver, attributes, capacity, bool(manifest.get("allowMultipleAllocations")))


def _attribute(name: str, entry: Mapping[str, Any]) -> Any:
    if entry.get("version") is not None:
        return Semver.parse(entry["version"])
    for kind in ("string", "int", "bool"):
        if entry.get(kind) is not None:
            return entry[kind]
    raise CelError(f"attribute {name!r}: found {dict(entry)!r}, expected one of string, int, bool, version")
