"""The (namespace, labels) pairs of pods, interned to numbers: rules about other pods read each pair once, not each pod.

A number is kept while any pod has its pair. A pair that no pod has keeps its number too, because the next job often has the same
labels. Once such pairs are the majority, the others are numbered anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.model.resources import RowArray
from navarch.model.spec import TaskSpec

Identity = tuple[str, tuple[tuple[str, str], ...]]
FORGET_AT = 4096
"""Pairs that no pod has are kept until there are this many."""


class IdentityTable:
    def __init__(self) -> None:
        self.pairs: list[Identity] = []
        """By number. Snapshots share the list: it grows, and `renumber` begins another one."""
        self._number: dict[Identity, int] = {}
        self._uses: list[int] = []
        self._unused = 0

    def acquire(self, spec: TaskSpec) -> int:
        identity = (spec.namespace, tuple(sorted(spec.labels.items())))
        number = self._number.get(identity)
        if number is None:
            number = self._number[identity] = len(self.pairs)
            self.pairs.append(identity)
            self._uses.append(0)
        elif not self._uses[number]:
            self._unused -= 1
        self._uses[number] += 1
        return number

    def acquire_all(self, specs: Sequence[TaskSpec]) -> list[int]:
        """The numbers of many pods. Equal pods share one mapping of labels."""
        known: dict[tuple[int, str], int] = {}
        numbers = []
        for spec in specs:
            key = (id(spec.labels), spec.namespace)
            number = known.get(key)
            if number is None:
                number = known[key] = self.acquire(spec)
            else:
                self._uses[number] += 1
            numbers.append(number)
        return numbers

    def release(self, number: int) -> None:
        self._uses[number] -= 1
        self._unused += not self._uses[number]

    @property
    def has_many_unused(self) -> bool:
        return self._unused > max(FORGET_AT, len(self.pairs) // 2)

    def renumber(self, used: RowArray) -> RowArray:
        """Keep only these numbers. Returns the new number of each."""
        fresh: RowArray = np.zeros(len(self.pairs) or 1, dtype=np.int32)
        fresh[used] = np.arange(len(used), dtype=np.int32)
        self.pairs = [self.pairs[number] for number in used.tolist()]
        self._number = {identity: number for number, identity in enumerate(self.pairs)}
        self._uses = [self._uses[number] for number in used.tolist()]
        self._unused = 0
        return fresh
