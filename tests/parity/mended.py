"""Recorded cases that show nothing but an accident of their system, which Navarch does not imitate: *mended on purpose*.

Each is expected to differ, so that the lists stay honest. docs/parity.md says how many there are and what Navarch does instead.
"""

from __future__ import annotations

from collections.abc import Mapping

Cases = Mapping[str, tuple[int, ...]]
"""File -> numbers of its cases, counted from 0."""

VOLCANO: Mapping[str, Cases] = {
    "undoing an eviction does not bring the pod back for scores, pod count, ports and affinity in this cycle": {
        "random": (84, 164, 178, 191),
    },
}
"""Why -> cases of whole cycles."""


def why(lists: Mapping[str, Cases], file: str, number: int) -> str:
    """The accident that a case shows; empty: it is expected to agree."""
    return next((sentence for sentence, cases in lists.items() if number in cases.get(file, ())), "")


def count(lists: Mapping[str, Cases]) -> int:
    return sum(len(numbers) for cases in lists.values() for numbers in cases.values())
