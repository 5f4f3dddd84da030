"""Prices of remnants: they solve the cutting stock programme, which small cases can be checked for by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.plugins.fragmentation.remnants import remnant_worth
from navarch.plugins.fragmentation.typical_pods import PodKind, TypicalPod


def pods(**counts: float) -> tuple[TypicalPod, ...]:
    """`pods(m470=2)`: two pods of 470 thousandths."""
    total = sum(counts.values())
    return tuple(TypicalPod(PodKind(1000, int(name[1:]), 1), count / total) for name, count in counts.items())


def test_a_pod_that_leaves_nothing_useful_costs_a_whole_gpu() -> None:
    worth = remnant_worth(pods(m810=9, m160=1))
    assert worth[1000] == pytest.approx(1) and worth[810] == pytest.approx(1)
    assert worth[190] == pytest.approx(0), "there are more gaps of 190 than pods of 160"


def test_scarce_large_pods_are_paid_by_those_that_fill_their_gaps() -> None:
    worth = remnant_worth(pods(m650=1, m320=9))
    assert worth[320] == pytest.approx(1 / 3), "three of them share a GPU"
    assert worth[650] == pytest.approx(2 / 3), "what is left when one of them is there"


def test_whole_gpus_and_pods_without_gpu() -> None:
    worth = remnant_worth((TypicalPod(PodKind(1000), 0.5), TypicalPod(PodKind(1000, 1000, 8), 0.5)))
    assert worth[1000] == pytest.approx(1) and worth[999] == 0
    assert not remnant_worth((TypicalPod(PodKind(1000), 1.0),)).any()


SIZES = st.dictionaries(st.integers(1, 100).map(lambda n: 10 * n), st.integers(1, 50), min_size=1, max_size=8)


@given(SIZES)
def test_prices_are_feasible_and_pay_for_every_gpu(sizes: dict[int, int]) -> None:
    """A dual solution: no cut is worth more than a GPU, and demand at these prices is at least the volume of the pods."""
    worth = remnant_worth(pods(**{f"m{size}": count for size, count in sizes.items()}))
    assert worth[1000] == pytest.approx(1, abs=1e-6)
    assert (np.diff(worth) >= -1e-9).all(), "more room is never worth less"
    total = sum(sizes.values())
    paid = sum(count * worth[size] for size, count in sizes.items()) / total
    assert paid >= sum(count * size for size, count in sizes.items()) / 1000 / total - 1e-6


@given(SIZES, st.integers(0, 100), st.integers(0, 100))
def test_two_remnants_are_worth_no_more_than_one_of_both(sizes: dict[int, int], one: int, other: int) -> None:
    worth = remnant_worth(pods(**{f"m{size}": count for size, count in sizes.items()}))
    if one + other <= 100:
        assert worth[10 * one] + worth[10 * other] <= worth[10 * (one + other)] + 1e-9
