"""Evictions come to rest, and the measure of docs/evictions.md never falls on the way.

`python -m tests.rest` does the same for as many clusters as it is told (`make rest`: 2,000 for each policy).
"""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace
from tests.rest import lives
from tests.worlds.resting_clusters import POLICIES, Life, competing

from navarch.engine.points.protocols import QueuesOwed
from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.engine.session import Session
from navarch.engine.victims.eviction_rule import EvictionRule, Rank
from navarch.engine.victims.owed import LUMP, TOP
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.status import TaskStatus
from navarch.offline.policies import read_policy

CLUSTERS, MEASURED = 20, 16


@pytest.mark.parametrize("uneven", [False, True], ids=["prompt", "uneven"])
@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "strict"])
def test_evictions_end_and_none_is_in_vain(policy: str, uneven: bool) -> None:
    for seed, rests, life in lives(policy, range(CLUSTERS), uneven=uneven):
        assert rests, f"{policy}, seed {seed}: {life.late()}"
        assert not life.waiting_promises(), f"{policy}, seed {seed}"
        assert policy == "kai" or not life.in_vain(), f"{policy}, seed {seed}: {life.in_vain()}"


@pytest.mark.parametrize("policy", ["navarch", "strict", "strict-gangs", "tree", "tree-pods"])
def test_each_cycle_makes_the_owed_sets_better(policy: str) -> None:
    registry = installed(())
    chosen = read_policy(POLICIES[policy], registry)
    for seed in range(1000, 1000 + MEASURED):
        life = Life(competing(seed, tree=policy.startswith("tree")), chosen, registry)
        before = measure(life, chosen, registry)
        for _ in range(8):
            life.step()
            after = measure(life, chosen, registry)
            assert after >= before, f"{policy}, seed {seed}, cycle {life.cycle}"
            before = after


def measure(life: Life, policy: Policy, registry: Registry) -> tuple[tuple[bool, ...], ...]:
    """The sets of running units that are owed down to each level, the deepest first, then lumps, then all: in each set whether each
    unit that could run is in it, by queue and rank. Promised pods count as running."""
    cluster = life.cluster
    promised = [task for task in cluster.tasks.specs if task is not None and task.uid in life.promised]
    for task in promised:
        cluster.put_task(replace(task, node=life.promised[task.uid], status=TaskStatus.BOUND, nominated_node=""))
    session = Session(cluster.snapshot(), policy, registry, 0.0)
    running = EvictionRule(session).running()
    for task in promised:
        cluster.put_task(task)
    seen: Counter[tuple[tuple[int, ...], Rank]] = Counter()
    depth: dict[tuple[tuple[int, ...], Rank, int], int] = {}
    whole = {job.key for job in session.all_jobs() if job.ready_count >= job.min_member}
    for unit in running:
        if unit.rank[3] not in whole:  # a broken gang is no unit that runs
            continue
        depth[(unit.line, unit.rank, seen[(unit.line, unit.rank)])] = unit.depth
        seen[(unit.line, unit.rank)] += 1
    return _sets(depth, _possible(cluster, session))


Member = tuple[tuple[int, ...], Rank, int]
"""Line of queues, rank, and how many units of this rank come before it."""


def _possible(cluster: Cluster, session: Session) -> list[Member]:
    """Every unit that could run."""
    shares = next(plugin.queues_owed() for plugin in session.implementing(QueuesOwed))
    out: list[Member] = []
    for spec in cluster.jobs.specs:
        if spec is None:
            continue
        job = session.job(cluster.jobs.rows.of[spec.key])
        assert job is not None
        line = shares.lines[job.queue.number]
        if job.min_member:
            out.append((line, (-job.priority, False, spec.created, spec.key, 0), 0))
        rank = (-job.priority, True, spec.created, spec.key, -job.priority)
        out += [(line, rank, number) for number in range(len(job.tasks) - job.min_member)]
    return out


def _sets(depth: dict[Member, int], possible: list[Member]) -> tuple[tuple[bool, ...], ...]:
    deepest = max(len(line) for line, _, _ in possible)
    assert depth.keys() <= set(possible)
    out = []
    for level in range(TOP + deepest - 1, -1, -1):
        length = level - TOP + 1 if level >= TOP else deepest if level == LUMP else 1

        def place(member: Member, length: int = length) -> tuple[object, ...]:
            return member[0][:length], *member[1:]

        out.append(tuple(depth.get(member, -1) >= level for member in sorted(possible, key=place)))
    return tuple(out)
