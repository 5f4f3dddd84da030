"""The division of a cluster's resources over a tree of queues.

The division goes level by level from the root: the share of a queue is what its children divide. Siblings divide each resource
separately. Every queue first gets its quota as far as it requests it, even where the quotas together exceed the total. The rest
goes to queues that request more, highest priority first, by weight, in rounds. A queue that requests less than its part gets its
request, and what it leaves goes into the next round; any other queue gets its part rounded down to a whole unit (one device,
one millicore, one byte). The units that rounding left go, one each, to the largest fractions, then to the senior queue. A
queue that has used more than its weight in the past weighs less: `w + k * (w - u)`, never below zero.

Sibling groups do not interact, and neither do resources, so a level is one call: every (resource, queue) pair is a *claim*
in flat arrays, every (resource, parent) pair a *pot*. A round costs a few passes over the claims of one priority.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

NO_PARENT = -1
UNLIMITED = np.inf


@dataclass(frozen=True, slots=True)
class QueueClaims:
    """Quota, limit, weight and requests of queues: arrays of (resources, queues), `UNLIMITED` where there is no bound."""

    quota: Floats
    limit: Floats
    weight: Floats
    """Over quota; a queue of weight zero never gets more than its quota."""
    request: Floats
    """Of everything in the queue's subtree, allocated and pending."""
    usage: Floats
    """In the past, as a fraction of the cluster."""
    priority: Ints
    """Of each queue; higher is served first."""
    seniority: Ints
    """Of each queue, distinct; a lower number wins a tie."""

    @property
    def requestable(self) -> Floats:
        return np.minimum(self.limit, self.request)


def seniority(created: list[float], uids: list[str]) -> Ints:
    """Ranks by age, then by uid.

    >>> seniority([5.0, 1.0, 1.0], ["a", "c", "b"]).tolist()
    [2, 1, 0]
    """
    ranks = np.empty(len(uids), dtype=np.intp)
    ranks[sorted(range(len(uids)), key=lambda row: (created[row], uids[row]))] = np.arange(len(uids))
    return ranks


def fair_shares(parent: Ints, claims: QueueClaims, total: Floats, usage_weight: float = 1.0) -> Floats:
    """Every queue's fair share, (resources, queues). `parent` holds row numbers, `NO_PARENT` for top queues; a queue that
    no top queue leads to gets nothing.

    >>> two = np.array([[2.0, 2.0]])
    >>> claims = QueueClaims(quota=two, limit=np.full((1, 2), UNLIMITED), weight=np.array([[3.0, 1.0]]),
    ...     request=np.array([[10.0, 10.0]]), usage=np.zeros((1, 2)), priority=np.zeros(2, int), seniority=np.arange(2))
    >>> fair_shares(np.array([-1, -1]), claims, np.array([10.0]), usage_weight=0).tolist()
    [[7.0, 3.0]]
    """
    shares = np.zeros_like(claims.request)
    members = np.flatnonzero(parent == NO_PARENT)
    amounts = np.asarray(total, dtype=np.float64)[:, None]
    siblings = np.zeros(len(members), dtype=np.intp)
    while len(members):
        shares[:, members], _ = divide(amounts, siblings, _of(claims, members), usage_weight)
        is_parent = np.zeros(len(parent), dtype=bool)
        is_parent[members] = True
        members = np.flatnonzero((parent != NO_PARENT) & is_parent[parent])
        parents, siblings = np.unique(parent[members], return_inverse=True)
        amounts = shares[:, parents]
    return shares


def divide(total: Floats, siblings: Ints, claims: QueueClaims, usage_weight: float = 1.0) -> tuple[Floats, Floats]:
    """Shares of one level and what is left: `total` is (resources, parents), `siblings` gives each queue its parent."""
    owed = np.minimum(claims.quota, total[:, siblings])
    granted = np.minimum(np.where(np.isinf(claims.quota), owed, claims.quota), claims.requestable)
    left = np.maximum(total - _sums(granted, siblings, total.shape[1]), 0.0)
    return share_surplus(left, siblings, granted, claims, usage_weight)


