"""What the free part of a GPU is worth to the pods that come: the prices of the cutting stock problem.

Suppose that the typical pods come for ever and every one of them must be placed. How many GPUs they take at least is a linear
programme over the ways to cut a GPU into pods. Its dual variables price each pod size: a pod of 810 thousandths costs a whole GPU
where few pods fit into the 190 that it leaves, two pods of 470 cost half of one each. The worth of a remnant is the most that pods
which fit into it would cost elsewhere. Placing a pod where the worth falls by more than the price of the pod spoils that remnant.

The programme is solved by column generation (Gilmore and Gomory): a simplex over a handful of cuts, the next cut found by a knapsack.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from navarch.model.resources import FloatArray, IntArray
from navarch.plugins.fragmentation.typical_pods import WHOLE, TypicalPod

_GRAIN: Final = 10
"""Sizes are rounded up to such thousandths, which bounds the knapsack."""
_UNITS: Final = WHOLE // _GRAIN
_EPSILON: Final = 1e-9
_MOST_STEPS: Final = 2000
"""A simplex that takes longer goes round in circles: the prices so far are used."""


@lru_cache(maxsize=64)
def remnant_worth(pods: tuple[TypicalPod, ...]) -> FloatArray:
    """(1001,): the worth of a GPU with so many thousandths free, in GPUs. Some 30 ms for the first question about these pods.

    Where only halves come, half a GPU is worth half of one and less is worth nothing:

    >>> from navarch.plugins.fragmentation.typical_pods import PodKind
    >>> worth = remnant_worth((TypicalPod(PodKind(1000, 500, 1), 1.0),))
    >>> [float(worth[free]) for free in (0, 490, 500, 990, 1000)]
    [0.0, 0.0, 0.5, 0.5, 1.0]
    """
    demand: dict[int, float] = {}
    for pod in pods:
        if pod.kind.gpu_total:
            size = -(-pod.kind.gpu_milli // _GRAIN)
            demand[size] = demand.get(size, 0.0) + pod.weight * pod.kind.gpus
    worth = _knapsack(*_prices(demand))[0] if demand else np.zeros(_UNITS + 1)
    out: FloatArray = worth[np.arange(WHOLE + 1) // _GRAIN]
    out.flags.writeable = False
    return out


def _prices(demand: Mapping[int, float]) -> tuple[IntArray, FloatArray]:
    """Sizes, and the dual price of each: revised simplex from the basis where each GPU is cut into pods of one size."""
    sizes: IntArray = np.array(sorted(demand), dtype=np.int64)
    wanted = np.array([demand[size] for size in sizes.tolist()])
    basis = np.diag((_UNITS // sizes).astype(np.float64))
    cost = np.ones(len(sizes))
    prices = np.zeros(len(sizes))
    for _ in range(_MOST_STEPS):
        inverse = np.linalg.inv(basis)
        prices = cost @ inverse
        enters, price = _better_cut(sizes, prices)
        if enters is None:
            break
        amounts, fall = inverse @ wanted, inverse @ enters
        steps = np.where(fall > _EPSILON, amounts / np.where(fall > _EPSILON, fall, 1.0), np.inf)
        leaves = int(steps.argmin())
        basis[:, leaves], cost[leaves] = enters, price
    return sizes, np.maximum(prices, 0.0)


def _better_cut(sizes: IntArray, prices: FloatArray) -> tuple[FloatArray | None, float]:
    """A cut that is worth more than a GPU costs, or a size that is made beyond need; None: the prices are final."""
    surplus = int(prices.argmin())
    if prices[surplus] < -_EPSILON:
        column = np.zeros(len(sizes))
        column[surplus] = -1.0
        return column, 0.0
    worth, taken = _knapsack(sizes, prices)
    if worth[_UNITS] <= 1 + _EPSILON:
        return None, 0.0
    column = np.zeros(len(sizes))
    free = _UNITS
    while free > 0:
        size = int(taken[free])
        if size < 0:
            free -= 1
            continue
        column[size] += 1
        free -= int(sizes[size])
    return column, 1.0


def _knapsack(sizes: IntArray, prices: FloatArray) -> tuple[FloatArray, IntArray]:
    """For every amount of free units the most that pods in it are worth, and the pod to take first (-1: leave one unit)."""
    worth = np.zeros(_UNITS + 1)
    taken: IntArray = np.full(_UNITS + 1, -1, dtype=np.int64)
    for free in range(1, _UNITS + 1):
        fitting = sizes[: int(np.searchsorted(sizes, free, side="right"))]
        worth[free] = worth[free - 1]
        if len(fitting):
            with_each = worth[free - fitting] + prices[: len(fitting)]
            best = int(with_each.argmax())
            if with_each[best] > worth[free] + _EPSILON:
                worth[free], taken[free] = with_each[best], best
    return worth, taken
