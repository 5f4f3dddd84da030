"""Sleeping costs no job its place, under any policy: cycles that pass sleeping jobs over decide as if everyone took part.

Random histories are driven through the live scheduler's memory. Beside each cycle stands the one in which nobody sleeps.

- What the full cycle would bind first is bound first, on the same node; when it is quiet the full cycle would bind nobody. No clock
  helps with either. Among equal single pods none runs while an elder one waits.
- When nothing happens any more but back-offs that end, within `LONGEST` the full cycle would neither bind nor evict anyone.

What it cannot be, by design:

- Who waits for a pod that is bound in this very cycle, and who sleeps while more of its family fit than figures could tell, is one
  cycle later; others may be served between. So it is the first bind that must agree, not all of them.
- To whom a binding gives the right to take (its queue now holds more than its due), finds out by its back-off. So nothing is said of
  cycles in which the full one would evict, until time has passed.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.sleeping_history import History
from tests.properties.sleeping_world import POLICIES, SleepingWorld

from navarch.engine.record import Bind, CycleRecord

LONGEST = 45.0
"""Seconds: the longest wait of a gang of four is 20, and one that has just failed may have waited as long."""


def first(record: CycleRecord) -> list[tuple[str, str]]:
    return [(bind.pod, bind.node) for bind in record.binds[:1]]


def settle(world: SleepingWorld) -> None:
    """Cycles until there is no cause for another, each beside the full one."""
    for _ in range(60):
        full = world.full()
        again = world.cycle()
        if not full.evictions:
            assert first(world.records[-1]) == first(full)
        if not again:
            assert full.evictions or not full.binds
            return
    raise AssertionError("cycles without end")


@pytest.mark.parametrize("policy", POLICIES)
@given(st.integers(0, 2**32))
@settings(max_examples=12, deadline=None)
def test_nobody_loses_its_place_over_sleeping(policy: str, seed: int) -> None:
    history = History(policy, seed)
    world = history.world
    for _ in range(history.rng.randint(5, 20)):
        before = history.overtaken()
        history.step()
        settle(world)
        assert [pair for pair in history.overtaken() if pair not in before] == []
    world.wait(LONGEST)
    full = world.full()
    assert full.binds == list[Bind]()
    assert full.evictions == []
