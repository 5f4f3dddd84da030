"""Who judges which pods, where a policy has several profiles, each for the pods of one scheduler name.

The class of a pod carries its profile and is judged by that profile's node functions alone; everything else of a cycle is the
same for all pods. Profiles mostly differ in a weight or two: a plugin that several of them want in the same way exists once, and
so do its functions and what they count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from navarch.engine.node_functions import NodeFilter, NodeScorer
from navarch.engine.points.protocols import NodeFilters, NodeScorers

P = TypeVar("P")

THE_FIRST = ""
"""The first profile, which is also that of pods whose scheduler name no profile has; the only one of most policies."""


class NodeFunctions(Struct, frozen=True):
    """Filters and scorers of one profile, in policy order."""

    filters: list[NodeFilter]
    scorers: list[NodeScorer]


def functions_by_profile(
    filtering: Mapping[str, Sequence[NodeFilters]], scoring: Mapping[str, Sequence[NodeScorers]]
) -> dict[str, NodeFunctions]:
    """From the plugins that give filters and those that give scorers, by profile. Each plugin is asked once."""
    filters = {id(plugin): plugin.node_filters() for plugin in _distinct(filtering)}
    scorers = {id(plugin): plugin.node_scorers() for plugin in _distinct(scoring)}
    return {
        profile: NodeFunctions(
            [each for plugin in filtering[profile] for each in filters[id(plugin)]],
            [each for plugin in scoring[profile] for each in scorers[id(plugin)]],
        )
        for profile in filtering
    }


def _distinct(by_profile: Mapping[str, Sequence[P]]) -> list[P]:
    return list({id(plugin): plugin for plugins in by_profile.values() for plugin in plugins}.values())
