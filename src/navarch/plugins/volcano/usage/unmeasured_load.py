"""Load that a metrics server does not show yet: an estimate for each pod that was placed a moment ago.

    estimate = (request * request_ratio + (limit - request) * burst_ratio) * risk        between 0 and the limit
    risk     = risk_factor if the load of the node, estimates so far included, is at least risk_threshold, else 1

A pod without requests counts with fixed amounts. The estimate of a pod depends on the pods before it on the same node, so the pods of
a node are estimated one after the other, and all nodes together in one step. Removing a pod subtracts what it added.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Rows
from navarch.engine.node_functions import TaskClass
from navarch.model.resources import CPU, MEMORY, BoolArray, FloatArray, IntArray


class Expected(Struct, frozen=True):
    """(2, M) each: what pods are expected to use before risk, and the most that they can use."""

    usual: FloatArray
    most: FloatArray

    def at(self, places: Rows) -> Expected:
        return self if self.usual.shape[1] == 1 else Expected(self.usual[:, places], self.most[:, places])


class Estimator(Struct, frozen=True):
    """How much a pod is expected to use."""

    request_ratio: float
    burst_ratio: float
    risk_threshold: float
    risk_factor: float
    without_requests: tuple[float, float]
    """Millicores and bytes of a pod that requests nothing."""
    weights: tuple[int, int]
    """Of cpu and memory in the load of a node."""

    def plain(self, request: FloatArray, limits: FloatArray, best_effort: BoolArray) -> Expected:
        """What pods are expected to use; all (2, M), `best_effort` (M,)."""
        most = np.maximum(request, limits)
        usual = request * self.request_ratio + (most - request) * self.burst_ratio
        fixed = np.array(self.without_requests)[:, None]
        return Expected(np.where(best_effort, fixed, usual), np.where(best_effort, np.inf, most))

    def of_class(self, task: TaskClass) -> Expected:
        request = np.array([[task.request[CPU]], [task.request[MEMORY]]], dtype=float)
        return self.plain(request, np.array(task.shape.limits, dtype=float)[:, None], np.array([task.best_effort]))

    def risk(self, load: FloatArray) -> FloatArray:
        """`load`: (2, M), each between 0 and 1."""
        return np.where(self.weighted(load) >= self.risk_threshold, self.risk_factor, 1.0)

    def weighted(self, values: FloatArray) -> FloatArray:
        """The mean of cpu and memory by their weights; zeros if both weights are 0."""
        cpu, memory = self.weights
        if not cpu + memory:
            return np.zeros(values.shape[1])
        mean: FloatArray = (values[0] * cpu + values[1] * memory) / (cpu + memory)
        return mean


class UnmeasuredLoad:
    """`measured`: (2, nodes), percent of capacity. `capacity`: (2, nodes), millicores and bytes. `tasks`: how many task rows exist."""

    def __init__(self, estimator: Estimator, measured: FloatArray, capacity: FloatArray, tasks: int) -> None:
        self.estimator = estimator
        self.capacity = capacity
        self._measured: FloatArray = measured / 100.0 * capacity
        self.amount: FloatArray = np.zeros_like(capacity)
        """(2, nodes): the sum of the estimates on each node."""
        self._node: Rows = np.full(tasks, -1, dtype=np.intp)
        """By task row: the node on which it has an estimate, or -1."""
        self._added: FloatArray = np.zeros((2, tasks))

    def load(self, rows: Rows | slice, amount: FloatArray | None = None) -> FloatArray:
        """(2, M): measured and estimated load as a fraction of capacity, at most 1; 0 on a node without capacity. `amount`: estimates
        instead of those at present."""
        capacity = self.capacity[:, rows]
        total = self._measured[:, rows] + (self.amount[:, rows] if amount is None else amount)
        fraction = np.divide(total, capacity, out=np.zeros_like(total), where=capacity > 0)
        return np.clip(fraction, 0.0, 1.0)

    def after(self, task: TaskClass, rows: Rows, added: IntArray) -> FloatArray:
        """(2, M): the estimates on these nodes with `added` more tasks of the class on each."""
        amount, expected = self.amount[:, rows], self.estimator.of_class(task)
        for step in range(int(added.max(initial=0))):
            more = added > step
            amount[:, more] += self._next(expected, rows[more], amount[:, more])
        return amount

    def _next(self, expected: Expected, rows: Rows, amount: FloatArray) -> FloatArray:
        estimates: FloatArray = np.clip(expected.usual * self.estimator.risk(self.load(rows, amount)), 0.0, expected.most)
        return estimates

    # changes

    def add(self, tasks: Sequence[int], nodes: Sequence[int], expected: Expected) -> None:
        """Tasks join these nodes, in order. `expected`: of each task, or one column for all of them."""
        self.forget(tasks)
        rows_of, nodes_of = np.array(tasks, dtype=np.intp), np.array(nodes, dtype=np.intp)
        for places in _rounds(nodes_of):
            rows = nodes_of[places]
            estimates = self._next(expected.at(places), rows, self.amount[:, rows])
            self.amount[:, rows] += estimates
            self._node[rows_of[places]], self._added[:, rows_of[places]] = rows, estimates

    def forget(self, tasks: Sequence[int]) -> list[int]:
        """Tasks leave their nodes. Returns those that had an estimate."""
        known = [task for task in tasks if self._node[task] >= 0]
        for task in known:
            node = self._node[task]
            self.amount[:, node] = np.maximum(self.amount[:, node] - self._added[:, task], 0.0)
            self._node[task] = -1
        return known


def _rounds(nodes: Rows) -> list[Rows]:
    """Positions of the list in rounds: the first of each node, the second of each node, ...

    >>> [each.tolist() for each in _rounds(np.array([4, 7, 4, 4]))]
    [[0, 1], [2], [3]]
    """
    if len(nodes) <= 1:
        return [np.arange(len(nodes))]
    order = np.argsort(nodes, kind="stable")
    ordered = nodes[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    number = np.arange(len(nodes)) - np.repeat(first, np.diff(np.r_[first, len(nodes)]))
    return [np.sort(order[number == each]) for each in range(int(number.max()) + 1)]
