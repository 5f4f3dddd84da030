"""The order of queues, given the share that each would have with its next job.

The criteria, in this order: the queue holds no more than its share; it stays within its quota with the job; priority; it has a
share of every resource that it would use; the smaller dominant share with the job; the same without it; the smaller due. All but
the last compare single values. One due is smaller than another only if no resource of it is larger and some resource is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

_NO_BOUND = float("inf")
NO_RIGHT = 1000.0
"""The weight of one unit of a resource for a queue without a share of it."""


@dataclass(frozen=True, slots=True, eq=False)
class QueueRankKey:
    """A sort key; see the module. Two keys are equal if neither is smaller."""

    figures: tuple[bool, bool, int, bool, float, float]
    due: tuple[float, ...]

    def __lt__(self, other: QueueRankKey) -> bool:
        if self.figures != other.figures:
            return self.figures < other.figures
        return _less(self.due, other.due)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QueueRankKey):
            return NotImplemented
        return self.figures == other.figures and not _less(self.due, other.due) and not _less(other.due, self.due)


LAST = QueueRankKey((True, True, 1 << 62, True, float("inf"), float("inf")), ())
"""For a queue without a place in the tree."""


def _less(left: tuple[float, ...], right: tuple[float, ...]) -> bool:
    return left != right and all(a <= b for a, b in zip(left, right, strict=True))


def dominant(held: list[float], due: list[float], total: list[float]) -> float:
    """The largest fraction of its due that a queue holds in any resource. An unlimited due is the whole cluster."""
    most = 0.0
    for amount, right, all_ in zip(held, due, total):
        if right == _NO_BOUND:
            right = all_
        part = amount / right if right else amount * NO_RIGHT
        if part > most:
            most = part
    return most


def rank_key(
    allocated: list[float],
    share: list[float],
    quota: list[float],
    due: list[float],
    total: list[float],
    priority: int,
    waiting: list[float],
    leaving: list[float],
) -> QueueRankKey:
    """Plain floats: a comparison of queues stands between any two jobs, and three numbers are too few for arrays."""
    over = True
    beyond = no_right = False
    after: list[float] = []
    for held, fair, owed, right, more, less in zip(allocated, share, quota, due, waiting, leaving):
        with_job = held + more
        over = over and fair < held
        beyond = beyond or with_job > owed
        no_right = no_right or (with_job > 0 and not right)
        after.append(with_job - less)
    figures = (over, beyond, -priority, no_right, dominant(after, due, total), dominant(allocated, due, total))
    return QueueRankKey(figures, tuple(due))
