"""How full a node would be with one more task: the measure that binpack and resource-strategy-fit score by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from navarch.engine.figures import Figures
from navarch.model.resources import BoolArray, FloatArray


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
        has = capacity != 0
        over |= has & (after > capacity)
        wanted = after if fuller else capacity - after
        score += np.divide(wanted * weight, capacity, out=np.zeros(columns), where=has)
    if weights:
        score /= weights
    score[over] = 0.0
    return score
