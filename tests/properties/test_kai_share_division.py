"""What must hold for any tree of queues, however its figures stand."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from navarch.plugins.kai.proportion.share_division import UNLIMITED, QueueClaims, divide, fair_shares

DUST = 1e-6
"""Shares are doubles; figures here stay below 1e4."""

amounts = st.one_of(st.integers(0, 64).map(float), st.integers(0, 6400).map(lambda hundredths: hundredths / 100))
bounds = st.one_of(amounts, st.just(UNLIMITED))


@st.composite
def trees(draw: st.DrawFn) -> tuple[np.ndarray, QueueClaims, np.ndarray, float]:
    queues = draw(st.integers(1, 12))
    resources = draw(st.integers(1, 3))
    parent = np.array([draw(st.integers(-1, row - 1)) for row in range(queues)], dtype=np.intp)

    def table(figures: st.SearchStrategy[float]) -> np.ndarray:
        return np.array([draw(st.lists(figures, min_size=queues, max_size=queues)) for _ in range(resources)])

    claims = QueueClaims(
        quota=table(bounds),
        limit=table(bounds),
        weight=table(st.integers(0, 5).map(float)),
        request=table(amounts),
        usage=table(st.floats(0, 1)),
        priority=np.array(draw(st.lists(st.integers(0, 2), min_size=queues, max_size=queues)), dtype=np.intp),
        seniority=np.array(draw(st.permutations(range(queues))), dtype=np.intp),
    )
    total = np.array(draw(st.lists(amounts, min_size=resources, max_size=resources)))
    return parent, claims, total, draw(st.sampled_from([0.0, 0.5, 1.0, 3.0]))


@settings(max_examples=60, deadline=None)
@given(trees())
def test_a_share_never_exceeds_request_or_limit(tree: tuple[np.ndarray, QueueClaims, np.ndarray, float]) -> None:
    parent, claims, total, k = tree
    shares = fair_shares(parent, claims, total, k)
    assert (shares <= claims.request + DUST).all()
    assert (shares <= claims.limit + DUST).all()
    assert (shares >= 0).all()


@settings(max_examples=60, deadline=None)
@given(trees())
def test_over_quota_grants_never_exceed_what_quotas_left(
    tree: tuple[np.ndarray, QueueClaims, np.ndarray, float],
) -> None:
    _, claims, total, k = tree
    siblings = np.zeros(claims.request.shape[1], dtype=np.intp)
    shares, left = divide(total[:, None], siblings, claims, k)
    owed = np.minimum(np.where(np.isinf(claims.quota), total[:, None], claims.quota), claims.requestable)
    over = (shares - owed).sum(axis=1)
    quota_left = np.maximum(total - owed.sum(axis=1), 0)
    assert (over <= quota_left + DUST).all()
    assert np.allclose(left[:, 0] + over, quota_left)


@settings(max_examples=60, deadline=None)
@given(trees())
def test_nothing_lies_idle_while_a_queue_with_weight_wants_a_whole_unit(
    tree: tuple[np.ndarray, QueueClaims, np.ndarray, float],
) -> None:
    _, claims, total, _ = tree
    siblings = np.zeros(claims.request.shape[1], dtype=np.intp)
    shares, left = divide(total[:, None], siblings, claims, usage_weight=0)
    wanting = (claims.requestable - shares > DUST) & (claims.weight > 0)
    assert not (wanting.any(axis=1) & (left[:, 0] >= 1 + DUST)).any()


@settings(max_examples=60, deadline=None)
@given(trees())
def test_the_order_of_rows_moves_no_more_than_a_unit(
    tree: tuple[np.ndarray, QueueClaims, np.ndarray, float],
) -> None:
    """Sums of doubles depend on their order in the last bit, which may turn a tie of fractions; nothing more."""
    _, claims, total, k = tree
    queues = claims.request.shape[1]
    siblings = np.zeros(queues, dtype=np.intp)
    shares, _ = divide(total[:, None], siblings, claims, k)
    back = np.arange(queues)[::-1]
    mirrored = QueueClaims(
        quota=claims.quota[:, back],
        limit=claims.limit[:, back],
        weight=claims.weight[:, back],
        request=claims.request[:, back],
        usage=claims.usage[:, back],
        priority=claims.priority[back],
        seniority=claims.seniority[back],
    )
    again, _ = divide(total[:, None], siblings, mirrored, k)
    assert np.allclose(again[:, back], shares, rtol=0, atol=1 + DUST)
