"""Two plain rules to compare with: best fit and chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.model.resources import FloatArray
from navarch.plugins.fragmentation.free_gpus import free_gpus
from navarch.plugins.fragmentation.placement import fits
from navarch.plugins.fragmentation.scorer import FragmentationScorer

if TYPE_CHECKING:
    from navarch.engine.session import Session


class BestFit(FragmentationScorer):
    """100 * (1 - what is left over), in whole points: the node with the least cpu and GPUs left, each relative to the largest node."""

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        free = free_gpus(self.session, at)
        need, milli = self.need(task)
        milli = milli[at.rows]
        left = self.left_over(need, milli, free)
        return np.where(fits(need, milli, free), np.floor(100 * (1 - left)), 0.0)

    def device_scores(self, task: TaskClass, node: int) -> tuple[FloatArray, float]:
        """The fullest GPU that suffices, a whole one last."""
        free = free_gpus(self.session, self.session.nodes.at(np.array([node]))).shared[0]
        return -free.astype(np.float64), -1e6


class RandomNode(NodeScorer):
    """Any node and any GPU of it, by a seeded draw for every placement."""

    name = "fragmentation"
    scope = Scope.GLOBAL

    def __init__(self, session: Session, seed: int, weight: float) -> None:
        self.session = session
        self.seed = seed
        self.weight = weight

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        drawn: FloatArray = self._draw(0).random(len(self.session.nodes))[at.rows] * 100
        return drawn

    def device_scores(self, task: TaskClass, node: int) -> tuple[FloatArray, float]:
        free = free_gpus(self.session, self.session.nodes.at(np.array([node])))
        draw = self._draw(1)
        shared: FloatArray = draw.random((free.shared.shape[1],))
        return shared, float(draw.random(max(1, int(free.whole[0]))).max())

    def _draw(self, stream: int) -> np.random.Generator:
        """Another one after every placement; `now` tells cycles apart."""
        moment = round(self.session.now * 1000)
        return np.random.default_rng((self.seed, abs(moment), len(self.session.nodes.changed), stream))
