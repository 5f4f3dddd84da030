"""Everything a policy may name, as plain data, generated from the declarations and docstrings of the classes.

`navarch policy plugins` prints it and docs/plugins.md is generated from it, so both always match the code.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping

from navarch.engine.arguments import Argument
from navarch.engine.points.protocols import POINTS as PROTOCOLS
from navarch.engine.policy.catalogue import Catalogue, Entry
from navarch.engine.policy.compat import PEERS
from navarch.engine.policy.point_switches import BY_NAME, SAME_SWITCH

_FEW = 3
"""The docstring of a module with more classes than this describes what they share, not a single class."""


def reference(catalogue: Catalogue) -> dict[str, list[dict[str, object]]]:
    return {
        "actions": [_entry(key, entry, catalogue.actions) for key, entry in sorted(catalogue.actions.items(), key=_by_name)],
        "plugins": [_entry(key, entry, catalogue.plugins) for key, entry in sorted(catalogue.plugins.items(), key=_by_name)],
        "points": [_point(name, protocol) for name, protocol in PROTOCOLS.items()],
    }


def _by_name(item: tuple[str, Entry]) -> tuple[str, str]:
    dialect, _, name = item[0].rpartition(":")
    return name, dialect


def _entry(key: str, entry: Entry, all_of_them: Mapping[str, Entry]) -> dict[str, object]:
    dialect, _, name = key.rpartition(":")
    return {
        "name": name,
        "dialect": dialect,
        "systems": [dialect] if dialect else _systems(name, all_of_them),
        "doc": entry.doc,
        "about": _about(entry, all_of_them),
        "points": list(entry.points or ()),
        "arguments": [found for argument in entry.arguments for found in _arguments(argument)],
    }


def _systems(name: str, all_of_them: Mapping[str, Entry]) -> list[str]:
    """The systems whose files mean this class by the name: they have the name and no class of their own for it."""
    return [
        dialect for dialect, peer in PEERS.items() if name in peer.actions | peer.plugins and f"{dialect}:{name}" not in all_of_them
    ]


def _arguments(argument: Argument, inside: str = "") -> list[dict[str, object]]:
    """The argument, then those inside it, each named with the path to it."""
    name = f"{inside}{argument.name}"
    below = (found for each in argument.fields for found in _arguments(each, f"{name}."))
    return [_argument(argument, name), *below]


def _argument(argument: Argument, name: str) -> dict[str, object]:
    found: dict[str, object] = {
        "name": name,
        "kind": argument.kind,
        "default": argument.default,
        "doc": argument.doc,
    }
    if argument.choices:
        found["choices"] = list(argument.choices)
    if argument.minimum is not None:
        found["minimum"] = argument.minimum
    if argument.maximum is not None:
        found["maximum"] = argument.maximum
    return found


def _about(entry: Entry, all_of_them: Mapping[str, Entry]) -> str:
    """The docstrings of the class and its module without their first lines."""
    made_from = entry.made_from
    if made_from is None:
        return ""
    texts = [_below_first_line(made_from.__doc__)]
    module = sys.modules.get(made_from.__module__)
    beside = [each.made_from for each in all_of_them.values() if each.made_from and each.made_from.__module__ == made_from.__module__]
    plain = [each for each in beside if not getattr(each, "dialect", "")]
    if module is not None and len(beside) <= _FEW and (made_from in plain or not plain):
        texts.append(_below_first_line(module.__doc__))
    return "\n\n".join(text for text in texts if text)


def _below_first_line(doc: str | None) -> str:
    return inspect.cleandoc(doc or "").partition("\n")[2].strip()


def _point(name: str, protocol: type) -> dict[str, object]:
    switch = BY_NAME.get(SAME_SWITCH.get(name, name))
    methods = {
        method: f"{method}{inspect.signature(function)}".replace("(self, ", "(").replace("(self)", "()").replace("'", "")
        for method, function in vars(protocol).items()
        if not method.startswith("_") and callable(function)
    }
    return {
        "point": name,
        "about": " ".join(inspect.cleandoc(protocol.__doc__ or "").split()),
        "methods": list(methods.values()),
        "switch": "" if switch is None else switch.key,
        "combined": switch.combined if switch is not None and switch.name == name else "",
    }
