"""The sort by a comparison that is no order takes the steps of Go's `sort.Slice`: results of Go 1.26 on the same items."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.plugins.volcano.numa_aware.unstable_sort import sort_like_go


def drawn(seed: int, count: int, kinds: int) -> list[tuple[int, int, int]]:
    """Three marks an item, by a generator that both languages have."""
    state = seed

    def draw() -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return state >> 33

    return [(draw() % kinds, draw() % kinds, number * (draw() % 2)) for number in range(count)]


def sorted_places(seed: int, count: int, kinds: int, *, by_first: bool) -> list[int]:
    marks = drawn(seed, count, kinds)
    if by_first:
        return sort_like_go(range(count), lambda left, right: marks[left][0] < marks[right][0])
    return sort_like_go(range(count), lambda left, right: any(a < b for a, b in zip(marks[left], marks[right])))


@pytest.mark.parametrize(
    ("seed", "count", "kinds", "by_first", "places"),
    [
        (1, 14, 3, False, [4, 3, 1, 6, 12, 8, 5, 13, 7, 9, 0, 10, 2, 11]),
        (2, 20, 4, False, [18, 0, 13, 15, 2, 1, 12, 17, 7, 4, 5, 3, 6, 19, 14, 8, 9, 10, 11, 16]),
        (3, 16, 2, True, [4, 1, 14, 7, 8, 5, 6, 3, 0, 9, 10, 11, 12, 13, 2, 15]),
    ],
)
def test_the_order_is_that_of_go(seed: int, count: int, kinds: int, by_first: bool, places: list[int]) -> None:
    assert sorted_places(seed, count, kinds, by_first=by_first) == places


@pytest.mark.parametrize(
    ("by_first", "digest"),
    [
        (False, "baa4d24af04df9777b52ecf76d3dcf5750f837714139dcdf252961d1317a8cb6"),
        (True, "55650d571ff37aeb7cdf52994d8135f366ceda2d70780657abbb2efd8afc36ec"),
    ],
)
def test_three_hundred_lists_of_up_to_150_items(by_first: bool, digest: str) -> None:
    lists = (sorted_places(c, 1 + c * 7 % 150, 1 + c % 12, by_first=by_first) for c in range(300))
    text = "".join("".join(f"{place}," for place in places) + ";" for places in lists)
    assert hashlib.sha256(text.encode()).hexdigest() == digest


@given(st.lists(st.integers(0, 9)))
def test_an_order_is_sorted(items: list[int]) -> None:
    assert sort_like_go(items, lambda left, right: left < right) == sorted(items)
