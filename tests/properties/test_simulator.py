"""What holds of every simulation: jobs are conserved, no node is overfull, nothing happens twice differently, cycles left out change
nothing.

Traces have elastic jobs, parts of GPUs, gangs of different pods, priorities, walltimes and checkpoints. Nodes fail and return.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from navarch.engine.policy import PRESETS
from navarch.engine.record import CycleRecord
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.simulator.clusters import read_cluster
from navarch.simulator.failures import NodeFailures
from navarch.simulator.fitting import Fitting
from navarch.simulator.jobs import GPU, PodSet, TraceJob
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.simulation import Simulation

CLUSTERS = ("a=3x4gpu+16cpu+64Gi", "a=2x4gpu+16cpu+64Gi,b=1x8gpu+8cpu+64Gi", "a=1x4gpu", "a=4x4gpu")
MOST_MOMENTS = 600
"""A policy may evict and start the same jobs for ever: the rest of such a run is not looked at."""


class World(Struct):
    jobs: list[TraceJob]
    cluster: str
    failures: NodeFailures | None
    estimates: str


class Log:
    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.arrivals: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()

    def arrived(self, now: float, job: TraceJob) -> None:
        self.arrivals[job.name] += 1

    def moved(self, now: float, job: SimulatedJob) -> None:
        self.events.append((now, job.job.name, tuple(sorted(job.nodes.items()))))

    def ended_job(self, now: float, job: SimulatedJob, *, done: bool) -> None:
        self.ends[job.job.name] += 1
        self.events.append((now, job.job.name, done, job.ran, job.lost_gpu_seconds))

    def decided(self, now: float, record: CycleRecord, seconds: float) -> None:
        return None

    def fragmented_by(self, now: float, gpus: float) -> None:
        assert gpus >= 0


@st.composite
def traces(draw: st.DrawFn) -> list[TraceJob]:
    whole = st.builds(PodSet, count=st.integers(1, 3), gpus=st.sampled_from((1, 2, 4)), cpu=st.sampled_from((0, 1000, 8000)))
    typed = st.builds(PodSet, gpus=st.just(1), gpu_types=st.sampled_from((("a",), ("a", "b"))))
    shared = st.builds(PodSet, gpu_milli=st.sampled_from((250, 500, 700)), cpu=st.sampled_from((500, 3000)))
    cores = st.builds(PodSet, count=st.integers(1, 3), cpu=st.sampled_from((500, 3000)), memory=st.sampled_from((0, 1 << 34)))
    found = []
    for number in range(draw(st.integers(6, 16))):
        pods = tuple(draw(st.lists(st.one_of(whole, whole, typed, shared, cores), min_size=1, max_size=2)))
        size = sum(each.count for each in pods)
        found.append(
            TraceJob(
                name=f"j{number:02d}",
                submit=float(draw(st.integers(0, 60))),
                duration=float(draw(st.sampled_from((60, 100, 33, 20, 5, 0)))),
                pods=pods,
                queue=draw(st.sampled_from("ab")),
                min_pods=draw(st.sampled_from((None, *range(1, size)))),
                priority=draw(st.sampled_from((0, 0, 10, -3))),
                walltime=draw(st.sampled_from((None, None, 10.0, 50.0))),
                checkpoint=draw(st.sampled_from((None, 5.0))),
                user=draw(st.sampled_from("uv")),
            )
        )
    return sorted(found, key=lambda job: job.submit)


worlds = st.builds(
    World,
    jobs=traces(),
    cluster=st.sampled_from(CLUSTERS),
    failures=st.one_of(
        st.none(), st.builds(NodeFailures, st.sampled_from((60.0, 400.0)), st.sampled_from((5.0, 40.0)), st.integers(0, 9))
    ),
    estimates=st.sampled_from(("walltime", "exact", "history")),
)


def check_nodes(simulation: Simulation, allocatable: dict[str, dict[str, int]], *, whole: bool) -> None:
    """Nothing is used twice, nothing runs on a node that is away. `whole`: a job holds nodes only with its minimum of pods."""
    used: dict[str, Counter[str]] = {}
    for job in simulation.jobs.values():
        assert not whole or not job.nodes or len(job.nodes) >= job.job.needed
        sizes = [each for each in job.job.pods for _ in range(each.count)]
        for uid, pods in zip(job.tasks, sizes):
            if uid in job.nodes:
                on = used.setdefault(job.nodes[uid], Counter())
                on["cpu"] += pods.cpu
                on["memory"] += pods.memory
                on["whole"] += pods.gpus
                if pods.gpu_milli:
                    (device,) = job.tasks[uid].gpu_groups
                    on[f"device {device}"] += pods.gpu_milli
    for name, on in used.items():
        assert name not in simulation.nodes_away
        devices = [amount for key, amount in on.items() if key.startswith("device")]
        assert max(devices, default=0) <= 1000
        assert 1000 * (on["whole"] + len(devices)) <= allocatable[name][GPU]
        assert on["cpu"] <= allocatable[name]["cpu"] and on["memory"] <= allocatable[name]["memory"]


def play(world: World, preset: str, *, skip: bool) -> Log:
    registry, log = installed(()), Log()
    policy = read_policy(preset, registry)
    cluster, nodes = read_cluster(world.cluster).build(settings_for(policy))
    allocatable = {node.name: dict(node.allocatable) for node in nodes}
    fitting = Fitting(nodes)
    simulation = Simulation(cluster, policy, registry, log, failures=world.failures, estimates=world.estimates, skip=skip)
    moments = simulation.steps(fitting.jobs(world.jobs))
    for _ in islice(moments, MOST_MOMENTS):
        check_nodes(simulation, allocatable, whole=preset != "kube-scheduler")
    if next(moments, None) is None:
        there = {job.job.name for job in simulation.jobs.values()}
        assert set(log.arrivals.values()) <= {1} and set(log.ends.values()) <= {1}
        assert log.arrivals.total() + sum(fitting.left_out.values()) == len(world.jobs)
        assert log.ends.keys() | there == log.arrivals.keys() and not log.ends.keys() & there
    return log


@pytest.mark.parametrize("preset", sorted(PRESETS))
@settings(max_examples=12, deadline=None)
@given(world=worlds)
def test_jobs_are_conserved_and_cycles_left_out_change_nothing(preset: str, world: World) -> None:
    fast = play(world, preset, skip=True)
    assert fast.events == play(world, preset, skip=False).events
