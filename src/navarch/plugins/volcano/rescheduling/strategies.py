"""The `strategies` of rescheduling as a policy file gives them: names with parameters.

`lowNodeUtilization` has thresholds in percent. A node below every one of `thresholds` has room. A node above one of
`targetThresholds` is relieved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from navarch.engine.arguments import WrongKind

LOW_NODE_UTILIZATION = "lowNodeUtilization"
OFFLINE_ONLY = "offlineOnly"
THRESHOLDS, TARGETS = "thresholds", "targetThresholds"
_FULL = (100.0, 100.0)


class Strategies(Struct, frozen=True):
    names: tuple[str, ...]
    low: tuple[float, float] = _FULL
    """Percent of cpu and memory below which a node has room."""
    target: tuple[float, float] = _FULL
    """Percent of cpu and memory above which a node is relieved."""


def check_strategy(strategy: object) -> None:
    """Raise WrongKind for a strategy that no system reads."""
    if not isinstance(strategy, Mapping) or not isinstance(strategy.get("name"), str):
        raise WrongKind(f"found {strategy!r}, expected a mapping with a name")
    params = strategy.get("params") or {}
    if not isinstance(params, Mapping):
        raise WrongKind(f"{strategy['name']}: params: found {params!r}, expected a mapping")
    for key in (THRESHOLDS, TARGETS) if strategy["name"] == LOW_NODE_UTILIZATION else ():
        values = params.get(key) or {}
        if not isinstance(values, Mapping):
            raise WrongKind(f"{strategy['name']}: {key}: found {values!r}, expected a mapping such as {{cpu: 20, memory: 20}}")
        for name, percent in values.items():
            if isinstance(percent, bool) or not isinstance(percent, int):
                raise WrongKind(f"{strategy['name']}: {key}.{name}: found {percent!r}, expected whole percent")


def read_strategies(given: object) -> Strategies:
    """
    >>> read_strategies([{"name": "lowNodeUtilization", "params": {"thresholds": {"cpu": 20}}}]).low
    (20.0, 100.0)
    """
    listed = given if isinstance(given, list) else []
    if not listed:
        return Strategies((LOW_NODE_UTILIZATION,))
    params: Mapping[str, Any] = {}
    for strategy in listed:
        if strategy["name"] == LOW_NODE_UTILIZATION:
            params = strategy.get("params") or {}
    names = tuple(strategy["name"] for strategy in listed)
    return Strategies(names, _percents(params.get(THRESHOLDS)), _percents(params.get(TARGETS)))


def _percents(given: Mapping[str, int] | None) -> tuple[float, float]:
    values = given or {}
    return float(values.get("cpu", 100)), float(values.get("memory", 100))
