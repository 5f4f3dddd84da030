"""`simulate`: traces in, figures out. One call runs every policy over the same jobs on the same cluster.

>>> from navarch.simulator.jobs import PodSet, TraceJob
>>> jobs = [TraceJob(name=f"j{i}", submit=0, duration=60, pods=(PodSet(gpus=8),)) for i in range(2)]
>>> simulate(jobs, "a=1x8gpu", ["fifo"]).to_dict()["policies"]["fifo"]["jct"]["mean"]
90.0
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from msgspec import Struct

from navarch.engine.policy import Policy
from navarch.installed import installed
from navarch.offline.plan import read_policy, settings_for
from navarch.simulator.clusters import ClusterSetup, read_cluster
from navarch.simulator.clusters.setup import GPU
from navarch.simulator.fitting import Fitting
from navarch.simulator.jobs import TraceJob
from navarch.simulator.measures import Measures
from navarch.simulator.simulation import Simulation
from navarch.simulator.traces import Window, read_trace

PolicySource = str | Path | Mapping[str, object] | Policy


class PolicyRun(Struct):
    """One policy over the trace."""

    name: str
    measures: Measures
    left_out: dict[str, int]
    waiting: list[str]
    """Jobs that had not started when nothing more could happen."""
    cycles: int
    seconds: float
    warnings: list[str]


class SimulationResult(Struct):
    runs: list[PolicyRun]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The documented form (docs/simulate.md)."""
        return {"policies": {run.name: run.measures.to_dict() for run in self.runs}, "seconds": self.seconds}


def simulate(
    trace: str | Iterable[TraceJob],
    cluster: str | ClusterSetup,
    policies: Iterable[PolicySource] | PolicySource = ("navarch",),
    *,
    window: Window | None = None,
    checkpoint: float | None = None,
    plugin_dirs: Iterable[str | Path] = (),
    skip: bool = True,
) -> SimulationResult:
    """Run each policy over the jobs of a trace (`KIND:FILE`, or jobs in order of submission) on a cluster (see `clusters`).

    Raises `TraceError`, `ClusterError` or `PolicyError` with every mistake. `skip` False runs a cycle over all waiting jobs at
    every event: slower, with the same outcome.
    """
    started = perf_counter()
    jobs = read_trace(trace, window).jobs if isinstance(trace, str) else trace
    setup = read_cluster(cluster) if isinstance(cluster, str) else cluster
    registry = installed(tuple(Path(each) for each in plugin_dirs))
    listed = [policies] if isinstance(policies, str | Path | Mapping | Policy) else list(policies)
    chosen = [(_name(each), read_policy(each, registry)) for each in listed]
    runs = []
    for name, policy in chosen:
        begun = perf_counter()
        built, nodes = setup.build(settings_for(policy))
        fitting = Fitting(nodes, setup.partition)
        measures = Measures(sum(dict(node.allocatable).get(GPU, 0) for node in nodes) / 1000)
        simulation = Simulation(built, policy, registry, measures, checkpoint=checkpoint, skip=skip)
        was_on = gc.isenabled()
        gc.disable()
        try:
            simulation.run(fitting.jobs(jobs))
        finally:
            if was_on:
                gc.enable()
        waiting = [job.job.name for job in simulation.waiting]
        seconds = perf_counter() - begun
        runs.append(PolicyRun(name, measures, dict(fitting.left_out), waiting, simulation.cycles, seconds, list(policy.warnings)))
    return SimulationResult(runs, perf_counter() - started)


def _name(policy: PolicySource) -> str:
    """A preset's name, or the stem of a file's."""
    if isinstance(policy, Policy):
        return Path(policy.source).stem or "policy"
    return "policy" if isinstance(policy, Mapping) else Path(policy).stem
