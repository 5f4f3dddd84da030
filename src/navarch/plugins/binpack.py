"""Binpack: fill nodes one after the other, so that whole nodes stay free for large tasks.

    score = 100 * weight * mean over the requested resources of w * (used + request) / allocatable

cpu and memory count by default; other resources when `binpack.resources` lists them.
"""

from __future__ import annotations

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.node_functions import NodeScorer, TaskClass
from navarch.engine.plugin import Plugin
from navarch.plugins.utilisation_score import FillingScorer, Part


class Binpack(Plugin):
    """Prefers nodes that are already full"""

    name = "binpack"
    arguments = (
        Argument("binpack.weight", "int", 1, "weight of the whole score"),
        Argument("binpack.cpu", "int", 1, "weight of cpu", minimum=0),
        Argument("binpack.memory", "int", 1, "weight of memory", minimum=0),
        Argument("binpack.resources", "str", "", "further resources that count, comma separated"),
        Argument("binpack.resources.*", "int", 1, "weight of one of them", minimum=0),
    )

    def node_scorers(self) -> list[NodeScorer]:
        weight = self.given.integer("binpack.weight")
        return [FullestFirst(self.session.snapshot.resource_names, self._weights(), weight)] if weight else []

    def _weights(self) -> dict[str, int]:
        own = self.given.matching("binpack.resources.*")
        listed = (name.strip() for name in self.given.text("binpack.resources").split(","))
        weights = {name: int(str(own.get(name, 1))) for name in listed if name}
        return weights | {"cpu": self.given.integer("binpack.cpu"), "memory": self.given.integer("binpack.memory")}


class FullestFirst(FillingScorer):
    name = "binpack"

    def __init__(self, names: tuple[str, ...], weights: dict[str, int], weight: int) -> None:
        super().__init__(weight)
        self.weights = [weights.get(name) for name in names]

    def parts_of(self, task: TaskClass) -> list[Part]:
        return [
            Part(dim, int(task.request[dim]), weight)
            for dim in np.flatnonzero(task.request > 0).tolist()
            if (weight := self.weights[dim]) is not None
        ]
