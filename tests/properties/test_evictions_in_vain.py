"""No eviction in vain: what is evicted for a job is followed by the start, or the growth, of that job.

Random small clusters are simulated under the preset `navarch`. In the simulator victims are gone at once, so the job has to move at
the moment of the eviction.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from navarch.engine.record import CycleRecord
from navarch.engine.victims.room import GangRoom
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.simulator.clusters import read_cluster
from navarch.simulator.fitting import Fitting
from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.simulation import Simulation

SEEDS = range(7)


class Watch:
    """Evictions by the job that they were for, until that job moves."""

    def __init__(self) -> None:
        self.owed: dict[str, str] = {}
        self.evictions: Counter[str] = Counter()
        self.in_vain: list[str] = []
        self.decisions: list[tuple[float, str, str]] = []

    def arrived(self, now: float, job: TraceJob) -> None:
        return None

    def moved(self, now: float, job: SimulatedJob) -> None:
        if job.nodes:
            self.owed.pop(job.spec.key, None)

    def ended_job(self, now: float, job: SimulatedJob, *, done: bool) -> None:
        return None

    def decided(self, now: float, record: CycleRecord, seconds: float) -> None:
        self.decisions += [(now, each.pod, each.node) for each in record.evictions]
        self.decisions += [(now, each.pod, each.node) for each in record.binds]
        for eviction in record.evictions:
            self.evictions[eviction.action] += 1
            self.owed[eviction.for_] = f"at {now:g} {eviction.action} evicts {eviction.pod} for {eviction.for_}, which does not start"

    def fragmented_by(self, now: float, gpus: float) -> None:
        return None

    def check(self) -> None:
        self.in_vain += self.owed.values()
        self.owed.clear()


def jobs_of(seed: int) -> list[TraceJob]:
    chance = random.Random(seed)
    found = []
    for number in range(40):
        count, gpus = chance.choice(((1, 1), (1, 2), (1, 4), (1, 8), (2, 4), (2, 8), (4, 2), (4, 8), (3, 8)))
        found.append(
            TraceJob(
                name=f"job-{number:02}",
                submit=float(chance.randrange(0, 4000)),
                duration=float(chance.choice((100, 600, 2000, 6000))),
                pods=(PodSet(count, gpus=gpus),),
                queue=chance.choice("ab") if seed % 3 else chance.choice("abc"),
                min_pods=chance.randint(1, count) if chance.random() < 0.3 else None,
                priority=chance.choice((0, 0, 0, 10, 20)),
            )
        )
    return sorted(found, key=lambda job: job.submit)


def simulated(seed: int) -> Watch:
    registry = installed(())
    policy = read_policy("navarch", registry)
    cluster, nodes = read_cluster(f"n={2 + seed % 4}x8gpu").build(settings_for(policy))
    watch = Watch()
    simulation = Simulation(cluster, policy, registry, watch)
    for _ in simulation.steps(Fitting(nodes, "").jobs(jobs_of(seed)), 12_000.0):
        watch.check()
    return watch


def test_an_eviction_is_followed_by_the_start_that_it_was_for() -> None:
    evictions: Counter[str] = Counter()
    for seed in SEEDS:
        watch = simulated(seed)
        assert watch.in_vain == [], f"seed {seed}"
        evictions += watch.evictions
    assert evictions["gangpreempt"] > 50 and evictions["gangreclaim"] > 50


def test_counting_room_before_a_trial_changes_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = [simulated(seed).decisions for seed in range(3)]
    monkeypatch.setattr(GangRoom, "suffices", True)
    assert [simulated(seed).decisions for seed in range(3)] == counted
