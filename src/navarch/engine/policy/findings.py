"""Findings of the loader about one policy document: mistakes, which refuse it, and warnings.

Strict mode refuses what it does not understand. Under a `compat` Navarch does what that system does, which mostly is to ignore
it, and adds a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from msgspec import Struct, field

from navarch.engine.arguments import Argument, Reading, WrongKind, find
from navarch.engine.policy.source import Path, Source
from navarch.engine.policy.values import Mistake, found_as


class Findings(Struct):
    source: Source
    tolerant: bool = False
    """Whether what strict mode refuses is only warned of."""
    reading: Reading = "strict"
    mistakes: list[Mistake] = field(default_factory=list)
    warned: list[Mistake] = field(default_factory=list)

    def mistake(self, path: Path, message: str, *, not_here: bool = False) -> None:
        self.mistakes.append(Mistake(message, dotted(self.source.shown(path)), self.source.line(path), not_here))

    def warn(self, path: Path, message: str, *, skipped: bool = False) -> None:
        """`skipped`: something that the file names is not run."""
        warning = Mistake(message, dotted(self.source.shown(path)), self.source.line(path), skipped=skipped)
        if warning not in self.warned:
            self.warned.append(warning)

    def object_to(self, path: Path, message: str, consequence: str, *, not_here: bool = False) -> None:
        """A mistake in strict mode; under a compat a warning with what happens there instead."""
        if self.tolerant:
            self.warn(path, f"{message}; {consequence}", skipped=not_here)
        else:
            self.mistake(path, message, not_here=not_here)

    def unknown(self, path: Path, what: str, name: str, known: Iterable[str], consequence: str = "ignored") -> None:
        self.object_to(path, f"unknown {what} {name!r}{did_you_mean(name, known)}", consequence)

    def mapping(self, path: Path, value: object) -> Mapping[str, object]:
        """The value if it is a mapping; nothing given is an empty one."""
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return {str(k): v for k, v in value.items()}
        self.mistake(path, f"found {found_as(value)}, expected a mapping")
        return {}

    def items(self, path: Path, value: object) -> list[object]:
        if value is None:
            return []
        if isinstance(value, list | tuple):
            return list(value)
        self.mistake(path, f"found {found_as(value)}, expected a list")
        return []

    def warnings(self) -> tuple[str, ...]:
        """What is not run comes first: nothing else changes decisions as much."""
        return tuple(str(warning) for warning in sorted(self.warned, key=lambda each: not each.skipped))

    def name(self, path: Path, value: object, beside: Iterable[str] = ()) -> str | None:
        """`beside`: the keys of the mapping that the name stands in, one of which may be meant for `name`."""
        if isinstance(value, str) and value.strip():
            return value.strip()
        if not value and (near := get_close_matches("name", [str(key) for key in beside if key != "name"], n=1)):
            self.mistake((*path[:-1], near[0]), f"unknown key {near[0]!r}: did you mean 'name'?")
        else:
            self.mistake(path, "found nothing, expected a name" if not value else f"found {found_as(value)}, expected a name")
        return None

    def arguments(self, path: Path, value: object, declared: tuple[Argument, ...] | None, owner: str) -> dict[str, object]:
        """The arguments that hold, of their kinds. Not declared at all (None): taken as they are."""
        given = self.mapping(path, value)
        if declared is None:
            return dict(given)
        held: dict[str, object] = {}
        for name, raw in given.items():
            inner = (*path, name)
            argument = find(declared, name)
            if argument is None:
                names = [a.name for a in declared if not a.name.endswith("*")]
                self.unknown(inner, f"argument of {owner}", name, names)
                continue
            if not argument.has_effect:
                self.warn(inner, f"argument {name!r} of {owner} has no effect: {argument.doc}")
            try:
                held[name] = argument.read(raw, self.reading)
                if argument.fields:
                    held[name] = self.arguments(inner, raw, argument.fields, f"{name} of {owner}")
                if argument.check_entry is not None:
                    held[name] = self.entries(inner, held[name], argument.check_entry, f"argument {name!r} of {owner}")
            except WrongKind as wrong:
                default = "" if argument.default is None else f" ({argument.default})"
                self.object_to(inner, f"argument {name!r} of {owner}: {wrong}", f"its default{default} is used")
        return held

    def entries(self, path: Path, value: object, check: Callable[[Any], object], what: str) -> list[object]:
        """The entries of a list that hold."""
        held: list[object] = []
        for number, entry in enumerate(value if isinstance(value, list) else ()):
            try:
                check(entry)
                held.append(entry)
            except WrongKind as wrong:
                self.object_to((*path, number), f"{what}: {wrong}", "the entry is left out")
        return held


def dotted(path: Path) -> str:
    """
    >>> dotted(("tiers", 0, "plugins", 1, "name"))
    'tiers[0].plugins[1].name'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def did_you_mean(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # only where a name is wrong

    close = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""
