"""What the rules for NUMA zones share: the policies of a kubelet's topology manager, and the fewest zones that a request needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NONE: Final = "none"
BEST_EFFORT: Final = "best-effort"
RESTRICTED: Final = "restricted"
SINGLE: Final = "single-numa-node"
STRICT: Final = (SINGLE, RESTRICTED)
"""Policies under which kubelet refuses a pod that it cannot align."""


def fewest_zones(need: int, sizes: Iterable[int]) -> int:
    """The fewest zones of these sizes that could hold it were they empty; 0: not even all of them.

    >>> fewest_zones(5, [2, 4, 4]), fewest_zones(20, [2, 4, 4])
    (2, 0)
    """
    for number, size in enumerate(sorted(sizes, reverse=True), start=1):
        need -= size
        if need <= 0:
            return number
    return 0
