"""Strict policies leave nothing idle that a waiting gang could use, unless a hard limit forbids it; and shares stay fair."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds.shared_clusters import GPU, POLICIES, World, policy

import navarch
from navarch.plugins.queues.amounts import CLOSE

UNITS = {"cpu": 1000, GPU: 1000}


def waiting_that_fit(world: World, record: Any) -> list[str]:
    """Gangs that wait after the cycle although what is idle would hold them and no hard limit forbids it."""
    bound = Counter(bind.job for bind in record.binds)
    for job, (queue, _, pods, asked) in world.waiting.items():
        assert bound[job] in (0, pods), "a gang is placed whole or not at all"
        world.held[queue] += bound[job] * asked.get(GPU, 0)
    for placed in (*record.binds, *record.nominations):
        if placed.job in world.waiting:
            world.take(placed.node, world.waiting[placed.job][3])
    promised = {nomination.job for nomination in record.nominations}
    found = []
    for job, (queue, pool, pods, asked) in world.waiting.items():
        within = world.held[queue] + pods * asked.get(GPU, 0) <= world.limits.get(queue, 99)
        if not bound[job] and job not in promised and within and world.slots(pool, asked) >= pods:
            found.append(job)
    return found


@pytest.mark.parametrize("name", POLICIES)
@given(seed=st.integers(0, 10**9))
def test_no_gang_waits_that_fits_what_is_idle(name: str, seed: int) -> None:
    world = World(seed)
    record = navarch.plan(world.objects, policy=POLICIES[name]).records[0]
    assert waiting_that_fit(world, record) == []


@pytest.mark.parametrize("plugins", [("proportion", "overcommit"), ("capacity", "overcommit"), ("priority", "drf", "overcommit")])
@given(seed=st.integers(0, 10**9))
def test_no_gang_waits_for_admission_that_fits_what_is_idle(plugins: tuple[str, ...], seed: int) -> None:
    """Gangs that are admitted and cannot be placed must not keep others from what is idle."""
    world = World(seed, admitted=False)
    record = navarch.plan(world.objects, policy=policy("enqueue, allocate, backfill", *plugins)).records[0]
    assert waiting_that_fit(world, record) == []


@given(seed=st.integers(0, 10**9))
def test_demand_that_no_node_can_meet_changes_nothing_for_others(seed: int) -> None:
    """A pod that asks for what no node has gets a queue of its own with a large weight; all else is decided as without it."""
    world, plain = World(seed), World(seed)
    world.queue("large", 1000, None)
    plain.queue("large", 1000, None)
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "never", "namespace": "default"}}
    world.objects += [{**group, "spec": {"minMember": 1, "queue": "large"}, "status": {"phase": "Inqueue"}}]
    world.objects.append(world.pod("never-0", "never", {"cpu": 1000}, "nowhere", ""))
    outcomes = [navarch.plan(each.objects, policy="navarch").records[0] for each in (plain, world)]
    assert outcomes[0].binds == outcomes[1].binds
    assert outcomes[0].evictions == outcomes[1].evictions
    for before, after in zip(*(record.queues for record in outcomes)):
        assert after.deserved == pytest.approx(before.deserved, abs=CLOSE)  # a division ends where less than this is left


def serve(size: int, total: int, cycles: int, plugins: tuple[str, ...]) -> Counter[str]:
    """Gangs served to each queue over many cycles. Every queue always has gangs waiting; each cycle the oldest gang ends."""
    file = policy("allocate", *plugins)
    running: list[tuple[str, str]] = []
    """(gang, queue), oldest first."""
    waiting: dict[str, tuple[str, int]] = {}
    """Gang -> its queue and the cycle in which it was made."""
    served: Counter[str] = Counter()
    for cycle in range(cycles):
        world = World.__new__(World)
        world.objects, world.idle, world.labels, world.limits = [], {}, {}, {}
        world.node("n", "a", 64, total)
        for name, weight in WEIGHTS.items():
            world.queue(name, weight, None)
        if cycle:
            running.pop(0)
        group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
        for queue in WEIGHTS:
            there = sum(of == queue for of, _ in waiting.values())
            waiting |= {f"{queue}-{cycle:02}-{i}": (queue, cycle) for i in range(total // size - there)}
        for name, (queue, since) in [*((name, (queue, 0)) for name, queue in running), *waiting.items()]:
            node = "" if name in waiting else "n"
            status = {"phase": "Running" if node else "Inqueue"}
            metadata = {"name": name, "namespace": "default", "creationTimestamp": f"2026-01-01T00:00:{since:02}Z"}
            made = {**group, "metadata": metadata, "spec": {"minMember": size, "queue": queue}}
            world.objects.append({**made, "status": status})
            world.objects += [world.pod(f"{name}-{i}", name, {GPU: 1}, "", node) for i in range(size)]
        record = navarch.plan(world.objects, policy=file).records[0]
        placed = sorted({bind.job.removeprefix("default/") for bind in record.binds})
        running += [(name, waiting.pop(name)[0]) for name in placed]
        assert len(running) == total // size, "nothing idles"
        served.update(queue for _, queue in running)
    return served


WEIGHTS = {"q0": 1, "q1": 2, "q2": 3}


@pytest.mark.parametrize(("size", "total"), [(1, 6), (2, 12), (3, 20)])
@pytest.mark.parametrize("plugins", [("proportion",), ("drf", "proportion")])
def test_over_many_cycles_shares_come_to_the_weights(size: int, total: int, plugins: tuple[str, ...]) -> None:
    served = serve(size, total, 30, plugins)
    whole = sum(served.values())
    for name, weight in WEIGHTS.items():
        assert abs(served[name] / whole - weight / 6) <= size / total, served


def test_gangs_larger_than_every_share_are_served_in_turn() -> None:
    served = serve(4, 6, 30, ("proportion",))
    assert all(served[queue] >= 5 for queue in WEIGHTS), served
