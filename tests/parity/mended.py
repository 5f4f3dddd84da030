"""Recorded cases that show nothing but an accident of their system, which Navarch does not imitate: *mended on purpose*.

Each is expected to differ, so that the lists stay honest. docs/parity.md says how many there are and what Navarch does instead.
"""

from __future__ import annotations

from collections.abc import Mapping

Cases = Mapping[str, tuple[int, ...]]
"""File -> numbers of its cases, counted from 0."""

VOLCANO: Mapping[str, Cases] = {
    "undone-evictions": {"random": (84, 164, 178, 191)},
    "affinity-lists": {"plugins-predicates": (2,), "random": (0, 90, 167, 188)},
    "rebinds": {"random": (172,)},
    "unknown-tiers": {"actions-allocate": (33,)},
    "doubted-promises": {"gang-derived": (64, 65, 66, 67, 72, 75, 76)},
    "gang-reclaim-weights": {"gang-derived": (38,)},
}
"""Name of an accident (`engine/policy/not_followed.py`) -> cases of whole cycles."""
PLUGINS: Mapping[str, Cases] = {
    "cards-that-cannot-serve": {"deviceshare": (8, 49, 57, 58, 60, 61, 62)},
    "deviceshare-needs-predicates": {"deviceshare": (13, 63)},
    "spread-prefers-no-node": {"deviceshare": (37, 38, 39, 77)},
    "role-failures": {"deviceshare": (9, 72, 73)},
    "undone-cards": {"deviceshare": (65, 67)},
    "cpus-by-number": {"numaaware": (37, 44, 47, 48)},
    "topology-of-one-cycle": {"task-topology": (14, 15, 18, 19, 27, 28, 35, 37, 45, 47, 51)},
    "rescheduling-victims": {"rescheduling": (30, 31)},
    "extender-asked-again": {"extender-protocol": (0, 1, 2, 32, 33)},
    "extender-failures": {"extender-protocol": (6, 17, 25, 29, 59)},
}
"""The same of cases with one of the rarer plugins."""
KAI: Mapping[str, Cases] = {"shared-gpus-by-counting": {"random": (55, 135), "random-2": (31, 46)}}
"""The same of cycles of KAI."""


def why(lists: Mapping[str, Cases], file: str, number: int) -> str:
    """The accident that a case shows; empty: it is expected to agree."""
    return next((name for name, cases in lists.items() if number in cases.get(file, ())), "")


def count(lists: Mapping[str, Cases], file: str = "") -> int:
    """How many cases are listed: of one file, or of all."""
    return sum(len(numbers) for cases in lists.values() for name, numbers in cases.items() if not file or name == file)
