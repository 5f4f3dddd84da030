"""What the queues of a tree are owed: each level divides what its parent is owed, by demand.

A queue gets its own entitlement first, as far as it asks for it, then its part by weight of what others do not ask for, within its
limit. So children are owed together at most what their parent is, where entitlements allow it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Rows
from navarch.model.resources import UNLIMITED, FloatArray, IntArray
from navarch.plugins.queues.division import divide


class Claims(Struct, frozen=True):
    """Arrays with a row a queue: what each may claim of what its parent is owed."""

    weight: FloatArray
    limit: IntArray
    request: IntArray
    entitled: IntArray


def owed_down(total: IntArray, top: Sequence[int], below: Mapping[int, Sequence[int]], claims: Claims) -> IntArray:
    """(queues, resources). `top`: the queues among which the cluster is divided; `below`: the children of each queue."""
    out = np.zeros_like(claims.request)
    levels: list[tuple[IntArray, Sequence[int]]] = [(total, top)]
    while levels:
        amount, numbers = levels.pop()
        if not numbers:
            continue
        rows: Rows = np.array(numbers, dtype=np.intp)
        request = claims.request[rows].astype(np.float64)
        entitled = np.minimum(claims.entitled[rows], claims.request[rows]).astype(np.float64)
        limit = np.where(claims.limit[rows] >= UNLIMITED, np.inf, claims.limit[rows])
        parts = divide(amount, claims.weight[rows], limit, request, np.minimum(entitled, limit))
        out[rows] = np.floor(np.minimum(parts, UNLIMITED) + 1e-9).astype(np.int64)
        levels += [(out[number], below.get(number, ())) for number in numbers]
    return out
