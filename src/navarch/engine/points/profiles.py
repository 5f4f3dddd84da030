"""Node functions by profile, for policies with several profiles, each for the pods of one scheduler name.

The class of a pod carries its profile; only the node functions of that profile apply to it. Everything else of a cycle is the
same for all pods. Profiles often differ only in a weight: a plugin that several profiles configure equally exists once, with its
functions and their counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from navarch.engine.node_functions import NodeFilter, NodeScorer
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import NodeFilters, NodeScorers

F = TypeVar("F", NodeFilter, NodeScorer)
P = TypeVar("P")

THE_FIRST = ""
"""The first profile. It also applies to pods whose scheduler name has no profile. Most policies have only this one."""


class NodeFunctions(Struct, frozen=True):
    """Filters and scorers of one profile, in policy order."""

    filters: list[NodeFilter]
    scorers: list[NodeScorer]


def functions_by_profile(
    filtering: Mapping[str, Sequence[NodeFilters]], scoring: Mapping[str, Sequence[NodeScorers]]
) -> dict[str, NodeFunctions]:
    """The filters and scorers of each profile. Each plugin is asked once."""
    filters = {id(plugin): _configured(plugin, plugin.node_filters()) for plugin in _distinct(filtering)}
    scorers = {id(plugin): _configured(plugin, plugin.node_scorers()) for plugin in _distinct(scoring)}
    return {
        profile: NodeFunctions(
            [each for plugin in filtering[profile] for each in filters[id(plugin)]],
            [each for plugin in scoring[profile] for each in scorers[id(plugin)]],
        )
        for profile in filtering
    }


def _configured(plugin: object, functions: list[F]) -> list[F]:
    """The functions, told the arguments of their plugin."""
    if isinstance(plugin, Plugin) and plugin.option.arguments:
        configuration = repr(sorted(plugin.option.arguments.items()))
        for function in functions:
            function.configuration = configuration
    return functions


def _distinct(by_profile: Mapping[str, Sequence[P]]) -> list[P]:
    return list({id(plugin): plugin for plugins in by_profile.values() for plugin in plugins}.values())
