"""The utilisation of a node with one more task: the score of binpack and resource-strategy-fit.

They differ in the resources that count and their weights: `FillingScorer` asks for these once for each class of tasks.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.model.resources import BoolArray, FloatArray

MAX_SCORE = 100


class Part(NamedTuple):
    """One resource of the mean: `fuller` prefers what is used, otherwise what is left."""

    dim: int
    request: int
    weight: int
    fuller: bool = True


def mean_filling(at: Figures, parts: list[Part]) -> FloatArray:
    """The weighted mean over resources, 0 to 1, for every column of `at`; 0 where any resource overflows.

    A node that has none of a resource gets nothing for it, while its weight still counts. Reads the scheduler's own account of
    what is used: pods that leave are in it until they are gone, promised ones are not."""
    columns = at.used.shape[1]
    score: FloatArray = np.zeros(columns)
    over: BoolArray = np.zeros(columns, dtype=bool)
    weights = 0
    for dim, request, weight, fuller in parts:
        weights += weight
        if not weight:
            continue
        capacity = at.allocatable[dim]
        after = at.used[dim] + request
        wanted = after if fuller else capacity - after
        if np.count_nonzero(capacity) == columns:
            over |= after > capacity
            score += wanted * weight / capacity
            continue
        has = capacity != 0
        over |= has & (after > capacity)
        score += np.divide(wanted * weight, capacity, out=np.zeros(columns), where=has)
    if weights:
        score /= weights
    score[over] = 0.0
    return score


class FillingScorer(NodeScorer):
    scope = Scope.ROW

    def __init__(self, weight: int) -> None:
        self.scale = float(MAX_SCORE * weight)
        self._parts: dict[int, list[Part]] = {}

    @abstractmethod
    def parts_of(self, task: TaskClass) -> list[Part]:
        """The resources that count for these tasks."""

    def parts(self, task: TaskClass) -> list[Part]:
        found = self._parts.get(task.number)
        if found is None:
            found = self._parts[task.number] = self.parts_of(task)
        return found

    def applies(self, task: TaskClass) -> bool:
        return bool(self.parts(task))

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        return mean_filling(at, self.parts(task)) * self.scale
