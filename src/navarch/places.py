"""Classes and functions by import path, imported at first use: the one mechanism for lazy imports.

A place is `module:name`. Commands (`navarch.cli.main`), plugins and actions are tables of name -> place, so that a process
imports the few that its command line and its policy name, not the hundred modules that exist: half of what a start cost.
Whatever lists them all loads them all.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

V = TypeVar("V")


def at(place: str) -> Any:
    """
    >>> at("navarch.model.quantity:parse_milli")("1500m")
    1500
    """
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def place_of(thing: type) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


class Lazily(Mapping[str, V]):
    """A mapping whose keys are known and whose values are made when they are first looked at.

    >>> squares = Lazily("23", lambda key: int(key) ** 2)
    >>> "4" in squares, squares["3"]
    (False, 9)
    """

    def __init__(self, keys: Iterable[str], make: Callable[[str], V]) -> None:
        self._keys = dict.fromkeys(keys)
        self._make = make
        self._made: dict[str, V] = {}

    def __getitem__(self, key: str) -> V:
        if key not in self._made:
            if key not in self._keys:
                raise KeyError(key)
            self._made[key] = self._make(key)
        return self._made[key]

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)
