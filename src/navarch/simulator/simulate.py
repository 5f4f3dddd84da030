"""`simulate`: traces in, figures out. One call runs every policy over the same jobs on the same cluster.

>>> from navarch.simulator.jobs import PodSet, TraceJob
>>> jobs = [TraceJob(name=f"j{i}", submit=0, duration=60, pods=(PodSet(gpus=8),)) for i in range(2)]
>>> simulate(jobs, "a=1x8gpu", ["fifo"]).to_dict()["policies"]["fifo"]["jct"]["mean"]
90.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from navarch.engine.points.conversation import not_asked
from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.model.spec import NodeSpec, QueueSpec
from navarch.offline.inputs import read_directories
from navarch.offline.policies import read_policy
from navarch.simulator.arrivals import allocated_at, course, with_typical_pods
from navarch.simulator.arrivals import arrivals as arrivals_of
from navarch.simulator.clusters import ClusterError, ClusterSetup, read_cluster
from navarch.simulator.clusters.setup import GPU, UNSAID
from navarch.simulator.failures import NodeFailures
from navarch.simulator.fitting import Fitting
from navarch.simulator.inputs import CheckedJobs, PolicySource, check_arguments, listed_policies
from navarch.simulator.jobs import TraceJob
from navarch.simulator.measures import Measures
from navarch.simulator.simulation import Simulation
from navarch.simulator.traces import Window, read_trace

Progress = Callable[[str, float, int], None]


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
    outside: int = 0
    """Jobs of the trace that were submitted outside of the window."""
    first_left_out: dict[str, str] = field(default_factory=dict)
    """Reason -> the first job that was left out for it, where it is known."""

    @property
    def ended_early(self) -> int:
        """Jobs that their walltime ended."""
        return self.measures.ended - self.measures.finished

    @property
    def found_no_room(self) -> int:
        """Of the arrivals of a list, those that were not placed."""
        return len(self.waiting) if self.measures.course else 0

    def remarks(self, *, counts: bool = True) -> list[str]:
        """What the figures do not show: jobs that were left out, that a walltime ended, that never started and why, and warnings.
        `counts` False: without what `SimulationResult` tells of all policies together."""
        said = []
        for reason, count in sorted(self.left_out.items()):
            first = self.first_left_out.get(reason)
            said.append(f"left out {_jobs(count)}: {reason}" + (f" ({first}{' and others' * (count > 1)})" if first else ""))
        if not self.measures.jobs and not self.left_out:
            outside = f"; {_jobs(self.outside)} lie outside of the times asked for" if self.outside else ""
            said.append(f"the trace has no job to play{outside}")
        if self.ended_early and counts:
            said.append(f"walltimes ended {_jobs(self.ended_early)} before the work was done")
        if self.found_no_room:
            said += [f"{_jobs(self.found_no_room)} found no room"] if counts else []
        elif self.waiting:
            shown = ", ".join(self.waiting[:5]) + (" ..." if len(self.waiting) > 5 else "")
            why = f"; {self.waiting[0]}: {self.why_waiting}" if self.why_waiting else ""
            said.append(f"{_jobs(len(self.waiting))} never started: {shown}{why}")
        return [*said, *(f"warning: {warning}" for warning in self.warnings)]


_SHOWN_RUNS = 5
FAILURES_WITHOUT_PROGRESS = 100
"""Failures of each node in which no job ends or saves work, after which a run is given up: its jobs are longer than nodes last."""


class SimulationResult(Struct):
    runs: list[PolicyRun]
    seconds: float

    def __repr__(self) -> str:
        done = ", ".join(f"{run.name} {run.measures.finished:,} jobs" for run in self.runs[:_SHOWN_RUNS])
        more = f" and {len(self.runs) - _SHOWN_RUNS} more" if len(self.runs) > _SHOWN_RUNS else ""
        return f"<SimulationResult: finished under {done}{more}>"

    def remarks(self) -> list[str]:
        """Those of all runs, each once, with the policy unless it is true of all of them. Times of policies that finish different jobs
        are no comparison: a remark says so."""
        said = [f"{name}: {remark}" if name else remark for name, remark in _of_policies(self.runs)]
        said += self._counts("jobs that walltimes ended before the work was done", [run.ended_early for run in self.runs])
        said += self._counts("jobs that found no room", [run.found_no_room for run in self.runs])
        return [*said, *comparison(self.to_dict()["policies"])]

    def _counts(self, title: str, numbers: Sequence[int]) -> list[str]:
        """One remark with the number under each policy, the mean over its seeds; none if all are zero. `numbers`: of each run."""
        by_policy: dict[str, list[int]] = {}
        for run, number in zip(self.runs, numbers):
            by_policy.setdefault(run.name, []).append(number)
        shown = ", ".join(f"{name} {sum(each) / len(each):,.6g}" for name, each in by_policy.items())
        return [f"{title}: {shown}"] if any(numbers) else []

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
    plugin_dirs: str | Path | Iterable[str | Path] = (),
    skip: bool = True,
    progress: Progress | None = None,
) -> SimulationResult:
    """Run each policy over the jobs of a trace (`KIND:FILE`, or jobs in order of submission) on a cluster (see `clusters`).

    `checkpoint`: seconds of work between checkpoints of jobs that do not say. `estimates`: where expected durations come from (see
    `estimates`). `failures`: how often nodes fail. `arrivals`: jobs of the trace come in random order and stay, until they ask for so
    many times the cluster's GPUs (`arrivals`). `seeds`: one run of each policy a seed; figures are means. `progress` is called with
    the name of the policy, the virtual time and the number of jobs that are done.

    Raises `TraceError`, `ClusterError` or `PolicyError` with every mistake, and ValueError for an argument that makes no sense. `skip`
    False runs a cycle over all waiting jobs at every event: slower, with the same outcome.

    >>> from navarch.simulator.jobs import PodSet, TraceJob
    >>> jobs = [TraceJob(name=f"j{i}", submit=0, duration=60, pods=(PodSet(gpus=8),)) for i in range(2)]
    >>> simulate(jobs, "a=1x8gpu", "fifo")
    <SimulationResult: finished under fifo 2 jobs>
    """
    started = perf_counter()
    check_arguments(trace, cluster, checkpoint, estimates, failures, arrivals, seeds)
    listed = listed_policies(policies)
    left_out: Mapping[str, int] = {}
    jobs: Iterable[TraceJob]
    outside = 0
    if isinstance(trace, str):
        read = read_trace(trace, window)
        jobs, left_out, outside = read.jobs, read.left_out, read.outside
    else:
        jobs = CheckedJobs(trace, again=len(listed) * max(len(seeds), 1) > 1, in_order=arrivals is None)
    listed_jobs = jobs if arrivals is None else list(jobs)
    setup = read_cluster(cluster) if isinstance(cluster, str) else cluster
    registry = installed(read_directories(plugin_dirs))
    chosen = [(name, read_policy(each, registry)) for name, each in zip(policy_names(listed), listed)]
    options = RunOptions(checkpoint, estimates, failures, arrivals, skip)
    each_seed: Sequence[int | None] = list(dict.fromkeys(seeds)) or [None]
    runs = []
    for name, policy in chosen:
        for seed in each_seed:
            run = run_policy(name, policy, registry, listed_jobs, setup, seed, options, progress)
            run.left_out.update(left_out)
            run.outside = outside
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
    fitting = Fitting(nodes, setup.partition, jobs_stay=options.arrivals is not None)
    gpus = sum(dict(node.allocatable).get(GPU, 0) for node in nodes) / 1000
    measures = Measures(gpus, lambda queue: quota_of(built.queues.get(queue)), cores_of(nodes))
    until: float | None = None
    come: list[TraceJob] = []
    if options.arrivals is not None:
        if not gpus:
            raise ClusterError("cluster: found no GPU, expected some: with arrivals, jobs come until they ask for so many GPUs")
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
    ended = failed_then = 0
    kept = 0.0
    notes = [f"the cluster begins without the {setup.pods_left_out:,} pods in its manifests"] if setup.pods_left_out else []
    for count, time in enumerate(simulation.steps(jobs, until)):
        if count % 1024:
            continue
        if progress is not None:
            progress(name, time, measures.finished)
        saved = sum(job.saved for job in simulation.jobs.values())
        if measures.ended > ended or saved > kept or not simulation.jobs:
            ended, kept, failed_then = measures.ended, saved, simulation.node_failures
        elif simulation.node_failures - failed_then > FAILURES_WITHOUT_PROGRESS * len(nodes):
            failed = simulation.node_failures - failed_then
            left = f"{_jobs(len(simulation.jobs))} not done, and without those that had not come yet"
            notes.append(f"no job ended while nodes failed {failed:,} times: given up with {left}")
            simulation.jobs.clear()
            break
    if options.arrivals is not None:
        held = measures.held()
        measures.at = allocated_at(come, held, gpus, options.arrivals)
        measures.course = course(come, held, gpus)
    measures.failures = simulation.node_failures
    measures.forget_quota()
    waiting = [job.job.name for job in simulation.waiting]
    seconds = perf_counter() - begun
    warnings = [*notes, *policy.warnings, *map(not_asked, registry.asked_servers(policy))]
    why = simulation.why_waiting() if until is None else ""
    left_out, first = dict(fitting.left_out), fitting.first_left_out
    return PolicyRun(name, seed, measures, left_out, waiting, why, simulation.cycles, seconds, warnings, first_left_out=first)


def cores_of(nodes: Sequence[NodeSpec]) -> float:
    """CPU cores of the nodes; none where the description of a node does not mention them."""
    each = [dict(node.allocatable).get("cpu", 0) / 1000 for node in nodes]
    return 0.0 if max(each, default=0.0) >= float(UNSAID["cpu"]) else sum(each)


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


def comparison(policies: Mapping[str, Any]) -> list[str]:
    """A remark where the figures of policies are those of different jobs; otherwise none."""
    done = {name: figures["finished"] for name, figures in policies.items()}
    if len(set(done.values())) < 2:
        return []
    counts = ", ".join(f"{name} {count:,.6g}" for name, count in done.items())
    return [f"times are those of jobs that are done, and policies finish different jobs ({counts}): compare with care"]


def _of_policies(runs: Sequence[PolicyRun]) -> Iterator[tuple[str, str]]:
    """(policy, remark), each once. What is said of all of several policies comes first, without a name."""
    said = [(run.name, remark) for run in runs for remark in run.remarks(counts=False)]
    names = {run.name for run in runs}
    by_remark: dict[str, set[str]] = {}
    for name, remark in said:
        by_remark.setdefault(remark, set()).add(name)
    common = {remark for remark, of in by_remark.items() if len(names) > 1 and of == names}
    yield from (("", remark) for remark in by_remark if remark in common)
    yield from dict.fromkeys((name, remark) for name, remark in said if remark not in common)


def policy_names(policies: Sequence[PolicySource]) -> list[str]:
    """A name for each: as `policy_name` has it, or as much more of the path as tells it from the others.

    >>> policy_names(["fifo", "old/queues.yaml", "new/queues.yaml", {}, {}])
    ['fifo', 'old/queues', 'new/queues', 'policy', 'policy-2']
    """
    short = [policy_name(each) for each in policies]
    names: list[str] = []
    for each, name in zip(policies, short):
        if short.count(name) > 1 and isinstance(each, str | Path):
            name = str(Path(each).with_suffix(""))
        taken, number = name, 1
        while taken in names:
            number += 1
            taken = f"{name}-{number}"
        names.append(taken)
    return names


def policy_name(policy: PolicySource) -> str:
    """A preset's name, or the stem of a file's."""
    if isinstance(policy, Policy):
        return Path(policy.source).stem or "policy"
    return "policy" if isinstance(policy, Mapping) else Path(policy).stem
