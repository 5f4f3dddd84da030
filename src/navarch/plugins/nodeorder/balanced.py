"""NodeResourcesBalancedAllocation: does the pod even out how full the node's resources are, or skew them further?

Evenness is 100 less the deviation of the filled fractions. From Kubernetes 1.36 on, what counts is the change that the pod
makes to it (about 75 where it makes none); before, the evenness with the pod. Real requests, no defaults.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.session import Session
from navarch.model.resources import FloatArray, IntArray
from navarch.plugins.nodeorder.allocation import CPU_AND_MEMORY, NodeAmounts, node_amounts


class BalancedAllocation(NodeScorer):
    name = "NodeResourcesBalancedAllocation"
    scope = Scope.ROW

    def __init__(
        self,
        session: Session,
        weight: float,
        resources: Sequence[tuple[str, int]] = CPU_AND_MEMORY,
    ) -> None:
        self.session = session
        self.weight = weight
        self.names = tuple(name for name, _ in resources)
        space = session.snapshot.space
        dims = [space.find(name) for name in self.names]
        self.dims = [dim for dim in dims if dim is not None]

    def identity(self) -> Hashable:
        return (BalancedAllocation, self.names)

    def applies(self, task: TaskClass) -> bool:
        return any(task.request[dim] for dim in self.dims if dim < len(task.request))

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        parts = [node_amounts(self.session, task, at, name, defaulted=False) for name in self.names]
        found = [part for part in parts if part is not None]
        size = at.requested.shape[1]
        everywhere = all(part.everywhere for part in found)
        if len(found) == 2:
            change = _change_of_two(found[0], found[1], everywhere)
            return (50 + (50 + change) // 2).astype(float)
        change = _evenness(found, size, everywhere, pod=True) - _evenness(found, size, everywhere, pod=False)
        return (50 + (50 + change) // 2).astype(float)


def _change_of_two(one: NodeAmounts, two: NodeAmounts, everywhere: bool) -> IntArray:
    """The evenness of two resources with the pod less that without it, as `_evenness` gives them: both are computed together."""
    filled = np.empty((2, 2, len(one.used)))
    """Resource, with or without the pod, column."""
    for part, fractions in ((one, filled[0]), (two, filled[1])):
        capacity = _capacity(part, everywhere)
        np.divide(part.used + part.asked, capacity, out=fractions[0])
        np.divide(part.used, capacity, out=fractions[1])
    np.minimum(filled, 1.0, out=filled)
    gap = np.abs(filled[0] - filled[1])
    gap /= 2
    if not everywhere:
        gap = np.where(one.takes_part & two.takes_part, gap, 0.0)
    even = np.subtract(1, gap, out=gap)
    even *= 100
    truncated: IntArray = even.astype(np.int64)
    change: IntArray = truncated[0] - truncated[1]
    return change


def _capacity(part: NodeAmounts, everywhere: bool) -> IntArray:
    return part.capacity if everywhere else np.where(part.takes_part, part.capacity, 1)


def _evenness(parts: list[NodeAmounts], size: int, everywhere: bool, *, pod: bool) -> IntArray:
    """Truncated 100 * (1 - deviation) of the fractions, each capped at 1, with or without the pod. `everywhere`: each resource takes
    part on every node."""
    fractions = []
    for part in parts:
        used = part.used + part.asked if pod else part.used
        fraction = np.minimum(1.0, used / _capacity(part, everywhere))
        fractions.append((part.takes_part, fraction))
    if len(fractions) == 2:
        (one, first), (two, second) = fractions
        gap = np.abs(first - second) / 2
        even: IntArray = ((1 - (gap if everywhere else np.where(one & two, gap, 0.0))) * 100).astype(np.int64)
        return even
    count = np.zeros(size, dtype=np.int64)
    total = np.zeros(size)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    for takes_part, fraction in fractions:
        count += takes_part
        total += np.where(takes_part, fraction, 0.0)
        low = np.where(takes_part, np.minimum(low, fraction), low)
        high = np.where(takes_part, np.maximum(high, fraction), high)
    deviation = np.zeros(size)
    pair = count == 2
    deviation[pair] = (high[pair] - low[pair]) / 2
    more = count > 2
    if more.any():
        mean = total / np.maximum(count, 1)
        squares = np.zeros(size)
        for takes_part, fraction in fractions:
            squares += np.where(takes_part, (fraction - mean) * (fraction - mean), 0.0)
        deviation = np.where(more, np.sqrt(squares / np.maximum(count, 1)), deviation)
    result: IntArray = ((1 - deviation) * 100).astype(np.int64)
    return result
