"""How often Python looks for objects that refer to each other in a circle.

Almost nothing here is cyclic, so a collection finds next to nothing. With Python's own thresholds the collections during the imports
alone are a seventh of the CPU of a start.
"""

from __future__ import annotations

import gc

THRESHOLDS = (20_000, 20, 50)
"""Fewer, larger collections: a full one stops the process."""


def collect_rarely() -> None:
    gc.set_threshold(*THRESHOLDS)
