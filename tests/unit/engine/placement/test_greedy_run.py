"""A run of equal tasks takes the nodes that placing them one by one takes."""

import random
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from navarch.engine.figures import Rows
from navarch.engine.placement.greedy_run import greedy_run
from navarch.engine.placement.node_ranking import WORST
from navarch.engine.session import Session
from navarch.model.resources import FloatArray

DEPTH = 6


def one_by_one(steps: FloatArray, count: int, last_ones: set[int]) -> list[int]:
    """`steps`: the total of each row with 0, 1, 2 ... tasks of the run on it."""
    taken, chosen = [0] * len(steps), list[int]()
    while len(chosen) < count:
        totals = [float(row[taken[number]]) for number, row in enumerate(steps)]
        best = max(range(len(totals)), key=lambda row: (totals[row], -row))
        if totals[best] == WORST:
            break
        chosen.append(best)
        taken[best] += 1
        if len(chosen) < count and steps[best][taken[best]] == WORST and best in last_ones:
            break
    return chosen


@pytest.mark.parametrize("seed", range(120))
def test_a_run_equals_placing_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    size, count = rng.randint(1, 30), rng.randint(2, 40)
    session = cast(Session, SimpleNamespace(runs_spread=rng.random() < 0.5, run_nodes=rng.randint(1, 6)))
    slope = rng.choice((-1, 0, 1))
    steps = np.full((size, DEPTH + 50), WORST)
    for row in range(size):
        start = rng.randint(0, rng.choice((0, 3, 1000)))
        for step in range(rng.randint(0, DEPTH)):
            steps[row, step] = start + slope * step + rng.choice((0, 0, 1))
    last_ones = {row for row in range(size) if rng.random() < 0.1}

    def ladders(rows: Rows, start: int, wanted: int) -> FloatArray:
        return steps[rows, start + 1 : start + 1 + wanted]

    total = steps[:, 0].copy()
    for _ in range(2):  # the second run begins as the first one ended
        chosen = greedy_run(session, total, count, ladders, lambda row: row not in last_ones)
        assert chosen == one_by_one(steps, count, last_ones)
        assert total.tolist() == steps[:, 0].tolist()
