"""Arguments of plugins and actions in a policy file: declared, checked, and read with defaults.

A plugin lists its `Argument`s as a class variable. The policy loader checks a file against them, `navarch policy check`
prints them, and the plugin reads them through `Arguments`, so a name is written once and a default lives in one place.

Values are read in one of three ways, because three systems do so:

- `strict` refuses what is not of the declared kind;
- `yaml` takes what a typed YAML reader takes: a bool may be a string, a float may be an integer, an integer is never a string;
- `text` reads every value from its text.

With the last two, a value that cannot be read leaves the default.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

Kind = Literal["int", "float", "bool", "str", "duration", "mapping", "list", "any"]
Reading = Literal["strict", "yaml", "text"]

_WORDS: Mapping[Kind, str] = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "a string",
    "duration": 'a duration such as "90s" or "1h30m"',
    "mapping": "a mapping",
    "list": "a list",
    "any": "any value",
}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"(?:{_DURATION_PART.pattern})+")
TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
"""What Go reads as true."""
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class WrongKind(ValueError):
    """A value that is not of its argument's kind; the text says what was found and what was expected."""


class Argument(Struct, frozen=True):
    """One argument. A `name` that ends in `*` stands for every name with that beginning: `binpack.resources.*`. `default` is what
    the plugin gets if the policy does not set it, in the form in which it is read: a duration in seconds."""

    name: str
    kind: Kind
    default: object = None
    doc: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    fields: tuple[Argument, ...] = ()
    """Of a mapping: the arguments inside it. The loader checks each of them, and what is wrong with one leaves the others alone."""
    has_effect: bool = True
    """False: accepted because files of another system name it. The loader warns that it changes nothing; `doc` says why."""
    check: Callable[[Any], object] | None = None
    """Reads a list or mapping further and raises WrongKind for what is wrong in it; what it returns is not used."""
    check_entry: Callable[[Any], object] | None = None
    """Of a list: raises WrongKind for a wrong entry. The loader objects to that entry, and the others stay."""

    def matches(self, name: str) -> bool:
        if self.name.endswith("*"):
            return len(name) >= len(self.name) and name.startswith(self.name[:-1])
        return name == self.name

    def read(self, value: object, reading: Reading = "strict") -> object:
        """The value as its kind (a duration in seconds), or WrongKind.

        >>> Argument("weight", "int", 1).read("2", "text")
        2
        >>> Argument("wait", "duration").read("1m30s")
        90.0
        """
        found = read_kind(self.kind, value, reading)
        if self.choices and found not in self.choices:
            raise WrongKind(f"found {value!r}, expected one of {', '.join(self.choices)}")
        if isinstance(found, float) and math.isnan(found):
            raise WrongKind(_complaint(self.kind, value))
        if self.minimum is not None and isinstance(found, int | float) and found < self.minimum:
            raise WrongKind(f"found {value!r}, expected {self.minimum:g} or more")
        if self.maximum is not None and isinstance(found, int | float) and found > self.maximum:
            raise WrongKind(f"found {value!r}, expected {self.maximum:g} or less")
        if self.check is not None:
            self.check(found)
        return found


def read_kind(kind: Kind, value: object, reading: Reading = "strict") -> object:
    if reading == "text" and not isinstance(value, Mapping | list) and value is not None:
        return _from_text(kind, _text(value), value)
    match kind:
        case "any":
            return value
        case "int" if isinstance(value, int) and not isinstance(value, bool) and _in_64_bits(value):
            return value
        case "float" if isinstance(value, float):
            return value
        case "float" if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1023:
            return float(value)
        case "bool" if isinstance(value, bool):
            return value
        case "bool" if reading == "yaml" and isinstance(value, str):
            return _from_text(kind, value, value)
        case "str" if isinstance(value, str):
            return value
        case "duration" if isinstance(value, str):
            return _from_text(kind, value, value)
        case "mapping" if isinstance(value, Mapping):
            return value
        case "list" if isinstance(value, list | tuple):
            return list(value)
    raise WrongKind(_complaint(kind, value))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _from_text(kind: Kind, text: str, value: object) -> object:
    try:
        match kind:
            case "int" if _in_64_bits(int(text)):
                return int(text)
            case "float" if not math.isinf(float(text)) or "inf" in text.lower():
                return float(text)
            case "bool" if text in TRUE or text in _FALSE:
                return text in TRUE
            case "duration":
                return duration(text)
            case "str" | "any":
                return text
    except ValueError:
        pass
    raise WrongKind(_complaint(kind, value))


