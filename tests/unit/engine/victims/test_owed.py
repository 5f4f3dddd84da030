"""What units are owed, where there are many queues."""

from __future__ import annotations

import numpy as np
import pytest

from navarch.engine.victims import owed
from navarch.engine.victims.owed import BORROWED, LUMP, TOP, OwedUnits, QueueShares, Units, WaitingUnit
from navarch.model.resources import BoolArray, IntArray

QUEUES = 300


def one_unit_a_queue(amounts: list[int]) -> OwedUnits:
    """Each queue is owed two, and the unit of queue number i has amounts[i]."""
    count = len(amounts)
    numbers = np.arange(count, dtype=np.intp)
    units = Units(numbers, numbers, np.zeros(count, dtype=bool), np.array(amounts, dtype=np.int64)[:, None])
    shares = QueueShares(np.full((count, 1), 2, dtype=np.int64), [(number,) for number in range(count)])
    return OwedUnits(units, shares, np.array([2 * count], dtype=np.int64))


def test_queues_within_their_share_are_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    walked, walk = list[int](), owed.walk

    def counting(members: owed.Members, limit: IntArray, first: BoolArray) -> BoolArray:
        walked.append(len(members.index))
        return walk(members, limit, first)

    monkeypatch.setattr(owed, "walk", counting)
    found = one_unit_a_queue([1] * QUEUES)
    assert set(found.depths()[:-1].tolist()) == {TOP}
    assert found.depths(WaitingUnit(0, 7, QUEUES, False, np.array([2], dtype=np.int64))).tolist()[7 :: QUEUES - 7] == [BORROWED, TOP]
    assert walked == [2]


def test_a_queue_beyond_its_share_has_a_lump_beside_queues_within_theirs() -> None:
    assert one_unit_a_queue([1, 4, 1]).depths().tolist() == [TOP, LUMP, TOP, BORROWED]
