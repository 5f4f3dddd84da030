"""The algebra of queue amounts: what a missing name means in each operation."""

from __future__ import annotations

import numpy as np

from navarch.model.resources import UNLIMITED
from navarch.plugins.queues.amounts import Amounts, asked_dims, fits, in_order, is_empty, largest_part, total_of

NAMES = ("cpu", "memory", "pods", "b.com/x", "a.com/y")


def given(**named: int) -> Amounts:
    names = {"x": "b.com/x", "y": "a.com/y"}
    return Amounts.of(NAMES, tuple(sorted((names.get(k, k), v) for k, v in named.items())))


def test_cpu_and_memory_are_always_given_and_others_when_named_even_as_zero() -> None:
    assert given(x=0).given.tolist() == [True, True, False, True, False]


def test_a_resource_no_one_knows_is_left_out() -> None:
    assert Amounts.of(NAMES, (("zzz", 3),)).values.sum() == 0


def test_a_limit_leaves_free_what_it_does_not_name_and_zero_cpu_or_memory() -> None:
    limit = Amounts.limit(NAMES, (("a.com/y", 0), ("cpu", 5), ("memory", 0)))
    assert limit.values.tolist() == [5, UNLIMITED, UNLIMITED, UNLIMITED, 0]


def test_within_keeps_own_names_and_what_the_limit_does_not_give() -> None:
    cut = given(cpu=4, x=4).within(given(cpu=3, y=1, memory=9))
    assert cut.values.tolist() == [3, 0, 0, 4, 0]
    assert cut.given.tolist() == [True, True, False, True, False]


def test_at_least_unites_names() -> None:
    raised = given(cpu=1, x=5).at_least(given(cpu=2, y=0))
    assert raised.values.tolist() == [2, 0, 0, 5, 0]
    assert raised.given.tolist() == [True, True, False, True, True]


def test_beyond_gives_only_where_something_exceeds() -> None:
    rest = given(cpu=4, x=2, y=7).beyond(given(cpu=9, x=2, y=3))
    assert rest.values.tolist() == [0, 0, 0, 0, 4]
    assert rest.given.tolist() == [True, True, False, False, True]


def test_pods_alone_are_nothing() -> None:
    assert given(pods=9).is_empty and not given(x=1).is_empty
    assert is_empty(np.array([0.05, 0, 40.0, 0, 0]))


def test_counted_names_include_pods() -> None:
    assert given(pods=9, x=0, cpu=1).counted.tolist() == [True, False, True, False, False]


def test_fits_allows_what_a_quotient_leaves_and_looks_at_pods() -> None:
    assert fits(np.array([4000.05, 0, 1, 0, 0]), np.array([4000, 0, 1, 0, 0]))
    assert not fits(np.array([4000.2, 0, 0, 0, 0]), np.array([4000, 0, 0, 0, 0]))
    assert not fits(np.array([0, 0, 2, 0, 0]), np.array([9, 9, 1, 9, 9]))


def test_asked_dims_leave_pods_and_zeros_out() -> None:
    assert asked_dims(np.array([0, 5, 1, 2, 0])).tolist() == [1, 3]


def test_the_largest_part_is_the_dominant_share() -> None:
    assert total_of([given(cpu=1, x=0), given(cpu=2)], len(NAMES)).values.tolist() == [3, 0, 0, 0, 0]
    assert largest_part(np.array([1, 3, 0]), np.array([4.0, 4.0, 0]), np.array([0, 1])) == 0.75
    assert largest_part(np.array([1]), np.array([0.0]), np.array([], dtype=np.intp)) == 0.0


def test_names_are_listed_cpu_memory_then_by_name() -> None:
    assert in_order([3, 1, 4, 0], NAMES) == ["cpu", "memory", "a.com/y", "b.com/x"]