def _in_64_bits(number: int) -> bool:
    """Other systems read integers of 64 bits, and so do the arrays of a cycle."""
    return -(2**63) <= number < 2**63


def _complaint(kind: Kind, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and kind in ("int", "float"):
        return f"found {_shortened(value)}, expected {_WORDS[kind]} of 64 bits"
    found = {"NoneType": "nothing", "str": f"the string {value!r}", "dict": "a mapping", "list": "a list"}
    return f"found {found.get(type(value).__name__, repr(value))}, expected {_WORDS[kind]}"


def _shortened(number: int) -> str:
    """
    >>> _shortened(10**40)
    '10000000000000000000... (41 digits)'
    """
    if abs(number) >= 10**4000:
        return "an integer of more than 4,000 digits"  # Python writes 4,300 at most
    text = str(number)
    return text if len(text) <= 25 else f"{text[:20]}... ({len(text.lstrip('-'))} digits)"


def duration(text: str) -> float:
    """Seconds of a duration in the notation of Go: a sign, then numbers each with a unit.

    >>> duration("1h30m"), duration("0"), duration("-1.5s")
    (5400.0, 0.0, -1.5)
    """
    sign, rest = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    if not _DURATION.fullmatch(rest):
        raise WrongKind(_complaint("duration", text))
    return sign * sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(rest))


class Arguments(Struct, frozen=True):
    """The arguments in effect: what the policy gave, over what was declared.

    `integer`, `number` (durations too, in seconds), `flag` and `text` give typed values; lists and mappings are `given[name]`.

    >>> declared = (Argument("weight", "int", 1), Argument("resources.*", "int", 1))
    >>> a = Arguments(declared, {"resources.gpu": 5})
    >>> a["weight"], dict(a.matching("resources.*"))
    (1, {'gpu': 5})
    """

    declared: tuple[Argument, ...] = ()
    given: Mapping[str, object] = field(default_factory=dict)

    def __getitem__(self, name: str) -> object:
        if name in self.given:
            return self.given[name]
        for argument in self.declared:
            if argument.name == name:
                return argument.default
        raise KeyError(name)

    def integer(self, name: str) -> int:
        value = self[name]
        assert isinstance(value, int), name
        return value

    def number(self, name: str) -> float:
        value = self[name]
        assert isinstance(value, int | float), name
        return float(value)

    def flag(self, name: str) -> bool:
        return bool(self[name])

    def text(self, name: str) -> str:
        value = self[name]
        return "" if value is None else str(value)

    def section(self, name: str) -> Arguments:
        """The arguments inside a mapping that declares its `fields`.

        >>> declared = (Argument("limits", "mapping", fields=(Argument("cpu", "int", 80), Argument("mem", "int", 80))),)
        >>> Arguments(declared, {"limits": {"cpu": 50}}).section("limits").integer("mem")
        80
        """
        fields = next(argument.fields for argument in self.declared if argument.name == name)
        value = self.given.get(name)
        return Arguments(fields, value if isinstance(value, Mapping) else {})

    def matching(self, pattern: str) -> Mapping[str, object]:
        """The arguments given under a declared pattern, sorted by the part that matches its `*`."""
        prefix = pattern.removesuffix("*")
        return {n[len(prefix) :]: self.given[n] for n in sorted(self.given) if n.startswith(prefix) and n != prefix}

    def items(self) -> tuple[tuple[str, object, bool], ...]:
        """(name, value, whether the policy gave it): the declared ones in their order, then what patterns took."""
        plain = [a for a in self.declared if not a.name.endswith("*")]
        names = {a.name for a in plain}
        shown = [(a.name, self[a.name], a.name in self.given) for a in plain]
        return tuple(shown + [(n, self.given[n], True) for n in sorted(self.given) if n not in names])


def find(declared: tuple[Argument, ...], name: str) -> Argument | None:
    """The declaration that covers a name: an exact one before a pattern, the longest pattern first."""
    exact = next((a for a in declared if a.name == name), None)
    if exact is not None:
        return exact
    patterns = sorted((a for a in declared if a.name.endswith("*")), key=lambda a: -len(a.name))
    return next((a for a in patterns if a.matches(name)), None)
