"""How an amount is divided among queues by weight, in rounds, within limits and demand."""

from __future__ import annotations

import numpy as np

from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.plugins.queues.amounts import CLOSE, is_empty


def divide(total: IntArray, weight: FloatArray, limit: FloatArray, request: FloatArray, guarantee: FloatArray) -> FloatArray:
    """What each queue deserves: arrays of (queues, resources), `limit` infinite where nothing limits.

    >>> asked, none = np.array([[2.0, 0, 0], [20.0, 0, 0]]), np.zeros((2, 3))
    >>> divide(np.array([12, 0, 0]), np.ones(2), np.full((2, 3), np.inf), asked, none)[:, 0].tolist()
    [2.0, 10.0]
    """
    deserved = np.zeros_like(request)
    unmet: BoolArray = np.ones(len(weight), dtype=bool)
    left: FloatArray = total.astype(np.float64)
    while (whole := weight[unmet].sum()) > 0:
        before = deserved[unmet]
        after = before + left * (weight[unmet] / whole)[:, None]
        after = np.maximum(np.minimum(np.minimum(after, limit[unmet]), request[unmet]), guarantee[unmet])
        deserved[unmet] = after
        moved = after - before
        met = (request[unmet] - after < CLOSE).all(axis=1) | (moved == 0).all(axis=1)
        unmet[np.flatnonzero(unmet)[met]] = False
        rest = np.maximum(left + np.maximum(-moved, 0).sum(axis=0) - np.maximum(moved, 0).sum(axis=0), 0)
        if is_empty(rest) or (rest == left).all():
            break
        left = rest
    return deserved
