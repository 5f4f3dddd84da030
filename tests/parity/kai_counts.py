"""Which files of KAI's recorded cases are run, and how many of their texts agree."""

from __future__ import annotations

ONE_CYCLE = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction", "random", "random-2")
COUNTS = {
    "allocate": (61, 0, 3),
    "consolidation": (1, 0, 0),
    "reclaim": (2, 87, 0),
    "preempt": (1, 90, 0),
    "integration": (136, 76, 9),
    "random": (672, 128, 3),
    "random-2": (215, 35, 0),
}
"""File -> refusals that agree, notes on victims of simulated scenarios, refusals that differ."""
