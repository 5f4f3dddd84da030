"""Resource-strategy-fit: packs some resources and spreads others, and keeps plain pods off nodes with scarce devices.

Three parts, each with its own arguments:

- `resources`: per resource, prefer nodes where it is fuller (MostAllocated) or emptier (LeastAllocated). A pod may set its own
  strategy and weights by annotation; if only one of the two is there, or one is invalid, no node is preferred;
- `sra`: the fewer of the listed scarce resources a node has, the better for a pod that does not need them;
- `proportional`: a pod that requests none of the listed resources must leave a share of cpu and memory for each idle one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.model.resources import CPU, MEMORY, BoolArray, FloatArray
from navarch.plugins.utilisation_score import MAX_SCORE, FillingScorer, Part

MOST, LEAST = "MostAllocated", "LeastAllocated"
OWN_TYPE = "volcano.sh/resource-strategy-scoring-type"
OWN_WEIGHTS = "volcano.sh/resource-strategy-weight"
DEFAULT_WEIGHT = 10
MEMORY_UNIT = 10**9
"""Bytes that one unit of a memory proportion stands for."""
Strategies = dict[str, tuple[bool, int]]
"""Resource (or beginning of a name with a star) -> whether fuller is better, weight."""


class ResourceStrategyFit(Plugin):
    """Packs some resources and spreads others"""

    name = "resource-strategy-fit"
    arguments = (
        Argument("resourceStrategyFitWeight", "int", DEFAULT_WEIGHT, "weight of the whole score; 0 switches it off", minimum=0),
        Argument("resources", "mapping", None, "resource, or beginning with a star -> type and weight"),
        Argument("sra", "mapping", None, "enable, resources, weight, resourceWeight: keep pods off scarce resources"),
        Argument("proportional", "mapping", None, "enable, resources, resourceProportion: what to leave beside idle devices"),
    )

    def node_scorers(self) -> list[NodeScorer]:
        names, scorers = self.session.snapshot.resource_names, list[NodeScorer]()
        weight = self.given.integer("resourceStrategyFitWeight")
        if weight:
            scorers.append(StrategyFit(names, strategies(_mapping(self.given["resources"])), weight))
        sra = _mapping(self.given["sra"])
        if sra.get("enable") and (weight := _whole(sra.get("weight"), DEFAULT_WEIGHT)):
            own = _mapping(sra.get("resourceWeight"))
            weights = {name: w if (w := _whole(own.get(name), 1)) >= 0 else 1 for name in _listed(sra.get("resources"))}
            scorers.append(AwayFromScarce(names, weights, weight))
        return scorers

    def node_filters(self) -> list[NodeFilter]:
        given = _mapping(self.given["proportional"])
        if not given.get("enable"):
            return []
        rates = _mapping(given.get("resourceProportion"))
        kept = {n: (_rate(rates.get(f"{n}.cpu")), _rate(rates.get(f"{n}.memory"))) for n in _listed(given.get("resources"))}
        return [LeaveForDevices(self.session.snapshot.resource_names, kept)]


def strategies(given: Mapping[str, object]) -> Strategies:
    """
    >>> strategies({"nvidia.com/*": {"type": "MostAllocated", "weight": 3}, "*": {}})
    {'nvidia.com/*': (True, 3)}
    """
    out: Strategies = {}
    for name, entry in sorted(given.items()):
        if "*" in name.removesuffix("*") or name == "*":
            continue
        fields = _mapping(entry)
        weight = _whole(fields.get("weight"), 1)
        out[name] = (fields.get("type") == MOST, weight if weight > 0 else 1)
    return out or {"cpu": (False, 1), "memory": (False, 1)}


def strategy_for(name: str, known: Strategies) -> tuple[bool, int] | None:
    """The exact entry, else the one with the longest beginning."""
    if name in known:
        return known[name]
    fitting = [key for key in known if key.endswith("*") and name.startswith(key[:-1])]
    return known[max(fitting, key=len)] if fitting else None


class StrategyFit(FillingScorer):
    name = "resource-strategy-fit"

    def __init__(self, names: tuple[str, ...], known: Strategies, weight: int) -> None:
        super().__init__(weight)
        self.names = names
        self.known = known

    def parts_of(self, task: TaskClass) -> list[Part]:
        known = own_strategies(dict(task.shape.hints), self.known)
        asked = ((dim, strategy_for(self.names[dim], known)) for dim in np.flatnonzero(task.request > 0).tolist())
        return [Part(dim, int(task.request[dim]), s[1], s[0]) for dim, s in asked if s is not None]


def own_strategies(hints: Mapping[str, str], otherwise: Strategies) -> Strategies:
    """What the pod itself says, if it does; nothing at all if it says it wrongly."""
    kind, text = hints.get(OWN_TYPE), hints.get(OWN_WEIGHTS)
    if kind is None and text is None:
        return otherwise
    if kind not in (MOST, LEAST) or text is None:
        return {}
    try:
        weights = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(weights, dict) or not all(isinstance(w, int) for w in weights.values()):
        return {}
    return {name: (kind == MOST, weight) for name, weight in weights.items()}


class AwayFromScarce(NodeScorer):
    """100 for a node with none of the scarce resources, less for each it has; 0 where it lacks what the pod asks for."""

    name = "resource-strategy-fit-sra"
    scope = Scope.ROW

    def __init__(self, names: tuple[str, ...], weights: Mapping[str, int], weight: int) -> None:
        self.scarce = [(dim, weights[name]) for dim, name in enumerate(names) if name in weights]
        self.total = sum(weights.values())
        self.scale = float(MAX_SCORE * weight)

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        has_all = np.all(at.allocatable[np.flatnonzero(task.request > 0)] != 0, axis=0)
        score: FloatArray = np.zeros(at.allocatable.shape[1])
        for dim, weight in self.scarce:
            score += weight * (at.allocatable[dim] > 0)
        if self.total:
            score = 1.0 - score / self.total
        return np.where(has_all, score * self.scale, 0.0)


class LeaveForDevices(NodeFilter):
    name = "resource-strategy-fit-proportional"
    scope = Scope.ROW

    def __init__(self, names: tuple[str, ...], kept: Mapping[str, tuple[float, float]]) -> None:
        self.kept = [(dim, name, *kept[name]) for dim, name in enumerate(names) if name in kept]

    def applies(self, task: TaskClass) -> bool:
        return bool(self.kept) and not any(task.request[dim] > 0 for dim, *_ in self.kept)

    def _short(self, task: TaskClass, at: Figures, dim: int, cpu: float, memory: float) -> BoolArray:
        """Columns where too little would be left for the idle devices of this kind."""
        idle = at.allocatable[dim] - at.used[dim]
        cpu_left = at.allocatable[CPU] - at.used[CPU] - task.request[CPU]
        memory_left = at.allocatable[MEMORY] - at.used[MEMORY] - task.request[MEMORY]
        lacking = (cpu_left < idle * cpu) | (memory_left < idle * memory * (MEMORY_UNIT // 1000))
        short: BoolArray = (at.allocatable[dim] > 0) & lacking
        return short

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        ok: BoolArray = np.ones(at.used.shape[1], dtype=bool)
        for dim, _, cpu, memory in self.kept:
            ok &= ~self._short(task, at, dim, cpu, memory)
        return ok

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        for dim, name, cpu, memory in self.kept:
            text = f"proportional of resource {name} check failed"
            yield Refusal(text, self._short(task, at, dim, cpu, memory), True, "Proportional")


def _mapping(value: object) -> Mapping[str, object]:
    return {str(k): v for k, v in value.items()} if isinstance(value, Mapping) else {}


def _whole(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _rate(value: object) -> float:
    """A ratio; one unit a device where none, or a negative one, is given."""
    return float(value) if isinstance(value, int | float) and value >= 0 else 1.0


def _listed(value: object) -> list[str]:
    return [name for part in str(value or "").split(",") if (name := part.strip())]
