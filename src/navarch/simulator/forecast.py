"""When waiting jobs start if running ones end as supposed: the scheduler run forward in virtual time from a cluster as it is.

The caller supposes how long each job still runs, by walltimes or by drawing from history, and asks again for each draw:

    starts = forecast(cluster, policy, registry, now, lambda job, running: draw(job), until=now + 86400)

Nothing new arrives. Cycles are those of `decide`; the cluster that is given stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from navarch.engine.policy import Policy
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, Shape, TaskSpec
from navarch.model.status import ON_NODE
from navarch.simulator.jobs import GPU, PodSet, TraceJob
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.simulation import Simulation

Supposed = Callable[[JobSpec, bool], float]
"""Seconds that a job still runs: the job, and whether it runs now."""


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
    cluster: Cluster, policy: Policy, registry: Registry, now: float, supposed: Supposed, *, until: float
) -> dict[str, float]:
    """Key of each waiting job that starts until then -> when."""
    starts = _Starts()
    copy = copied(cluster)
    simulation = Simulation(copy, policy, registry, starts, skip=False)
    for row, spec in enumerate(copy.jobs.specs):
        if spec is not None and copy.jobs.tasks[row]:
            tasks = [task for each in copy.jobs.tasks[row] if (task := copy.tasks.specs[each]) is not None]
            running = any(task.node and ON_NODE[task.status] for task in tasks)
            job = SimulatedJob(_as_trace(spec, tasks, max(supposed(spec, running), 0.0)), spec, tasks, None)
            simulation.adopt(job, now)
    simulation.run((), until)
    return starts.at


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


def _as_trace(spec: JobSpec, tasks: list[TaskSpec], duration: float) -> TraceJob:
    kinds = Counter(_gpus(task.shape) for task in tasks)
    pods = tuple(PodSet(count, gpus=gpus // 1000, gpu_milli=gpus % 1000) for gpus, count in kinds.items())
    needed = min(max(spec.min_member, 1), len(tasks))
    return TraceJob(name=spec.key, submit=spec.created, duration=duration, pods=pods, queue=spec.queue, min_pods=needed)


def _gpus(shape: Shape) -> int:
    return dict(shape.requests).get(GPU, 0)
