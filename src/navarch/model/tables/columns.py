"""Growing columns: how a table keeps arrays while rows come and go.

A table owns its arrays and hands out row numbers; a row keeps its number while its object lives and is reused afterwards.
Arrays over resources are resource-major, (R, rows): a filter over one resource then reads contiguous memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def grown(array: Array, rows: int, *, axis: int = -1) -> Array:
    """The same content with at least `rows` places along `axis`, the new ones zero. Doubles, so growth is amortised."""
    have = array.shape[axis]
    if rows <= have:
        return array
    shape = list(array.shape)
    shape[axis] = max(rows, 2 * have)
    out = np.zeros(shape, dtype=array.dtype)
    out[tuple(slice(0, n) for n in array.shape)] = array
    return out


def sums_by_group(array: Array, group: npt.NDArray[np.integer[Any]], groups: int) -> Array:
    """Columns added up by group: (R, rows) and a group number a row give (R, groups). Rows of a negative group are left out.

    Exact for integers, and one sort and one pass however many groups there are; a handful are summed one by one.

    >>> sums_by_group(np.array([[1, 2, 4, 8]]), np.array([1, -1, 0, 1]), 3).tolist()
    [[4, 9, 0]]
    """
    out = np.zeros((array.shape[0], groups), dtype=array.dtype)
    if groups <= 4:
        for number in range(groups):
            out[:, number] = array @ (group == number).astype(array.dtype)
        return out
    order = np.argsort(group, kind="stable")
    order = order[np.searchsorted(group[order], 0) :]
    if len(order):
        sorted_groups = group[order]
        first = np.ones(len(order), dtype=bool)
        np.not_equal(sorted_groups[1:], sorted_groups[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        out[:, sorted_groups[starts]] = np.add.reduceat(array[:, order], starts, axis=1)
    return out


class Rows:
    """Row numbers by key, with reuse of freed rows."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {}
        self.free: list[int] = []
        self.top = 0

    def __len__(self) -> int:
        return len(self.of)

    def assign(self, key: str) -> int:
        row = self.free.pop() if self.free else self.top
        if row == self.top:
            self.top += 1
        self.of[key] = row
        return row

    def give_back(self, key: str) -> int:
        row = self.of.pop(key)
        self.free.append(row)
        return row
