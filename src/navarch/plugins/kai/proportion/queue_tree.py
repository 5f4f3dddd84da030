"""The tree of queues as arrays: quota, limit, fair share, and allocated amounts.

Arrays are (resources, queues); `UNLIMITED` is infinity, so that comparisons need no special case. A queue is a row number; amounts
are vectors over the same resources. This module only reads the arrays: the plugin owns `allocated` and `fixed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from navarch.plugins.kai.proportion.share_division import NO_PARENT, Floats, Ints


@dataclass(frozen=True, slots=True)
class QueueTree:
    parent: Ints
    quota: Floats
    limit: Floats
    share: Floats
    """Fair share, as of the start of the cycle."""
    allocated: Floats
    fixed: Floats
    """The part of `allocated` that cannot be preempted."""

    def path(self, queue: int) -> Iterator[int]:
        """The queue and its ancestors, leaf first."""
        while queue != NO_PARENT:
            yield queue
            queue = int(self.parent[queue])

    def siblings(self, queue: int) -> Ints:
        """The other children of the queue's parent."""
        siblings = self.parent == self.parent[queue]
        siblings[queue] = False
        return np.flatnonzero(siblings)

    def rivals(self, one: int, other: int) -> tuple[int, int]:
        """The ancestors of both queues just below their lowest common ancestor; reclaim is judged between these two. If one queue
        is an ancestor of the other, the two queues themselves."""
        ours, theirs = list(self.path(one))[::-1], list(self.path(other))[::-1]
        for mine, yours in zip(ours, theirs):
            if mine != yours:
                return mine, yours
        return one, other

    def allocatable(self, queue: int | Ints | slice = slice(None)) -> Floats:
        """What a queue may hold without owing it: the larger of fair share and quota, within its limit."""
        return np.minimum(self.limit[:, queue], np.maximum(self.quota[:, queue], self.share[:, queue]))


def exceeds(amount: Floats, bound: Floats) -> bool:
    """Whether any resource is above its bound. An amount of exactly -1 is KAI's mark for no bound. Figures of a queue reach it where
    victims count twice, and only there: the queue then has more than any bound."""
    return bool((amount > bound).any()) or bool(((amount == -1) & np.isfinite(bound)).any())


@dataclass(frozen=True, slots=True)
class OverCapacity:
    """The queue on the path to the root that refuses an amount, and the resources (flags)."""

    queue: int
    over_limit: bool
    """False: the quota, which bounds non-preemptible jobs."""
    resources: NDArray[np.bool_]


def over_capacity(tree: QueueTree, queue: int, amount: Floats, preemptible: bool, *, limits: bool = True) -> OverCapacity | None:
    """The first bound that `amount` more in `queue` would break: limits from leaf to root, then, for non-preemptible jobs, quotas
    from leaf to root. Only requested resources are checked. `limits` False: quotas alone."""
    path = list(tree.path(queue))
    checks = [(True, tree.limit, tree.allocated)] if limits else []
    if not preemptible:
        checks.append((False, tree.quota, tree.fixed))
    for over_limit, bound, held in checks:
        for row in path:
            broken = (amount > 0) & (held[:, row] + amount > bound[:, row])
            if broken.any():
                return OverCapacity(row, over_limit, broken)
    return None
