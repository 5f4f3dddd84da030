"""Growing columns and row numbers that are reused."""

from __future__ import annotations

import numpy as np
import pytest

from navarch.model.tables.columns import Rows, grown, sums_by_group


def test_growing_keeps_content_and_fills_with_zeros() -> None:
    array = np.array([[1, 2], [3, 4]])
    wider = grown(array, 5)
    assert wider.shape == (2, 5)
    assert wider[:, :2].tolist() == [[1, 2], [3, 4]]
    assert not wider[:, 2:].any()
    assert grown(array, 3, axis=0).shape == (4, 2), "growth doubles, so that many small steps stay cheap"


def test_an_array_that_is_large_enough_is_handed_back_as_it_is() -> None:
    array = np.zeros(8)
    assert grown(array, 8) is array


def test_a_freed_row_is_given_to_the_next_key_and_never_to_two() -> None:
    rows = Rows()
    first, second = rows.assign("a"), rows.assign("b")
    rows.give_back("a")
    third, fourth = rows.assign("c"), rows.assign("d")
    assert third == first
    assert len({second, third, fourth}) == 3
    assert rows.top == 3
    assert len(rows) == 3


def test_giving_back_what_was_never_taken_is_an_error() -> None:
    with pytest.raises(KeyError):
        Rows().give_back("a")


def test_sums_by_group_are_exact_beyond_floats() -> None:
    big = (1 << 60) + 1
    sums = sums_by_group(np.array([[big, 1, big]]), np.array([0, 0, 1]), 2)
    assert sums.tolist() == [[big + 1, big]]


def test_sums_without_rows_or_groups() -> None:
    assert sums_by_group(np.zeros((2, 0), dtype=np.int64), np.zeros(0, dtype=np.int32), 2).tolist() == [[0, 0], [0, 0]]
    assert sums_by_group(np.array([[7]]), np.array([-1]), 1).tolist() == [[0]]


def test_few_groups_and_many_are_summed_alike() -> None:
    rng = np.random.default_rng(1)
    array, group = rng.integers(0, 1 << 50, (3, 40)), rng.integers(-1, 4, 40)
    assert np.array_equal(sums_by_group(array, group, 4), sums_by_group(array, group, 9)[:, :4])
