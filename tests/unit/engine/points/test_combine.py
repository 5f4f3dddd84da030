"""How answers meet: truth tables of every rule, in strict mode and as the peers have it."""

from __future__ import annotations

import pytest

from navarch.engine.points import combine
from navarch.engine.points.protocols import Vote
from navarch.engine.policy.compat import COMPAT
from navarch.engine.reasons import Reason
from navarch.engine.semantics import STRICT, Semantics

NO = Reason("No", "no")
P, A, R = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT


@pytest.mark.parametrize(("opinions", "result"), [([], 0), ([0, 0], 0), ([0, -1, 1], -1), ([1, -1], 1)])
def test_the_first_opinion_orders(opinions: list[int], result: int) -> None:
    assert combine.first_opinion(opinions) == result


@pytest.mark.parametrize(
    ("tiers", "result"),
    [
        ([], True),
        ([[]], True),
        ([[A, A], [A]], True),
        ([[P]], True),
        ([[P, R]], False),
        ([[R, P]], False),
        ([[P], [R]], True),
        ([[A], [R]], False),
        ([[A], [P], [R]], True),
        ([[A, R], [P]], False),
        ([[P, NO]], NO),
        ([[P], [NO]], True),
        ([[A], [NO]], NO),
    ],
)
def test_a_rejection_wins_over_permits_of_its_tier(tiers: list[list[Vote | Reason]], result: Reason | bool) -> None:
    assert combine.votes(tiers, lambda vote: vote) == result


STARVING = [
    ([], True),
    ([[], []], True),
    ([[True]], True),
    ([[False]], False),
    ([[True, False]], False),
    ([[True], [False]], False),
    ([[], [True]], True),
]


@pytest.mark.parametrize(("tiers", "starves"), STARVING)
def test_a_job_starves_if_the_tiers_agree(tiers: list[list[bool]], starves: bool) -> None:
    assert combine.starving(tiers, lambda answer: answer) == starves


VICTIMS: list[tuple[list[list[list[int] | None]], list[int], list[int], list[int]]] = [
    # tiers of offers (None: no opinion), strict, volcano, kube-batch; candidates are 1, 2, 3
    ([], [], [], []),
    ([[None], [None]], [], [], []),
    ([[[1, 2]]], [1, 2], [1, 2], [1, 2]),
    ([[[]]], [], [], []),
    ([[[1, 2], [2, 3]]], [2], [2], [2]),
    ([[None, [3, 1]]], [1, 3], [3, 1], [3, 1]),
    ([[[1, 2], None, [2]]], [2], [2], [2]),
    ([[[1, 2]], [[2]]], [2], [1, 2], [1, 2]),
    ([[[1]], [[]]], [], [1], [1]),
    ([[[]], [[2]]], [], [2], []),
    ([[None], [[2]]], [2], [2], [2]),
    ([[[1], [2]]], [], [], []),
    ([[[1], [2], [3]]], [], [3], []),
    ([[[1], [2]], [[3]]], [], [3], []),
    ([[[1], []], [[1]]], [], [1], []),
]


@pytest.mark.parametrize(("tiers", "strict", "volcano", "kube_batch"), VICTIMS)
def test_victims_are_those_that_every_opinion_offers(
    tiers: list[list[list[int] | None]], strict: list[int], volcano: list[int], kube_batch: list[int]
) -> None:
    def found(semantics: Semantics) -> list[int]:
        return combine.victims(tiers, lambda offer: offer, [1, 2, 3], semantics)

    assert found(STRICT) == strict
    assert found(COMPAT["volcano"]) == volcano
    assert found(COMPAT["kube-batch"]) == kube_batch


def test_in_strict_mode_no_plugin_is_asked_once_no_candidate_is_left() -> None:
    asked = []

    def ask(offer: list[int]) -> list[int]:
        asked.append(offer)
        return offer

    assert combine.victims([[[], [1]], [[1]]], ask, [1], STRICT) == []
    assert asked == [[]]


@pytest.mark.parametrize(
    ("tiers", "result"),
    [([], []), ([[None, [2, 1], [1, 3]]], [2, 1, 3]), ([[None, []], [[4]]], [4]), ([[[1]], [[2]]], [1])],
)
def test_tasks_that_had_better_go_are_united_inside_the_first_tier_that_names_any(
    tiers: list[list[list[int] | None]], result: list[int]
) -> None:
    assert combine.united(tiers, lambda named: named) == result
