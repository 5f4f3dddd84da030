"""Sleeping costs no job its place, under any policy: cycles that pass sleeping jobs over decide as if everyone took part.

Random histories are driven through the live scheduler's memory. Beside each cycle stands the one in which nobody sleeps.

- What the full cycle would bind first is bound first, on the same node; when it is quiet the full cycle would bind nobody. No clock
  helps with either. Of equal single pods none is bound while an elder one waits, unless the full cycle did the same.
- When nothing happens any more but back-offs that end, within `LONGEST` the full cycle would neither bind nor evict anyone.

What it cannot be, by design:

- Who waits for a pod that is bound in this very cycle, and who sleeps while more of its family fit than figures could tell, is one
  cycle later; others may be served between. So it is the first bind that must agree, not all of them.
- Under `kai` what a queue's best job asks for has a say in when it is the queue's turn. One that sleeps has none, so of two queues
  the other may be served first; inside each of them the order holds.
- A queue's share by weight may grow by a little when more is asked for. Who waited for that finds out by its back-off (`rise`).
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


def agree(world: SleepingWorld, record: CycleRecord, full: CycleRecord) -> bool:
    """Whether what is bound first is what the full cycle would bind first; where the best job of a queue has a say in when it is the
    queue's turn, the first of each queue that both serve."""
    if world.policy.compat != "kai" or not record.binds or not full.binds:
        return [(bind.pod, bind.node) for bind in record.binds[:1]] == [(bind.pod, bind.node) for bind in full.binds[:1]]
    mine, theirs = (firsts(world, each.binds) for each in (record, full))
    return all(mine[queue] == theirs[queue] for queue in mine.keys() & theirs.keys())


def firsts(world: SleepingWorld, binds: list[Bind]) -> dict[str, str]:
    """Queue -> the job of it that is bound first."""
    jobs, found = world.cache.cluster.jobs, dict[str, str]()
    for bind in binds:
        spec = jobs.specs[jobs.rows.of[bind.job]]
        found.setdefault(spec.queue if spec is not None else "", bind.job)
    return found


def settle(history: History) -> None:
    """Cycles until there is no cause for another, each beside the full one."""
    world = history.world
    for _ in range(60):
        before, full = history.overtaken(), world.full()
        again = world.cycle()
        record = world.records[-1]
        if not full.evictions:
            assert agree(world, record, full)
        if record.binds != full.binds:
            assert [pair for pair in history.overtaken() if pair not in before] == []
        if not again:
            assert full.evictions or not full.binds
            return
    raise AssertionError("cycles without end")


def rise(world: SleepingWorld) -> None:
    """Let the back-off of those end whom a share of their queue kept waiting that has grown because others ask for more."""
    asleep = set(world.scheduling_queue.inactive())
    if world.come:
        world.come = False
        for job in {bind.job for bind in world.full().binds} & asleep:
            if "QueueLimit" in world.codes[job]:
                world.scheduling_queue.activate(job)


@pytest.mark.parametrize("policy", POLICIES)
@given(st.integers(0, 2**32))
@settings(max_examples=12, deadline=None)
def test_nobody_loses_its_place_over_sleeping(policy: str, seed: int) -> None:
    history = History(policy, seed)
    world = history.world
    for _ in range(history.rng.randint(5, 20)):
        history.step()
        rise(world)
        settle(history)
    world.wait(LONGEST)
    full = world.full()
    assert full.binds == list[Bind]()
    assert full.evictions == []
