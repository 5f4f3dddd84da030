"""How raw scores become 0 to 100 over the nodes in question: kube-scheduler's default rule, in whole numbers."""

from __future__ import annotations

import numpy as np

from navarch.model.resources import FloatArray


def default_normalise(raw: FloatArray, high: float, *, reverse: bool = False) -> FloatArray:
    """100 for the highest. Reversed: 100 for zero; the subtraction comes after the division, so a third gives 67.

    >>> default_normalise(np.array([0.0, 1.0, 3.0]), 3.0, reverse=True).tolist()
    [100.0, 67.0, 0.0]
    """
    if high <= 0:
        return np.full(len(raw), 100.0) if reverse else raw
    scaled: FloatArray = np.floor(100.0 * raw / high)  # whole numbers far below 2**53: the quotient cannot round up to one
    return 100.0 - scaled if reverse else scaled
