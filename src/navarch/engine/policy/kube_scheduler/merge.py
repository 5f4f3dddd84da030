"""Which plugins of a profile run where: the defaults, merged with what the file enables and disables.

The rules are kube-scheduler's. A point's own list beats `multiPoint`. Enabling a default plugin again changes it in its
place; a new one comes last. Disabling `*` drops every default. When multiPoint is spread over the points, a plugin that a
point also names itself comes first there, then multiPoint's, then what only the point names.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from navarch.engine.policy.kube_scheduler.default_plugins import DEFAULTS, POINTS

Weighted = tuple[str, int]


class PluginSet(Struct, frozen=True):
    """One point of a profile as the file has it."""

    enabled: tuple[Weighted, ...] = ()
    disabled: frozenset[str] = frozenset()


def merge(sets: Mapping[str, PluginSet], implements: Mapping[str, tuple[str, ...]]) -> dict[str, list[Weighted]]:
    """Point -> plugins in order, each with its weight (which only `score` uses).

    >>> merge({"score": PluginSet(disabled=frozenset({"*"}))}, {"ImageLocality": ("score",)})["score"]
    []
    """
    multi = _over_defaults(sets.get("multiPoint", PluginSet()))
    return {point: _at(point, sets.get(point, PluginSet()), multi, implements) for point in POINTS}


def _over_defaults(custom: PluginSet) -> list[Weighted]:
    own = dict(custom.enabled)
    merged: list[Weighted] = []
    if "*" not in custom.disabled:
        merged = [(name, own.get(name, weight)) for name, weight in DEFAULTS if name not in custom.disabled]
    kept = {name for name, _ in merged}
    return merged + [plugin for plugin in custom.enabled if plugin[0] not in kept]


def _at(point: str, own: PluginSet, multi: list[Weighted], implements: Mapping[str, tuple[str, ...]]) -> list[Weighted]:
    spread = [] if "*" in own.disabled else [p for p in multi if point in implements.get(p[0], POINTS)]
    spread = [plugin for plugin in spread if plugin[0] not in own.disabled]
    explicit, shared = dict(own.enabled), {name for name, _ in spread}
    overriding = [(n, w) for n, w in own.enabled if n in shared]
    rest = [(n, w) for n, w in own.enabled if n not in shared]
    weighed = overriding + [plugin for plugin in spread if plugin[0] not in explicit] + rest
    return [(name, weight or 1) for name, weight in weighed]