def share_surplus(
    surplus: Floats, siblings: Ints, start: Floats, claims: QueueClaims, usage_weight: float = 1.0
) -> tuple[Floats, Floats]:
    """The second step alone: divide `surplus`, (resources, parents), beyond `start`, (resources, queues), by weight."""
    resources, parents = surplus.shape
    queues = len(siblings)
    pot = (np.arange(resources)[:, None] * parents + siblings[None, :]).ravel()
    left = surplus.astype(np.float64).ravel().copy()
    share = start.astype(np.float64).ravel().copy()
    wanted = claims.requestable.ravel()
    weight, usage = claims.weight.ravel(), claims.usage.ravel()
    tier = np.tile(np.unique(-claims.priority, return_inverse=True)[1], resources)
    remainder = np.zeros(resources * queues)

    candidates = (wanted > share) & (weight != 0)
    for current in np.unique(tier[candidates]):
        claim = np.flatnonzero(candidates & (tier == current))
        _rounds(claim, pot, left, share, remainder, wanted, weight, usage, usage_weight)
    seniority_of = np.tile(claims.seniority, resources)
    _hand_out_units(pot, left, share, remainder, wanted, tier, seniority_of)
    return share.reshape(resources, queues), left.reshape(resources, parents)


def _rounds(
    claim: Ints,
    pot: Ints,
    left: Floats,
    share: Floats,
    remainder: Floats,
    wanted: Floats,
    weight: Floats,
    usage: Floats,
    usage_weight: float,
) -> None:
    """Rounds among the claims of one priority, all pots at once. Each round satisfies a claim for good or is its pot's last,
    so a pot sees at most one round more than it has claims."""
    while True:
        claim = claim[(left[pot[claim]] > 0) & (wanted[claim] > share[claim])]
        if not len(claim):
            return
        contenders = claim
        where = pot[claim]
        everyone = np.bincount(where, weight[claim], len(left))[where]
        norm = np.divide(weight[claim], everyone, out=np.zeros(len(claim)), where=everyone != 0)
        weighed = np.maximum(norm + usage_weight * (norm - usage[claim]), 0.0)
        sum_weighed = np.bincount(where, weighed, len(left))
        served = weighed > 0
        claim, where, weighed = claim[served], where[served], weighed[served]
        part = left[where] * weighed / sum_weighed[where]
        missing = wanted[claim] - share[claim]
        whole = np.floor(part)
        sated = missing <= part
        rounded = ~sated & (part > whole)
        remainder[claim[rounded]] = (part - whole)[rounded]
        grant = np.where(sated, missing, whole)
        share[claim] += grant
        left -= np.bincount(where, grant, len(left))
        np.maximum(left, 0.0, out=left)
        again = np.zeros(len(left), dtype=bool)
        again[where[missing < part]] = True
        # All contenders, also those without weight in this round because of their usage: fewer rivals raise every weight.
        claim = contenders[again[pot[contenders]]]


def _hand_out_units(pot: Ints, left: Floats, share: Floats, remainder: Floats, wanted: Floats, tier: Ints, seniority_of: Ints) -> None:
    """Distribute the units that rounding left, one each: by priority, then the largest fraction, then seniority."""
    claim = np.flatnonzero((remainder > 0) & (left[pot] > 0))
    if not len(claim):
        return
    claim = claim[np.lexsort((seniority_of[claim], -remainder[claim], tier[claim], pot[claim]))]
    starts = np.flatnonzero(np.diff(pot[claim], prepend=-1))
    for first, behind in zip(starts, [*starts[1:], len(claim)], strict=True):
        mine = claim[first:behind]
        unit = np.minimum(1.0, wanted[mine] - share[mine])
        # A running subtraction, so the figures are those of handing out one after another.
        before = np.subtract.accumulate(np.concatenate(([left[pot[mine[0]]]], unit)))
        share[mine] += np.clip(before[:-1], 0.0, unit)
        left[pot[mine[0]]] = max(before[-1], 0.0)


def _sums(values: Floats, siblings: Ints, parents: int) -> Floats:
    return np.stack([np.bincount(siblings, row, parents) for row in values]) if len(values) else values


def _of(claims: QueueClaims, members: Ints) -> QueueClaims:
    return QueueClaims(
        quota=claims.quota[:, members],
        limit=claims.limit[:, members],
        weight=claims.weight[:, members],
        request=claims.request[:, members],
        usage=claims.usage[:, members],
        priority=claims.priority[members],
        seniority=claims.seniority[members],
    )
