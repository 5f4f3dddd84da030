"""Leaving inactive jobs out of a cycle costs no job its place, under any policy.

Random histories run through the live core. Beside each cycle runs a full cycle over the same state, in which every job is active.

- The first pod that the full cycle would bind is bound first, on the same node. When the core asks for no further cycle, the full
  cycle would bind nothing. Both hold without any back-off. Of equal single pods none is bound while an older one waits, unless the
  full cycle does the same.
- When nothing happens but back-offs that end, the full cycle would neither bind nor evict anything after `LONGEST` seconds.

Four differences are accepted by design:

- A job is tried one cycle later if it waits for a pod that is bound in this very cycle, or if more jobs of its equivalence class fit
  than the figures could tell. Other jobs may be served in between. So only the first bind must agree.
- Under `kai` the requests of a queue's best job influence when it is the queue's turn. An inactive job has no influence, so another
  queue may be served first. Inside each queue the order holds.
- A queue's share by weight may grow a little when more is requested. A job that waits for this is retried by its back-off (`rise`).
- A binding may give another queue the right to reclaim. The job that profits is retried by its back-off. So cycles in which the full
  cycle would evict are not compared until time has passed.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.live_core.cluster import POLICIES, CoreCluster
from tests.worlds.live_core.history import History

from navarch.engine.record import Bind, CycleRecord

LONGEST = 45.0
"""Seconds: the longest wait of a gang of four is 20, and one that has just failed may have waited as long."""


def agree(world: CoreCluster, record: CycleRecord, full: CycleRecord) -> bool:
    """Whether both cycles bind the same pod first. Under `kai`: the same job first in each queue that both serve."""
    if world.policy.compat != "kai" or not record.binds or not full.binds:
        return [(bind.pod, bind.node) for bind in record.binds[:1]] == [(bind.pod, bind.node) for bind in full.binds[:1]]
    mine, theirs = (firsts(world, each.binds) for each in (record, full))
    return all(mine[queue] == theirs[queue] for queue in mine.keys() & theirs.keys())


def firsts(world: CoreCluster, binds: list[Bind]) -> dict[str, str]:
    """Queue -> the first job that is bound in it."""
    jobs, found = world.cache.cluster.jobs, dict[str, str]()
    for bind in binds:
        spec = jobs.specs[jobs.rows.of[bind.job]]
        found.setdefault(spec.queue if spec is not None else "", bind.job)
    return found


def settle(history: History) -> None:
    """Run cycles until the core asks for no other, each beside a full cycle."""
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


def rise(world: CoreCluster) -> None:
    """End the back-off of jobs that waited for their queue's share, which grew because other jobs request more."""
    inactive = set(world.scheduling_queue.inactive())
    if world.come:
        world.come = False
        for job in {bind.job for bind in world.full().binds} & inactive:
            if {"QueueLimit", "QueueOverDeserved"}.intersection(world.codes[job]):
                world.scheduling_queue.activate(job)


@pytest.mark.parametrize("policy", POLICIES)
@given(st.integers(0, 2**32))
@settings(max_examples=12, deadline=None)
def test_an_inactive_job_keeps_its_place(policy: str, seed: int) -> None:
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
