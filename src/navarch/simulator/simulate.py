"""`simulate`: traces in, figures out. One call runs every policy over the same jobs on the same cluster.

>>> from navarch.simulator.jobs import PodSet, TraceJob
>>> jobs = [TraceJob(name=f"j{i}", submit=0, duration=60, pods=(PodSet(gpus=8),)) for i in range(2)]
>>> simulate(jobs, "a=1x8gpu", ["fifo"]).to_dict()["policies"]["fifo"]["jct"]["mean"]
90.0
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from msgspec import Struct

from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.installed import installed
from navarch.offline.plan import read_policy, settings_for
from navarch.simulator.arrivals import allocated_at, with_typical_pods
from navarch.simulator.arrivals import arrivals as arrivals_of
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
    seed: int | None
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
        """The documented form (docs/simulate.md). Figures of a policy are means over its seeds."""
        names = dict.fromkeys(run.name for run in self.runs)
        figures = {name: [run.measures.to_dict() for run in self.runs if run.name == name] for name in names}
        return {"policies": {name: mean_of(each) for name, each in figures.items()}, "seconds": self.seconds}


def simulate(
    trace: str | Iterable[TraceJob],
    cluster: str | ClusterSetup,
    policies: Iterable[PolicySource] | PolicySource = ("navarch",),
    *,
    window: Window | None = None,
    checkpoint: float | None = None,
    arrivals: float | None = None,
    seeds: Sequence[int] = (),
    plugin_dirs: Iterable[str | Path] = (),
    skip: bool = True,
) -> SimulationResult:
    """Run each policy over the jobs of a trace (`KIND:FILE`, or jobs in order of submission) on a cluster (see `clusters`).

    `arrivals`: jobs of the trace come in random order and stay, until they ask for so many times the cluster's GPUs (`arrivals`).
    `seeds`: one run of each policy a seed; figures are means.

    Raises `TraceError`, `ClusterError` or `PolicyError` with every mistake. `skip` False runs a cycle over all waiting jobs at
    every event: slower, with the same outcome.
    """
    started = perf_counter()
    jobs = read_trace(trace, window).jobs if isinstance(trace, str) else trace
    jobs = jobs if arrivals is None else list(jobs)
    setup = read_cluster(cluster) if isinstance(cluster, str) else cluster
    registry = installed(tuple(Path(each) for each in plugin_dirs))
    listed = [policies] if isinstance(policies, str | Path | Mapping | Policy) else list(policies)
    chosen = [(_name(each), read_policy(each, registry)) for each in listed]
    each_seed: Sequence[int | None] = seeds or (None,)
    runs = [
        _run(name, policy, registry, jobs, setup, seed, arrivals, checkpoint, skip) for name, policy in chosen for seed in each_seed
    ]
    return SimulationResult(runs, perf_counter() - started)


def _run(
    name: str,
    policy: Policy,
    registry: Registry,
    jobs: Iterable[TraceJob],
    setup: ClusterSetup,
    seed: int | None,
    ratio: float | None,
    checkpoint: float | None,
    skip: bool,
) -> PolicyRun:
    """One policy, one seed."""
    begun = perf_counter()
    built, nodes = setup.build(settings_for(policy))
    fitting = Fitting(nodes, setup.partition)
    gpus = sum(dict(node.allocatable).get(GPU, 0) for node in nodes) / 1000
    measures = Measures(gpus)
    until: float | None = None
    if ratio is not None:
        listed = list(fitting.jobs(jobs))
        policy = with_typical_pods(policy, listed)
        jobs = come = arrivals_of(listed, gpus, ratio, seed or 0)
        until = come[-1].submit if come else 0.0
    else:
        jobs = fitting.jobs(jobs)
    simulation = Simulation(built, policy, registry, measures, checkpoint=checkpoint, skip=skip)
    was_on = gc.isenabled()
    gc.disable()
    try:
        simulation.run(jobs, until)
    finally:
        if was_on:
            gc.enable()
    if ratio is not None:
        measures.at = allocated_at(come, measures.held(), gpus, ratio)
    waiting = [job.job.name for job in simulation.waiting]
    seconds = perf_counter() - begun
    return PolicyRun(name, seed, measures, dict(fitting.left_out), waiting, simulation.cycles, seconds, list(policy.warnings))


def mean_of(figures: Sequence[Any]) -> Any:
    """Means of numbers at the same place of nested mappings; what is absent somewhere is left out of its mean.

    >>> mean_of([{"a": {"b": 1}, "c": None}, {"a": {"b": 2}, "c": None}])
    {'a': {'b': 1.5}, 'c': None}
    """
    if len(figures) == 1:
        return figures[0]
    if isinstance(figures[0], Mapping):
        return {name: mean_of([each[name] for each in figures]) for name in figures[0]}
    numbers = [each for each in figures if each is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _name(policy: PolicySource) -> str:
    """A preset's name, or the stem of a file's."""
    if isinstance(policy, Policy):
        return Path(policy.source).stem or "policy"
    return "policy" if isinstance(policy, Mapping) else Path(policy).stem
