"""`most_taken` is an upper bound of what `may_take` permits, for any choice of victims."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from navarch.plugins.kai.proportion.queue_tree import QueueTree
from navarch.plugins.kai.proportion.reclaim_rules import may_take, most_taken
from navarch.plugins.kai.proportion.share_division import NO_PARENT, Floats

RESOURCES = 2


def random_tree(rng: random.Random) -> QueueTree:
    """Two departments with two queues each; the second resource is without bound in half of the trees."""
    parent = np.array([NO_PARENT, NO_PARENT, 0, 0, 1, 1], dtype=np.intp)
    held = np.array([[rng.randint(0, 20) for _ in parent] for _ in range(RESOURCES)], dtype=np.float64)
    held[:, 0], held[:, 1] = held[:, 2] + held[:, 3], held[:, 4] + held[:, 5]
    quota = np.array([[rng.choice((0, 1, 5, 10, 2.5)) for _ in parent] for _ in range(RESOURCES)], dtype=np.float64)
    share = np.array([[rng.choice((0, 3, 8, 20 / 3)) for _ in parent] for _ in range(RESOURCES)], dtype=np.float64)
    if rng.random() < 0.5:
        quota[1] = np.inf
    limit = np.full_like(quota, np.inf)
    return QueueTree(parent, quota, limit, share, held, np.zeros_like(held))


@settings(max_examples=600, deadline=None)
@given(st.integers(0, 1_000_000))
def test_nothing_beyond_the_bound_is_ever_allowed(seed: int) -> None:
    rng = random.Random(seed)
    tree = random_tree(rng)
    required = np.array([float(rng.randint(0, 6)) for _ in range(RESOURCES)])
    victims: list[tuple[int, Floats]] = []
    for leaf in (3, 4, 5):
        left = tree.allocated[:, leaf].copy()
        while left.any() and len(victims) < 30:
            unit = np.minimum(left, np.array([float(rng.randint(0, 4)) for _ in range(RESOURCES)]))
            left -= unit
            if unit.any():
                victims.append((leaf, unit))
    most = most_taken(tree, 2, required, victims)
    for _ in range(6):
        chosen = [victim for victim in victims if rng.random() < rng.random()]
        rng.shuffle(chosen)
        takings: dict[int, list[Floats]] = {}
        for leaf, unit in chosen:
            takings.setdefault(leaf, []).append(unit)
        if chosen and may_take(tree, 2, required, True, list(takings.items())):
            assert (np.sum([unit for _, unit in chosen], axis=0) <= most).all()


def test_one_gpu_short_is_seen() -> None:
    """A queue may be made to give 79 of its 4,000 GPUs, one at a time; a gang of ten whole nodes wants 80."""
    parent = np.array([NO_PARENT, NO_PARENT], dtype=np.intp)
    figures = np.array([[80.0, 3921.0]])
    tree = QueueTree(parent, figures, np.full((1, 2), np.inf), figures, np.array([[0.0, 4000.0]]), np.zeros((1, 2)))
    assert most_taken(tree, 0, np.array([80.0]), [(1, np.array([1.0]))] * 4000).tolist() == [79.0]
    assert may_take(tree, 0, np.array([79.0]), True, [(1, [np.array([1.0])] * 79)])
    assert not may_take(tree, 0, np.array([80.0]), True, [(1, [np.array([1.0])] * 80)])
