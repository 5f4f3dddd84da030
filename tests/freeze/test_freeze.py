"""Decisions, statuses and words are those that were frozen.

A change that moves some of them on purpose runs `make freeze`, and says in its commit which digests moved and why.
"""

from __future__ import annotations

from pathlib import Path

from tests.freeze.records import PARTS, digests, frozen

FILE = Path(__file__).with_name("digests.txt")
EVERY = 20
"""A policy of the frozen records is given one of so many inputs of each source."""


def read() -> dict[str, str]:
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    return {name: text for name, _, text in (line.rpartition(" | ") for line in lines)}


def test_what_is_decided_is_what_was_frozen() -> None:
    found, wanted = digests(frozen(EVERY)), read()
    moved = []
    for name, text in found.items():
        parts = [part for part, a, b in zip(PARTS, text.split(), wanted.get(name, "- - - -").split()) if a != b]
        if parts:
            moved.append(f"{name}: {', '.join(parts)}")
    assert not moved, "\n".join([f"{len(moved)} records moved. If that is meant: make freeze, and say in the commit why.", *moved])
