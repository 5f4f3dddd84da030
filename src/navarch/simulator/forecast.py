"""When waiting jobs start if running ones end as supposed: the scheduler run forward in virtual time from a cluster as it is.

The caller supposes how long each job still runs, by walltimes or by drawing from history, and asks again for each draw:

    starts = forecast(cluster, policy, registry, now, lambda job, running: draw(job), until=now + 86400)

Nothing new arrives but what the caller says. Cycles are those of `decide`; the cluster that is given stays as it is. Groups without
pods and jobs that have finished are in the cluster, as the scheduler sees them; nothing of them starts or ends.

One job must not break the forecast of the others. A failure names its job (`ForecastFailed`), and the caller asks again with that job
set aside: its pods stay where they are, and it does not start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec.structs import replace

from navarch.engine.policy import Policy
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, Shape, TaskSpec
from navarch.model.status import IS_TERMINAL, ON_NODE
from navarch.simulator.jobs import GPU, PodSet, TraceJob
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.simulation import Simulation

Supposed = Callable[[JobSpec, bool], float | None]
"""Seconds that a job still runs: the job, and whether it runs now. None: the job is set aside."""


class ForecastFailed(Exception):
    """Playing the job `key` raised; `key` is empty where the scheduler itself did."""

    def __init__(self, key: str, error: Exception) -> None:
        super().__init__(f"its forecast failed: {type(error).__name__}: {error}")
        self.key = key


class _Starts:
    """Writes down when jobs start that did not run at first."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    def arrived(self, now: float, job: TraceJob) -> None:
        return None

    def moved(self, now: float, job: SimulatedJob) -> None:
        if job.started is not None:
            self.at.setdefault(job.spec.key, now)

    def ended_job(self, now: float, job: SimulatedJob, *, done: bool) -> None:
        return None

    def decided(self, now: float, record: CycleRecord, seconds: float) -> None:
        return None

    def fragmented_by(self, now: float, gpus: float) -> None:
        return None


def forecast(
    cluster: Cluster,
    policy: Policy,
    registry: Registry,
    now: float,
    supposed: Supposed,
    *,
    until: float,
    wanted: Collection[str] | None = None,
    arrivals: Iterable[TraceJob] = (),
    known: Mapping[str, TraceJob] | None = None,
    proceed: Callable[[], bool] = lambda: True,
) -> dict[str, float] | None:
    """Key of each waiting job that starts until then -> when.

    `wanted`: ends when these have started. `arrivals`: jobs that come after now. `known`: the jobs of the cluster as a trace had them.
    Then jobs are equal where the trace says so, and cycles are left out that cannot start anything. `proceed` is asked after each
    moment; None is returned where it says no. Raises `ForecastFailed`.
    """
    starts = _Starts()
    copy = copied(cluster)
    simulation = Simulation(copy, policy, registry, starts, skip=known is not None)
    try:
        _adopt_jobs(simulation, now, supposed, known)
        left = None if wanted is None else set(wanted)
        for _ in simulation.steps(arrivals, until):
            if not proceed():
                return None
            if left is not None:
                left -= starts.at.keys()
                if not left:
                    break
        return {key: at for key, at in starts.at.items() if wanted is None or key in wanted}
    except Exception as error:  # in what a job says of itself, or in what the cycle does not contain
        raise ForecastFailed(simulation.subject if cluster.job(simulation.subject) is not None else "", error) from error


def _adopt_jobs(simulation: Simulation, now: float, supposed: Supposed, known: Mapping[str, TraceJob] | None) -> None:
    cluster = simulation.cluster
    for row, spec in enumerate(cluster.jobs.specs):
        found = (cluster.tasks.specs[each] for each in cluster.jobs.tasks[row]) if spec is not None else ()
        tasks = [task for task in found if task is not None and not IS_TERMINAL[task.status]]
        if spec is None or not tasks:
            continue
        simulation.subject = spec.key
        placed = [task for task in tasks if task.node and ON_NODE[task.status]]
        remaining = supposed(spec, bool(placed))
        if remaining is None:
            cluster.jobs.hold(spec.key, True)
            continue
        trace = _as_trace(spec, tasks) if known is None else known[spec.key]
        simulation.adopt(_adopted(spec, tasks, placed, trace, now, max(remaining, 0.0)), now)


def _adopted(
    spec: JobSpec, tasks: list[TaskSpec], placed: list[TaskSpec], trace: TraceJob, now: float, remaining: float
) -> SimulatedJob:
    """The job as the simulation goes on with it. Work that it has done is lost if it is evicted."""
    done = max((now - task.started for task in placed if task.started is not None), default=0.0)
    rate = len(placed) / len(tasks) if placed else 1.0
    job = SimulatedJob(replace(trace, duration=(done + remaining) * rate, walltime=None), spec, tasks, None)
    job.work = done * rate
    return job


def copied(cluster: Cluster) -> Cluster:
    """A cluster of its own with the same objects."""
    out = Cluster()
    for priority in cluster.priority_classes.values():
        out.put_priority_class(priority)
    for namespace in cluster.namespaces.values():
        out.put_namespace(namespace)
    for queue in cluster.queues.values():
        out.put_queue(queue)
    for budget in cluster.budgets.values():
        out.put_budget(budget)
    for quota in cluster.quotas.values():
        out.put_quota(quota)
    for kind, objects in cluster.objects.items():
        for (namespace_name, name), value in objects.items():
            out.put_object(kind, namespace_name, name, value)
    for node in cluster.nodes.specs:
        if node is not None:
            out.put_node(node)
    for job in cluster.jobs.specs:
        if job is not None:
            out.put_job(job)
    for task in cluster.tasks.specs:
        if task is not None:
            out.put_task(task)
    return out


def _as_trace(spec: JobSpec, tasks: list[TaskSpec]) -> TraceJob:
    kinds = Counter(_gpus(task.shape) for task in tasks)
    pods = tuple(PodSet(count, gpus=gpus // 1000, gpu_milli=gpus % 1000) for gpus, count in kinds.items())
    needed = min(max(spec.min_member, 1), len(tasks))
    return TraceJob(name=spec.key, submit=spec.created, duration=0.0, pods=pods, queue=spec.queue, min_pods=needed)


def _gpus(shape: Shape) -> int:
    return dict(shape.requests).get(GPU, 0)
