"""`simulate`: traces in, figures out. One call runs every policy over the same jobs on the same cluster.

>>> from navarch.simulator.jobs import PodSet, TraceJob
>>> jobs = [TraceJob(name=f"j{i}", submit=0, duration=60, pods=(PodSet(gpus=8),)) for i in range(2)]
>>> simulate(jobs, "a=1x8gpu", ["fifo"]).to_dict()["policies"]["fifo"]["jct"]["mean"]
90.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from navarch.engine.points.conversation import not_asked
from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.installed import installed
from navarch.model.spec import QueueSpec
from navarch.offline.plan import read_policy, settings_for
from navarch.simulator.arrivals import allocated_at, with_typical_pods
from navarch.simulator.arrivals import arrivals as arrivals_of
from navarch.simulator.clusters import ClusterSetup, read_cluster
from navarch.simulator.clusters.setup import GPU
from navarch.simulator.failures import NodeFailures
from navarch.simulator.fitting import Fitting
from navarch.simulator.jobs import TraceJob
from navarch.simulator.measures import Measures
from navarch.simulator.simulation import Simulation
from navarch.simulator.traces import Window, read_trace

Progress = Callable[[str, float, int], None]
PolicySource = str | Path | Mapping[str, object] | Policy


class PolicyRun(Struct):
    """One policy over the trace."""

    name: str
    seed: int | None
    measures: Measures
    left_out: dict[str, int]
    waiting: list[str]
    """Jobs that had not started when nothing more could happen."""
    why_waiting: str
    """Why the first of them did not start; empty for the arrivals of a list, where the trace ends before its jobs."""
    cycles: int
    seconds: float
    warnings: list[str]

    def remarks(self) -> list[str]:
        """What the figures do not show: jobs that were left out, that never started and why, and warnings."""
        said = [f"left out {_jobs(count)}: {reason}" for reason, count in sorted(self.left_out.items())]
        if self.waiting:
            shown = ", ".join(self.waiting[:5]) + (" ..." if len(self.waiting) > 5 else "")
            why = f"; {self.waiting[0]}: {self.why_waiting}" if self.why_waiting else ""
            said.append(f"{_jobs(len(self.waiting))} never started: {shown}{why}")
        return [*said, *(f"warning: {warning}" for warning in self.warnings)]


_SHOWN_RUNS = 5


class SimulationResult(Struct):
    runs: list[PolicyRun]
    seconds: float

    def __repr__(self) -> str:
        done = ", ".join(f"{run.name} {run.measures.finished:,} jobs" for run in self.runs[:_SHOWN_RUNS])
        more = f" and {len(self.runs) - _SHOWN_RUNS} more" if len(self.runs) > _SHOWN_RUNS else ""
        return f"<SimulationResult: finished under {done}{more}>"

    def remarks(self) -> list[str]:
        """Those of all runs, each once with its policy, and that times of policies which finish different jobs are no comparison."""
        said = [f"{run.name}: {remark}" for run in self.runs for remark in run.remarks()]
        by_seed: dict[int | None, dict[str, int]] = {}
        for run in self.runs:
            by_seed.setdefault(run.seed, {})[run.name] = run.measures.finished
        for done in by_seed.values():
            if len(set(done.values())) > 1:
                counts = ", ".join(f"{name} {count:,}" for name, count in done.items())
                said.append(f"times are those of jobs that are done, and policies finish different jobs ({counts}): compare with care")
                break
        return list(dict.fromkeys(said))

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
    estimates: str = "walltime",
    failures: NodeFailures | None = None,
    arrivals: float | None = None,
    seeds: Sequence[int] = (),
    plugin_dirs: Iterable[str | Path] = (),
    skip: bool = True,
    progress: Progress | None = None,
) -> SimulationResult:
    """Run each policy over the jobs of a trace (`KIND:FILE`, or jobs in order of submission) on a cluster (see `clusters`).

    `checkpoint`: seconds of work between checkpoints of jobs that do not say. `estimates`: where expected durations come from (see
    `estimates`). `failures`: how often nodes fail. `arrivals`: jobs of the trace come in random order and stay, until they ask for so
    many times the cluster's GPUs (`arrivals`). `seeds`: one run of each policy a seed; figures are means. `progress` is called with
    the name of the policy, the virtual time and the number of jobs that are done.

    Raises `TraceError`, `ClusterError` or `PolicyError` with every mistake. `skip` False runs a cycle over all waiting jobs at
    every event: slower, with the same outcome.
    """
    started = perf_counter()
    left_out: Mapping[str, int] = {}
    jobs: Iterable[TraceJob]
    if isinstance(trace, str):
        read = read_trace(trace, window)
        jobs, left_out = read.jobs, read.left_out
    else:
        jobs = trace
    listed_jobs = jobs if arrivals is None else list(jobs)
    setup = read_cluster(cluster) if isinstance(cluster, str) else cluster
    registry = installed(tuple(Path(each) for each in plugin_dirs))
    listed = [policies] if isinstance(policies, str | Path | Mapping | Policy) else list(policies)
    chosen = [(policy_name(each), read_policy(each, registry)) for each in listed]
    options = RunOptions(checkpoint, estimates, failures, arrivals, skip)
    each_seed: Sequence[int | None] = seeds or (None,)
    runs = []
    for name, policy in chosen:
        for seed in each_seed:
            run = run_policy(name, policy, registry, listed_jobs, setup, seed, options, progress)
            run.left_out.update(left_out)
            runs.append(run)
    return SimulationResult(runs, perf_counter() - started)


class RunOptions(Struct, frozen=True):
    """What else a run is told; see `simulate`."""

    checkpoint: float | None = None
    estimates: str = "walltime"
    failures: NodeFailures | None = None
    arrivals: float | None = None
    skip: bool = True


def run_policy(
    name: str,
    policy: Policy,
    registry: Registry,
    jobs: Iterable[TraceJob],
    setup: ClusterSetup,
    seed: int | None,
    options: RunOptions,
    progress: Progress | None = None,
) -> PolicyRun:
    """One policy, one seed."""
    begun = perf_counter()
    built, nodes = setup.build(settings_for(policy))
    fitting = Fitting(nodes, setup.partition)
    gpus = sum(dict(node.allocatable).get(GPU, 0) for node in nodes) / 1000
    measures = Measures(gpus, lambda queue: quota_of(built.queues.get(queue)))
    until: float | None = None
    come: list[TraceJob] = []
    if options.arrivals is not None:
        listed = list(fitting.jobs(jobs))
        policy = with_typical_pods(policy, listed)
        jobs = come = arrivals_of(listed, gpus, options.arrivals, seed or 0)
        until = come[-1].submit if come else 0.0
    else:
        jobs = fitting.jobs(jobs)
    failures = options.failures
    simulation = Simulation(
        built,
        policy,
        registry,
        measures,
        checkpoint=options.checkpoint,
        estimates=options.estimates,
        failures=failures if failures is None or seed is None else replace(failures, seed=seed),
        skip=options.skip,
    )
    for count, time in enumerate(simulation.steps(jobs, until)):
        if count % 1024 == 0 and progress is not None:
            progress(name, time, measures.finished)
    if options.arrivals is not None:
        measures.at = allocated_at(come, measures.held(), gpus, options.arrivals)
    measures.failures = simulation.node_failures
    measures.forget_quota()
    waiting = [job.job.name for job in simulation.waiting]
    seconds = perf_counter() - begun
    warnings = [*policy.warnings, *map(not_asked, registry.asked_servers(policy))]
    why = simulation.why_waiting() if until is None else ""
    return PolicyRun(name, seed, measures, dict(fitting.left_out), waiting, why, simulation.cycles, seconds, warnings)


def quota_of(queue: QueueSpec | None) -> float | None:
    """GPUs that a queue is owed: what it is guaranteed, else what it deserves, else its quota; None where nothing is said."""
    if queue is None:
        return None
    for amounts in (queue.guarantee, queue.deserved):
        if amounts and GPU in dict(amounts):
            return dict(amounts)[GPU] / 1000
    share = queue.shares.get("gpu")
    return share.quota if share is not None and share.quota >= 0 else None


def mean_of(figures: Sequence[Any]) -> Any:
    """Means of numbers at the same place of nested mappings; what is absent somewhere is left out of its mean.

    >>> mean_of([{"a": {"b": 1}, "c": None}, {"a": {"b": 2}, "c": None}])
    {'a': {'b': 1.5}, 'c': None}
    """
    if len(figures) == 1:
        return figures[0]
    if isinstance(figures[0], Mapping):
        names = dict.fromkeys(name for each in figures for name in each)
        return {name: mean_of([each[name] for each in figures if name in each]) for name in names}
    numbers = [each for each in figures if each is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _jobs(count: int) -> str:
    return f"{count:,} job{'' if count == 1 else 's'}"


def policy_name(policy: PolicySource) -> str:
    """A preset's name, or the stem of a file's."""
    if isinstance(policy, Policy):
        return Path(policy.source).stem or "policy"
    return "policy" if isinstance(policy, Mapping) else Path(policy).stem
