"""Facts derived from the shapes of a cluster alone, kept until a shape is added.

A snapshot's list of shapes is the same object while no shape is added (`cluster.Cluster`), so its identity is the cache key. A cluster
of a hundred thousand pods may have as many shapes, and a cycle after one event must not read all of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from navarch.model.snapshot import Snapshot
from navarch.model.spec import Shape

V = TypeVar("V")


def of_shapes(snapshot: Snapshot, name: Hashable, read: Callable[[Sequence[Shape]], V]) -> V:
    """`read(shapes)`, kept under `name`. The name must identify everything else that `read` depends on. The value is read only."""
    shapes, key = snapshot.shapes, ("shape facts", name)
    held: tuple[list[Shape], V] | None = snapshot.memo.pop(key, None)
    if held is None or held[0] is not shapes:
        held = (shapes, read(shapes))
    snapshot.memo[key] = held
    return held[1]
