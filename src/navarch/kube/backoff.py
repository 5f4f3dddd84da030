"""Exponential back-off with jitter. The caller passes in the random source, so that a test can repeat it.

Jitter shortens a wait by up to half, so that many clients of a failed server do not return together. It never exceeds the bound.
"""

from __future__ import annotations

import random


class Backoff:
    """Waits of `first`, `first * factor`, ... up to `cap`, each jittered.

    >>> waits = Backoff(first=1.0, cap=8.0, rng=random.Random(7))
    >>> [0.5 <= waits.next() <= 1.0, 1.0 <= waits.next() <= 2.0, 2.0 <= waits.next() <= 4.0]
    [True, True, True]
    >>> waits.reset(); waits.next() <= 1.0
    True
    """

    def __init__(self, *, first: float = 0.8, cap: float = 30.0, factor: float = 2.0, rng: random.Random | None = None) -> None:
        if not 0 < first <= cap or factor < 1:
            raise ValueError(f"expected 0 < first <= cap and factor >= 1, found {first}, {cap} and {factor}")
        self._first = first
        self._cap = cap
        self._factor = factor
        self._rng = rng or random.Random()
        self._current = first

    def next(self) -> float:
        """The seconds to wait now; the next call returns a longer wait."""
        wait = self._current
        self._current = min(self._cap, wait * self._factor)
        return wait * (0.5 + 0.5 * self._rng.random())

    def reset(self) -> None:
        """Start from the shortest wait again, after a success."""
        self._current = self._first
