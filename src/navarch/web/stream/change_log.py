"""Which rows changed in which version, so that a viewer gets what changed since the version it has.

The log keeps ids and not rows. A viewer that was away for twenty versions gets each changed row once, as it is now.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

MOST_VERSIONS: Final = 600
MOST_IDS: Final = 500_000
TOPICS: Final = ("overview", "jobs", "queues", "nodes", "cycles")


@dataclass(frozen=True)
class Changed:
    """Ids of rows that changed or are gone."""

    jobs: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    cycles: bool = False

    def __len__(self) -> int:
        return len(self.jobs) + len(self.queues) + len(self.nodes)


@dataclass
class ChangeLog:
    """`boot` differs in each process, so a version of another process is never taken for one of ours."""

    boot: str = field(default_factory=lambda: secrets.token_hex(2))
    number: int = 0
    _entries: deque[tuple[int, Changed]] = field(default_factory=deque)
    _ids: int = 0

    @property
    def version(self) -> str:
        return f"{self.boot}-{self.number}"

    def add(self, changed: Changed) -> None:
        self.number += 1
        self._entries.append((self.number, changed))
        self._ids += len(changed)
        while len(self._entries) > MOST_VERSIONS or (self._ids > MOST_IDS and len(self._entries) > 1):
            self._ids -= len(self._entries.popleft()[1])

    def forget(self) -> None:
        """Begin a version without a known difference to earlier ones: viewers load everything again."""
        self.number += 1
        self._entries.clear()
        self._ids = 0

    def number_of(self, version: str) -> int | None:
        """The number in a version of this process; None: it is another's, or none at all."""
        boot, _, number = version.partition("-")
        if boot != self.boot or not (number.isascii() and number.isdigit()) or len(number) > 15:
            return None
        return int(number) if int(number) <= self.number else None

    def since(self, number: int) -> Changed | None:
        """What changed after this version; None: that is no longer known."""
        first = self._entries[0][0] if self._entries else self.number + 1
        if number + 1 < first:
            return None
        parts = [changed for at, changed in self._entries if at > number]
        if len(parts) == 1:
            return parts[0]
        return Changed(
            _union(part.jobs for part in parts),
            _union(part.queues for part in parts),
            _union(part.nodes for part in parts),
            any(part.cycles for part in parts),
        )


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)
