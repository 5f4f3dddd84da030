"""Rules of reclaim: whether a job of one queue may take from another queue. Pure functions over the tree of queues.

There are three questions, cheapest first. May the job reclaim at all: only within its queue's fair share, and only within quota if
it is non-preemptible. Can a queue have victims for it. And, once victims are known, may exactly these go: a queue loses what it
holds above its fair share (or quota, if that is more), or, to a queue that stays within its own quota, what it holds above its
quota. The reclaiming queue must not end with a higher saturation than the queues it takes from.

Reclaim is judged between the two ancestors just below the lowest common one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from navarch.plugins.kai.proportion.queue_tree import QueueTree, exceeds
from navarch.plugins.kai.proportion.share_division import Floats

_EXACT = 2.0**53
Takings = Sequence[tuple[int, Sequence[Floats]]]
"""Victims by leaf queue: the resources of each unit that goes as a whole, in order."""


def may_reclaim(tree: QueueTree, queue: int, required: Floats, preemptible: bool) -> bool:
    """Whether a job that needs `required` may reclaim, by the state of its own queue."""
    if exceeds(tree.allocated[:, queue] + required, tree.share[:, queue]):
        return False
    return preemptible or not exceeds(tree.fixed[:, queue] + required, tree.quota[:, queue])


def worth_reclaiming(tree: QueueTree, queue: int, required: Floats, victim: int) -> bool:
    """Whether `victim`, a leaf queue, can have anything to give to a job of `queue`."""
    taker, giver = tree.rivals(queue, victim)
    held = tree.allocated[:, giver]
    if exceeds(tree.allocated[:, taker] + required, tree.quota[:, taker]):
        return exceeds(held, tree.allocatable(giver))
    quota = tree.quota[:, giver]
    concerned = (required > 0) & np.isfinite(quota)
    if (held > quota)[concerned].any():
        return True
    return not (held < quota)[concerned].any()


def may_take(tree: QueueTree, queue: int, required: Floats, preemptible: bool, takings: Takings, saturation: float = 1.0) -> bool:
    """Whether these victims may go for a job of `queue`. `saturation` above one requires the giver to have that much higher
    saturation than the taker."""
    held = tree.allocated.copy()
    lost = np.zeros(tree.allocated.shape[1], dtype=bool)
    involved = np.zeros(tree.allocated.shape, dtype=bool)
    for victim, units in takings:
        taker, giver = tree.rivals(queue, victim)
        within_quota = not exceeds(tree.allocated[:, taker] + required, tree.quota[:, taker])
        allocatable, quota = tree.allocatable(giver), tree.quota[:, giver]
        if not units:
            continue
        path = list(tree.path(victim))
        taken = np.cumsum(np.array(units), axis=0)
        remaining = np.vstack([held[:, giver], held[:, giver] - taken[:-1]])  # each unit is judged before it goes
        fair = _exceeded(remaining, allocatable)
        if within_quota:
            fair |= _exceeded(remaining, quota)
        if not fair.all():
            return False
        held[:, path] -= taken[-1][:, None]
        lost[path] = True
        involved[:, path] |= (taken[-1] > 0)[:, None]
    return _stays_least_saturated(tree, queue, required, preemptible, held, lost, involved, saturation)


def _exceeded(amounts: Floats, bound: Floats) -> NDArray[np.bool_]:
    """`exceeds` for each row of amounts."""
    found: NDArray[np.bool_] = ((amounts > bound) | ((amounts == -1) & np.isfinite(bound))).any(axis=1)
    return found


def most_taken(tree: QueueTree, queue: int, required: Floats, victims: Sequence[tuple[int, Floats]]) -> Floats:
    """An upper bound, for each resource, on what `may_take` allows to take for a job of `queue` that needs `required`, over all
    choices among `victims`: each is a leaf queue and all that one of its jobs holds, which is at least as much as any unit of it.

    A unit may go only while the giver holds more than its due of some resource. If that can be only one resource, everything taken
    before the last unit is less than what the giver holds above its due, and the last unit is no larger than the largest. If it can
    be several resources, or figures are not whole numbers (sums would round), everything counts.
    """
    by_leaf: dict[int, list[Floats]] = {}
    for victim, amount in victims:
        by_leaf.setdefault(victim, []).append(amount)
    by_giver: dict[tuple[int, int], list[Floats]] = {}
    for victim, amounts in by_leaf.items():
        by_giver.setdefault(tree.rivals(queue, victim), []).extend(amounts)
    out = np.zeros(len(required))
    for (taker, giver), amounts in by_giver.items():
        total, largest = np.sum(amounts, axis=0), np.max(amounts, axis=0)
        held, due = tree.allocated[:, giver], tree.allocatable(giver)
        if not exceeds(tree.allocated[:, taker] + required, tree.quota[:, taker]):
            due = np.minimum(due, tree.quota[:, giver])
        beyond = held > due
        if not beyond.any():
            continue
        exact = (held == np.floor(held)) & (total == np.floor(total)) & (total < _EXACT)
        alone = beyond & (beyond.sum() == 1) & exact
        most = total.copy()
        for resource in np.flatnonzero(alone).tolist():
            before = _whole_below(float(held[resource]), float(due[resource]))
            most[resource] = min(total[resource], before + largest[resource])
        out += most
    return out


def _whole_below(held: float, due: float) -> int:
    """The largest whole amount that may be gone while what is left of `held` is still more than `due`, judged as `may_take`
    judges it."""
    gone = int(held - due)
    while held - gone <= due:
        gone -= 1
    while held - (gone + 1) > due:
        gone += 1
    return gone


def _stays_least_saturated(
    tree: QueueTree,
    queue: int,
    required: Floats,
    preemptible: bool,
    held: Floats,
    lost: NDArray[np.bool_],
    involved: NDArray[np.bool_],
    saturation: float,
) -> bool:
    for row in tree.path(queue):
        ours = _saturation(held[:, row] + required, tree.share[:, row])
        siblings = tree.siblings(row)
        for sibling in siblings[lost[siblings]]:
            theirs = _saturation(held[:, sibling], tree.share[:, sibling])
            too_much = (ours > 1) & (tree.share[:, sibling] > 0) & (ours * saturation >= theirs)
            if (too_much & (involved[:, sibling] | (required > 0))).any():
                return False
        if not preemptible and exceeds(tree.fixed[:, row] + required, tree.quota[:, row]):
            return False
    return True


def _saturation(held: Floats, share: Floats) -> Floats:
    """held / share; holding anything of a share of nothing is infinite."""
    nothing = np.where(held > 0, np.inf, 0.0)
    return np.divide(held, share, out=nothing, where=share != 0)
