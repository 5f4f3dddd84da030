"""Sorting by a comparison that is no order, with the result of Go's `sort.Slice`.

Volcano compares cores by several marks of which any one decides. Two cores may then each come before the other, and the result depends
on the steps of the sort. Go sorts by the pattern-defeating quicksort (Peters, 2021): insertion for short ranges, a pivot from three or
nine samples, a repaired pass for ranges that are nearly sorted, heapsort where pivots stay bad. This module takes the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

_SHORT = 12
"""Ranges up to this length are sorted by insertion."""
_LONG = 50
"""Ranges of this length take nine samples for a pivot, and are repaired where they are nearly sorted."""
_REPAIRS = 5
_MOST_SWAPS = 12
"""Swaps of the nine samples in a range that falls throughout."""
_WORD = (1 << 64) - 1


def sort_like_go(items: Sequence[T], before: Callable[[T, T], bool]) -> list[T]:
    """The items as `sort.Slice` leaves them. `before`: whether the first comes before the second.

    >>> sort_like_go([3, 1, 2], lambda left, right: left < right)
    [1, 2, 3]
    """
    range_ = _Sort(list(items), before)
    range_.sort(0, len(items), len(items).bit_length())
    return range_.items


class _Sort(Generic[T]):
    def __init__(self, items: list[T], before: Callable[[T, T], bool]) -> None:
        self.items = items
        self._before = before

    def _less(self, i: int, j: int) -> bool:
        return self._before(self.items[i], self.items[j])

    def _swap(self, i: int, j: int) -> None:
        self.items[i], self.items[j] = self.items[j], self.items[i]

    def sort(self, start: int, end: int, bad_pivots: int) -> None:
        """`bad_pivots`: how many are allowed before the range is sorted as a heap."""
        balanced = partitioned = True
        while (length := end - start) > _SHORT:
            if not bad_pivots:
                self._sort_as_heap(start, end)
                return
            if not balanced:
                self._scatter(start, end)
                bad_pivots -= 1
            pivot, rises = self._pivot(start, end)
            if rises is False:
                self.items[start:end] = self.items[start:end][::-1]
                pivot, rises = end - 1 - (pivot - start), True
            if balanced and partitioned and rises and self._repaired(start, end):
                return
            if start > 0 and not self._less(start - 1, pivot):
                start = self._part_equal(start, end, pivot)
                continue
            middle, partitioned = self._part(start, end, pivot)
            left, right = middle - start, end - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.sort(start, middle, bad_pivots)
                start = middle + 1
            else:
                self.sort(middle + 1, end, bad_pivots)
                end = middle
        for i in range(start + 1, end):
            self._sink_left(i, start)

    def _sink_left(self, i: int, start: int) -> None:
        """Move an item to the left while it comes before its neighbour."""
        while i > start and self._less(i, i - 1):
            self._swap(i, i - 1)
            i -= 1

    def _pivot(self, start: int, end: int) -> tuple[int, bool | None]:
        """The pivot's place, and whether the samples rise (True) or fall (False)."""
        length = end - start
        quarter = length // 4
        samples = [start + quarter, start + 2 * quarter, start + 3 * quarter]
        swaps = 0
        if length >= _LONG:
            for number, at in enumerate(samples):
                samples[number], more = self._median(at - 1, at, at + 1)
                swaps += more
        found, more = self._median(*samples)
        swaps += more
        return found, True if not swaps else False if swaps == _MOST_SWAPS else None

    def _median(self, a: int, b: int, c: int) -> tuple[int, int]:
        swaps = 0
        if self._less(b, a):
            a, b, swaps = b, a, swaps + 1
        if self._less(c, b):
            b, c, swaps = c, b, swaps + 1
        if self._less(b, a):
            a, b, swaps = b, a, swaps + 1
        return b, swaps

    def _part(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Items before the pivot to its left, the others to its right. Returns its place, and whether nothing had to move."""
        self._swap(start, pivot)
        i, j, moved = start + 1, end - 1, False
        while True:
            while i <= j and self._less(i, start):
                i += 1
            while i <= j and not self._less(j, start):
                j -= 1
            if i > j:
                break
            self._swap(i, j)
            i, j, moved = i + 1, j - 1, True
        self._swap(j, start)
        return j, not moved

    def _part_equal(self, start: int, end: int, pivot: int) -> int:
        """Items that equal the pivot to the left. Returns where the greater ones begin."""
        self._swap(start, pivot)
        i, j = start + 1, end - 1
        while True:
            while i <= j and not self._less(start, i):
                i += 1
            while i <= j and self._less(start, j):
                j -= 1
            if i > j:
                return i
            self._swap(i, j)
            i, j = i + 1, j - 1

    def _repaired(self, start: int, end: int) -> bool:
        """Put a few items right in a range that is nearly sorted. Returns whether it is sorted now."""
        i = start + 1
        for _ in range(_REPAIRS):
            while i < end and not self._less(i, i - 1):
                i += 1
            if i == end:
                return True
            if end - start < _LONG:
                return False
            self._swap(i, i - 1)
            if i - start >= 2:
                self._sink_left(i - 1, 0)
            for j in range(i + 1, end if end - i >= 2 else i + 1):
                if not self._less(j, j - 1):
                    break
                self._swap(j, j - 1)
        return False

    def _scatter(self, start: int, end: int) -> None:
        """Swap three items in the middle with others, so that the next pivot is another one. The sequence depends on the length."""
        length = end - start
        state, mask, middle = length, (1 << length.bit_length()) - 1, start + length // 4 * 2 - 1
        for step in range(3):
            state ^= state << 13 & _WORD
            state ^= state >> 7
            state ^= state << 17 & _WORD
            other = state & mask
            self._swap(middle + step, start + (other - length if other >= length else other))

    def _sort_as_heap(self, start: int, end: int) -> None:
        length = end - start
        for root in range((length - 1) // 2, -1, -1):
            self._sift(root, length, start)
        for last in range(length - 1, -1, -1):
            self._swap(start, start + last)
            self._sift(0, last, start)

    def _sift(self, root: int, length: int, start: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self._less(start + child, start + child + 1):
                child += 1
            if not self._less(start + root, start + child):
                return
            self._swap(start + root, start + child)
            root = child
