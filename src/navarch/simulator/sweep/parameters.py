"""Parameters of policies that a sweep varies: `PLUGIN.ARGUMENT=VALUE,VALUE,...`.

The argument may be written as policy files have it (`binpack.weight`) or with its plugin's name before it
(`easy-backfill.reservations`). `binpack.gpu` stands for the weight of GPUs. A value is checked as the same value in a policy file is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import yaml

from navarch.engine.policy import Policy, PolicyError, load
from navarch.engine.policy.values import Mistake
from navarch.engine.registry import Registry

Parameters = tuple[tuple[str, str], ...]
ALIASES = {"binpack.gpu": "binpack.resources.nvidia.com/gpu"}


class SweepError(ValueError):
    """A sweep that cannot be run."""


def combinations(sweeps: Iterable[str]) -> list[Parameters]:
    """Every combination of the values that are swept; one empty one where nothing is.

    >>> combinations(["a.b=1,2", "c.d=x"])
    [(('a.b', '1'), ('c.d', 'x')), (('a.b', '2'), ('c.d', 'x'))]
    """
    axes: list[list[tuple[str, str]]] = []
    for sweep in sweeps:
        name, equals, values = sweep.partition("=")
        listed = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not name or not listed:
            raise SweepError(f"sweep {sweep!r}: expected PLUGIN.ARGUMENT=VALUE,VALUE such as binpack.weight=1,5")
        axes.append([(name, value) for value in listed])
    return [tuple(each) for each in itertools.product(*axes)]


def with_parameters(policy: Policy, parameters: Parameters, registry: Registry) -> Policy:
    """The policy with these arguments of its plugins. Raises `PolicyError` for one that no plugin of it takes."""
    if not parameters:
        return policy
    document: dict[str, Any] = deepcopy({**policy.document})
    for name, value in parameters:
        _set(document, policy, registry, ALIASES.get(name, name), value)
    return load(document, registry.catalogue(), policy.source)


def label(name: str, parameters: Parameters) -> str:
    """
    >>> label("navarch", (("binpack.weight", "5"),))
    'navarch[binpack.weight=5]'
    """
    return f"{name}[{','.join(f'{key}={value}' for key, value in parameters)}]" if parameters else name


def _set(document: dict[str, Any], policy: Policy, registry: Registry, name: str, value: str) -> None:
    for tier, options in enumerate(policy.tiers):
        for place, option in enumerate(options):
            kind = registry.plugin(option.name, policy.dialect)
            declared = [argument.name for argument in kind.arguments] if kind is not None else []
            found = _argument(name, option.name, declared)
            if found is not None:
                _plugins(document, tier)[place] = _with(_plugins(document, tier)[place], found, value)
                return
    message = f"no plugin of the policy takes an argument {name!r}"
    raise PolicyError(policy.source, [Mistake(message)])


def _argument(name: str, plugin: str, declared: Sequence[str]) -> str | None:
    for wanted in (name, name.removeprefix(f"{plugin}.")):
        if wanted != name or name.startswith(f"{plugin}."):
            if wanted in declared or any(each.endswith("*") and wanted.startswith(each[:-1]) for each in declared):
                return wanted
    return None


def _plugins(document: dict[str, Any], tier: int) -> list[Any]:
    plugins: list[Any] = document["tiers"][tier]["plugins"]
    return plugins


def _with(entry: Any, argument: str, value: str) -> dict[str, Any]:
    plugin = dict(entry) if isinstance(entry, Mapping) else {"name": entry}
    arguments = plugin.get("arguments")
    plugin["arguments"] = {**(arguments if isinstance(arguments, Mapping) else {}), argument: yaml.safe_load(value)}
    if argument.startswith("binpack.resources.") and argument != "binpack.resources":
        resource = argument.removeprefix("binpack.resources.")
        listed = str(plugin["arguments"].get("binpack.resources", ""))
        if resource not in listed:
            plugin["arguments"]["binpack.resources"] = f"{listed}, {resource}" if listed else resource
    return plugin
