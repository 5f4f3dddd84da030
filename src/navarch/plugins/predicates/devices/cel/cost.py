"""What an evaluation may cost, counted in steps and not in seconds, so that the same expression ends the same way everywhere.

kube-scheduler gives one evaluation of a selector 1,000,000 units. Units here follow it: one for each instruction, one for each
ten characters that a function reads or writes, one for each element, and for a pattern its size times the length of the text.
An expression is at most 10 KiB long, as the API demands.
"""

from __future__ import annotations

from typing import Final

from navarch.plugins.predicates.devices.cel.values import CelCostError

MOST_CHARACTERS: Final = 10 * 1024
LIMIT: Final = 1_000_000


class Meter:
    """Units that one evaluation has spent."""

    __slots__ = ("limit", "spent")

    def __init__(self, limit: int = LIMIT) -> None:
        self.spent = 0
        self.limit = limit

    def spend(self, units: int) -> None:
        self.spent += units
        if self.spent > self.limit:
            raise CelCostError(f"the expression costs more than {self.limit} steps")

    def read(self, characters: int) -> None:
        """The price of reading or writing so many characters."""
        self.spend(1 + characters // 10)
