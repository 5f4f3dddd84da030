"""Estimates of load that no metrics server has measured yet."""

from __future__ import annotations

import numpy as np
import pytest

from navarch.plugins.volcano.usage.unmeasured_load import Estimator, Expected, UnmeasuredLoad

ESTIMATOR = Estimator(
    request_ratio=0.5, burst_ratio=0.5, risk_threshold=0.5, risk_factor=2.0, without_requests=(100.0, 10.0), weights=(1, 0)
)


def load(percent: float = 0.0) -> UnmeasuredLoad:
    measured = np.array([[percent, percent], [0.0, 0.0]])
    return UnmeasuredLoad(ESTIMATOR, measured, np.full((2, 2), 1000.0), tasks=8)


def expected(request: float, limit: float = 0.0, *, best_effort: bool = False) -> Expected:
    return ESTIMATOR.plain(np.array([[request], [0.0]]), np.array([[limit], [0.0]]), np.array([best_effort]))


def test_a_part_of_the_request_and_of_the_burst() -> None:
    found = load()
    found.add([0], [1], expected(200.0, limit=400.0))
    assert found.amount[0].tolist() == [0.0, 0.5 * 200 + 0.5 * 200]


def test_an_estimate_never_exceeds_the_limit() -> None:
    found = load(percent=90.0)
    found.add([0], [0], expected(200.0, limit=250.0))
    assert found.amount[0, 0] == 250.0


def test_a_pod_without_requests_counts_with_fixed_amounts() -> None:
    found = load()
    found.add([0], [0], expected(0.0, best_effort=True))
    assert found.amount[:, 0].tolist() == [100.0, 10.0]


def test_risk_begins_where_the_estimates_so_far_reach_the_threshold() -> None:
    found = load(percent=40.0)
    found.add([0, 1, 2], [0, 0, 1], expected(200.0))
    assert found.amount[0].tolist() == [100.0 + 200.0, 100.0]


def test_one_by_one_and_together_give_the_same() -> None:
    together, apart = load(percent=30.0), load(percent=30.0)
    nodes = [0, 1, 0, 0, 1]
    together.add(list(range(5)), nodes, expected(130.0))
    for task, node in enumerate(nodes):
        apart.add([task], [node], expected(130.0))
    assert together.amount.tolist() == apart.amount.tolist()


def test_forgetting_takes_away_what_was_added_and_says_which_were_known() -> None:
    found = load()
    found.add([0, 1], [0, 0], expected(200.0))
    assert found.forget([1, 5]) == [1]
    assert found.amount[0, 0] == 100.0
    assert found.forget([1]) == []


def test_a_task_that_is_added_again_counts_once() -> None:
    found = load()
    found.add([0], [0], expected(200.0))
    found.add([0], [1], expected(200.0))
    assert found.amount[0].tolist() == [0.0, 100.0]


def test_load_is_at_most_one_and_zero_without_capacity() -> None:
    found = UnmeasuredLoad(ESTIMATOR, np.array([[150.0, 50.0], [0.0, 0.0]]), np.array([[1000.0, 0.0], [0.0, 0.0]]), tasks=1)
    assert found.load(slice(None))[0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("weights", [(0, 0), (0, 3)])
def test_without_weights_nothing_is_estimated(weights: tuple[int, int]) -> None:
    estimator = Estimator(0.5, 0.5, 0.5, 2.0, (0.0, 0.0), weights)
    assert estimator.weighted(np.array([[0.4], [0.8]])).tolist() == ([0.0] if weights == (0, 0) else [pytest.approx(0.8)])
