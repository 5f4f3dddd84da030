"""The best rows of a score vector, and what a ranking keeps when nodes join and leave."""

import numpy as np
import pytest

from navarch.engine.placement.node_ranking import WORST, NodeRanking, best_rows


@pytest.mark.parametrize("levels", [1, 2, 7, 10_000])
@pytest.mark.parametrize("size", [0, 1, 40, 500])
def test_best_rows_are_the_first_of_a_sort_by_score_then_by_row(levels: int, size: int) -> None:
    rng = np.random.default_rng(levels + size)
    for count in (1, 3, 50):
        total = rng.integers(0, levels, size).astype(float)
        total[rng.random(size) < 0.3] = WORST
        expected = sorted((row for row in range(size) if total[row] > WORST), key=lambda row: (-total[row], row))[:count]
        assert best_rows(total, count).tolist() == expected


@pytest.mark.parametrize(("values", "takes", "stays"), [([5.0], [False], True), ([1.0], [False], False), ([9.0], [True], False)])
def test_a_ranking_holds_while_the_extremes_of_a_normalised_score_do(values: list[float], takes: list[bool], stays: bool) -> None:
    raw = np.array([1.0, 3.0, 7.0, *values])
    group = np.array([True, True, True, not takes[0]])
    ranking = NodeRanking(group, np.zeros(4), np.zeros(4), [(raw, 1.0, 7.0)])
    assert ranking.repair(np.array([3]), np.array(takes), np.zeros(1)) is stays
    again = NodeRanking(group, np.zeros(4), np.zeros(4), [(raw, 1.0, 7.0)])
    assert again.repair_row(3, takes[0], 0.0) is stays
