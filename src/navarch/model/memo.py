"""Values that are kept from cycle to cycle in the memo of a cluster, each valid while its version is the same.

Every snapshot carries the memo of its cluster. An entry that is read moves to the end, so the first entries are those that were least
recently used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from navarch.model.snapshot import Snapshot

V = TypeVar("V")


def memoised(snapshot: Snapshot, key: Hashable, version: Hashable, compute: Callable[[], V]) -> V:
    """The value under this key. Computed again when `version` is another one. Later cycles get the same value, so it is read only."""
    held: tuple[Hashable, V] | None = snapshot.memo.pop(key, None)
    if held is None or held[0] != version:
        held = (version, compute())
    snapshot.memo[key] = held
    return held[1]
