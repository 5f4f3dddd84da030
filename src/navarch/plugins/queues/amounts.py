"""Amounts of a queue where it matters whether a resource is named at all.

A limit that does not name a resource leaves it free, a share that does not name it gives none of it, and a share of zero is
not the same as no share. So a queue's amount is two vectors over the resource space: how much, and which names were given. cpu
and memory always count as given (they are plain fields in the API that the rules come from), other resources only when named.

Amounts of tasks and jobs are plain integer vectors: there, what is not named is zero. Comparisons take plain vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Rows
from navarch.model.resources import CPU, MEMORY, PODS, UNLIMITED, BoolArray, FloatArray, IntArray
from navarch.model.spec import Requests

Vector = IntArray | FloatArray
CLOSE = 0.1
"""What counts as equal where one side is a quotient: a tenth of the smallest unit."""


class Amounts(Struct, frozen=True):
    values: Vector
    given: BoolArray

    @classmethod
    def of(cls, names: Sequence[str], requests: Requests | None) -> Amounts:
        """From a resource list. Names that the resource space does not know are left out. Thousands of queues say the same, so equal
        lists give the same object, which is read only.

        >>> Amounts.of(("cpu", "memory", "pods", "gpu"), (("gpu", 0),)).given.tolist()
        [True, True, False, True]"""
        return _amounts(tuple(names), requests or ())

    @classmethod
    def limit(cls, names: Sequence[str], requests: Requests | None) -> Amounts:
        """A limit: what it does not name, and cpu or memory of zero, is unlimited. Every name is given afterwards."""
        return _limit(tuple(names), requests or ())

    def within(self, limit: Amounts) -> Amounts:
        """Cut down to a limit; a name the limit does not give stays as it is."""
        return Amounts(np.where(limit.given, np.minimum(self.values, limit.values), self.values), self.given)

    def at_least(self, floor: Amounts) -> Amounts:
        """Raised to a floor; names of both are given."""
        return Amounts(np.maximum(self.values, floor.values), self.given | floor.given)

    def plus(self, other: Amounts) -> Amounts:
        return Amounts(self.values + other.values, self.given | other.given)

    def beyond(self, other: Amounts) -> Amounts:
        """What exceeds the other. A name is given only where something does."""
        values = np.maximum(self.values - other.values, 0)
        given = values > 0
        given[[CPU, MEMORY]] = True
        return Amounts(values, given)

    @property
    def is_empty(self) -> bool:
        """Nothing but perhaps pods."""
        return is_empty(self.values)

    @property
    def counted(self) -> BoolArray:
        """Names with an amount above zero, pods included."""
        counted: BoolArray = self.values >= CLOSE
        return counted


@lru_cache(maxsize=4096)
def _amounts(names: tuple[str, ...], requests: Requests) -> Amounts:
    values, given = [0] * len(names), [False] * len(names)
    given[CPU] = given[MEMORY] = True
    for name, amount in requests:
        if name in names:
            place = names.index(name)
            values[place], given[place] = amount, True
    return _read_only(Amounts(np.array(values, dtype=np.int64), np.array(given)))


@lru_cache(maxsize=4096)
def _limit(names: tuple[str, ...], requests: Requests) -> Amounts:
    found = _amounts(names, requests)
    named = found.given.copy()
    named[[CPU, MEMORY]] = found.values[[CPU, MEMORY]] > 0
    return _read_only(Amounts(np.where(named, found.values, UNLIMITED), np.ones_like(named)))


def _read_only(amounts: Amounts) -> Amounts:
    amounts.values.flags.writeable = amounts.given.flags.writeable = False
    return amounts


def total_of(amounts: Iterable[Amounts], resources: int) -> Amounts:
    nothing = np.zeros(resources, dtype=bool)
    nothing[[CPU, MEMORY]] = True
    out = Amounts(np.zeros(resources, dtype=np.int64), nothing)
    for each in amounts:
        out = out.plus(each)
    return out


def is_empty(values: Vector) -> bool:
    some = values >= CLOSE
    some[PODS] = False
    return not some.any()


def fits(left: Vector, right: Vector) -> bool:
    """Every resource of the left, pods included, is at most the right's, give or take what a quotient leaves."""
    return bool((left - right < CLOSE).all())


def asked_dims(request: Vector) -> Rows:
    """The resources that a request asks for, pods aside: where queue limits are looked at."""
    asked = request > 0
    asked[PODS] = False
    return np.flatnonzero(asked)


def largest_part(held: Vector, of: Vector, dims: Rows) -> float:
    """The dominant share over some resources; 0 over none."""
    return float((held[dims] / of[dims]).max()) if len(dims) else 0.0


def in_order(dims: Iterable[int], names: Sequence[str]) -> list[str]:
    """Names in the usual order: cpu, memory, then the others by name."""
    return [names[d] for d in sorted(dims, key=lambda d: (min(d, PODS), names[d]))]
