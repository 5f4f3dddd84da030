"""Mistakes that can be seen in a plugin's class alone: misspelt methods, wrong signatures, defaults that do not fit.

The registry refuses a class with such mistakes. A misspelt method would otherwise never be called, and nothing would tell the author.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import POINTS, methods

_OF_EVERY_PLUGIN = ("before_open", "open", "after_open", "next_cycle", "close", "undo_leaves_trace")
"""Methods that are no extension points."""


def declaration_problems(plugin: type[Plugin]) -> Iterator[str]:
    """One sentence for each mistake. Base classes outside of Navarch are checked too."""
    known = {method: protocol for protocol in POINTS.values() for method in methods(protocol)}
    for name, value in _own_methods(plugin).items():
        if name in known:
            yield from _signature_problem(name, value, getattr(known[name], name))
        elif name in _OF_EVERY_PLUGIN:
            yield from _signature_problem(name, value, getattr(Plugin, name))
        else:
            near = difflib.get_close_matches(name, [*known, *_OF_EVERY_PLUGIN], 1, 0.8)
            if near and near[0] not in _own_methods(plugin):
                yield f"method {name!r} is no extension point; did you mean {near[0]!r}?"
    for argument in plugin.arguments:
        if argument.kind == "duration":
            if not isinstance(argument.default, int | float | None):
                yield f"argument {argument.name!r}: its default does not fit its kind: found {argument.default!r}, expected seconds"
        elif argument.default is not None:
            try:
                argument.read(argument.default)
            except ValueError as error:
                yield f"argument {argument.name!r}: its default does not fit its kind: {error}"


def _own_methods(plugin: type[Plugin]) -> dict[str, Callable[..., Any]]:
    """Public methods that the class and its own bases define."""
    found: dict[str, Callable[..., Any]] = {}
    for kind in plugin.__mro__:
        if kind is not object and not kind.__module__.startswith("navarch."):
            for name, value in vars(kind).items():
                if not name.startswith("_") and inspect.isfunction(value):
                    found.setdefault(name, value)
    return found


def _signature_problem(name: str, mine: Callable[..., Any], wanted: Callable[..., Any]) -> Iterator[str]:
    have, need = inspect.signature(mine).parameters, inspect.signature(wanted).parameters
    if inspect.iscoroutinefunction(mine):
        yield f"{name} is async; expected a plain method"
    if any(p.kind is p.VAR_POSITIONAL for p in have.values()):
        return
    required = [p for p in have.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    if len(have) < len(need) or len(required) > len(need):
        yield f"{name} takes {', '.join(list(have)[1:]) or 'nothing'}; expected {', '.join(list(need)[1:]) or 'nothing'}"
