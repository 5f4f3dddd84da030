"""Nodes that fail and come back: a schedule drawn from a seed, one stream of numbers a node.

Times between failures and times until a node is back are exponential. A node's schedule depends on the seed and its name alone, so
another policy meets the same failures.
"""

from __future__ import annotations

import random

from msgspec import Struct

DAY = 86400.0


class NodeFailures(Struct, frozen=True):
    """Seconds between failures of one node, and until it is back, on average."""

    between: float
    repair: float
    seed: int = 0

    def schedule(self, node: str) -> NodeSchedule:
        return NodeSchedule(self, node)


class NodeSchedule:
    """Successive failures and returns of one node."""

    def __init__(self, failures: NodeFailures, node: str) -> None:
        self._failures = failures
        self._random = random.Random(f"{failures.seed} {node}")

    def next_failure(self, now: float) -> float:
        return now + self._random.expovariate(1 / self._failures.between)

    def next_return(self, now: float) -> float:
        return now + self._random.expovariate(1 / self._failures.repair)
