"""Metrics under the names of volcano-scheduler (subsystem `volcano`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from navarch.engine.queue import MOST_LEVELS, ROOT
from navarch.engine.record import QueueFigures
from navarch.live.ops.metric_names.followed_metrics import (
    MOST_JOBS,
    FollowedMetrics,
    action_times,
    bounded,
    evictions_by_purpose,
    exponential_range,
    plugin_times,
)
from navarch.model.resources import UNLIMITED, in_bytes
from navarch.model.spec import JobSpec, QueueSpec, TaskSpec
from navarch.model.status import COUNTS_READY, TaskStatus

if TYPE_CHECKING:
    from navarch.live.core import LiveCore
    from navarch.live.cycle import Cycle

_MILLI: Final = 1000.0
_TRANSACTIONS: Final = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
"""The actions whose evictions Volcano counts."""
_FIGURES: Final = ("allocated", "request", "deserved", "capacity", "real_capacity")
_CAPACITY: Final = "capacity"
"""The plugin whose queues have a real capacity."""


class VolcanoMetrics(FollowedMetrics):
    def __init__(self, registry: CollectorRegistry) -> None:
        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"volcano_{name}", text, labels, buckets=buckets, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"volcano_{name}", text, labels, registry=registry)

        cycle = exponential_range(1, 5000, 20)
        self._session = histogram("e2e_scheduling_latency_milliseconds", "A cycle, from snapshot to decisions.", cycle)
        self._open = histogram("open_session_duration_milliseconds", "Snapshot and opening of a cycle.", cycle)
        self._actions = histogram(
            "action_scheduling_latency_milliseconds", "Actions of a cycle.", exponential_range(1, 2000, 20), "action"
        )
        plugins = exponential_range(0.1, 100, 15)
        self._plugins = histogram(
            "plugin_scheduling_latency_milliseconds", "Opening and closing of plugins.", plugins, "plugin", "OnSession"
        )
        tasks = exponential_range(50, 60000, 30)
        self._tasks = histogram(
            "task_scheduling_latency_milliseconds", "From a pod's creation to its decision and its binding.", tasks, "stage"
        )
        stages = exponential_range(0.1, 500, 20)
        self._stages = histogram("scheduling_stage_duration_milliseconds", "From decision to binding.", stages, "stage")
        jobs = exponential_range(100, 120000, 30)
        self._jobs = histogram(
            "e2e_job_scheduling_latency_milliseconds", "From a job's creation to each cycle that bound pods of it.", jobs
        )
        names = ("job_name", "queue", "job_namespace")
        self._job_duration = gauge("e2e_job_scheduling_duration", "From a job's creation to its last decision, ms.", *names)
        self._job_start = gauge("e2e_job_scheduling_start_time", "Creation of a job, seconds since the epoch.", *names)
        self._job_last = gauge("e2e_job_scheduling_last_time", "Last decision about a job, seconds since the epoch.", *names)
        self._victims = gauge("pod_preemption_victims", "Victims of the last job that preempted.")
        self._attempts = gauge("total_preemption_attempts", "Jobs that preempted, counted up.")
        self._transactions = Counter(
            "volcano_eviction_transactions", "Evictions for one job by one action.", ["action"], registry=registry
        )
        self._waiting_tasks = gauge("unschedule_task_count", "Pods that a waiting job lacks.", "job_id")
        self._waiting_jobs = gauge("unschedule_job_count", "Jobs below their minimum.")
        self._milli_cpu = {name: gauge(f"queue_{name}_milli_cpu", f"cpu of a queue: {name}.", "queue_name") for name in _FIGURES}
        self._memory = {name: gauge(f"queue_{name}_memory_bytes", f"memory of a queue: {name}.", "queue_name") for name in _FIGURES}
        self._scalars = {
            name: gauge(
                f"queue_{name}_scalar_resources", f"Other resources of a queue, thousandths: {name}.", "queue_name", "resource"
            )
            for name in _FIGURES
        }
        self._share = gauge("queue_share", "What a queue holds over what it is owed.", "queue_name")
        self._weight = gauge("queue_weight", "Weight of a queue.", "queue_name")
        self._overused = gauge("queue_overused", "1 if a queue holds all that it is owed.", "queue_name")
        self._named_jobs: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        """Labels of the jobs with series of their own, the one decided last at the end."""
        for action in _TRANSACTIONS:
            self._transactions.labels(action)

    def cycle(self, cycle: Cycle, commit_seconds: float, core: LiveCore) -> None:
        record = cycle.record
        self._session.observe(cycle.seconds * _MILLI)
        self._open.observe((cycle.snapshot_seconds + record.timings.get("open", 0.0)) * _MILLI)
        for action, seconds in action_times(cycle):
            self._actions.labels(action).observe(seconds * _MILLI)
        for plugin, moment, seconds in plugin_times(record):
            self._plugins.labels(plugin, moment).observe(seconds * _MILLI)
        assumed = self._tasks.labels("Assumed")
        cluster = core.cache.cluster
        for bind in record.binds:
            task = cluster.task(bind.uid)
            if task is not None:
                assumed.observe(max(0.0, cycle.now - task.created) * _MILLI)
        for key in dict.fromkeys(bind.job for bind in record.binds):
            row = cluster.jobs.rows.of.get(key)
            spec = None if row is None else cluster.jobs.specs[row]
            if spec is not None:
                self._job_decided(spec, cycle.now)
        for (action, _), victims in evictions_by_purpose(record).items():
            if action in _TRANSACTIONS:
                self._transactions.labels(action).inc()
            if action == "preempt":
                self._attempts.inc()
                self._victims.set(len(victims))

    def _job_decided(self, spec: JobSpec, now: float) -> None:
        spent = max(0.0, now - spec.created) * _MILLI
        self._jobs.observe(spent)
        labels = (spec.name, spec.queue, spec.namespace)
        self._job_duration.labels(*labels).set(spent)
        self._job_start.labels(*labels).set(int(spec.created))
        self._job_last.labels(*labels).set(int(now))
        self._named_jobs[labels] = None
        self._named_jobs.move_to_end(labels)
        if len(self._named_jobs) > MOST_JOBS:
            oldest, _ = self._named_jobs.popitem(last=False)
            for gauge in (self._job_duration, self._job_start, self._job_last):
                gauge.remove(*oldest)

    def bound(self, task: TaskSpec, waited: float, binding: float) -> None:
        self._tasks.labels("Bound").observe(waited * _MILLI)
        self._stages.labels("Bind").observe(binding * _MILLI)

    def refresh(self, core: LiveCore) -> None:
        self._show_waiting(core)
        for gauge in (*self._milli_cpu.values(), *self._memory.values(), *self._scalars.values()):
            gauge.clear()
        for one in (self._share, self._weight, self._overused):
            one.clear()
        if core.last_cycle is not None:
            queues, real = core.cache.cluster.queues, _real_capacities(core.last_cycle)
            for label, figures in bounded(core.last_cycle.record.queues):
                self._show_queue(label, figures, queues.get(figures.queue), real.get(figures.queue, {}))

    def _show_waiting(self, core: LiveCore) -> None:
        jobs = core.cache.cluster.jobs
        top = jobs.rows.top
        counts = jobs.counts[:top]
        lacking = jobs.min_member[:top] - counts[:, COUNTS_READY].sum(axis=1)
        waiting = np.flatnonzero((lacking > 0) & (counts[:, TaskStatus.PENDING] > 0) & (jobs.queue[:top] >= 0))
        self._waiting_jobs.set(len(waiting))
        self._waiting_tasks.clear()
        for row in waiting[:MOST_JOBS].tolist():
            spec = jobs.specs[row]
            if spec is not None:
                self._waiting_tasks.labels(spec.name).set(int(lacking[row]))

    def _show_queue(self, label: str, figures: QueueFigures, spec: QueueSpec | None, real: Mapping[str, float]) -> None:
        self._share.labels(label).inc(figures.share)
        if spec is not None:
            self._weight.labels(label).inc(spec.weight)
        owed = figures.deserved
        self._overused.labels(label).set(bool(owed) and all(figures.allocated.get(name, 0) >= due for name, due in owed.items()))
        capacity = {} if spec is None or spec.capability is None else dict(spec.capability)
        parts: tuple[Mapping[str, float], ...] = (figures.allocated, figures.request, figures.deserved, capacity, real)
        for name, amounts in zip(_FIGURES, parts, strict=True):
            self._show_amounts(label, name, amounts)

    def _show_amounts(self, label: str, name: str, amounts: Mapping[str, float]) -> None:
        for resource, amount in amounts.items():
            if amount >= UNLIMITED:
                continue
            if resource == "cpu":
                self._milli_cpu[name].labels(label).inc(amount)
            elif resource == "memory":
                self._memory[name].labels(label).inc(amount)
            else:
                self._scalars[name].labels(label, resource).inc(amount * _MILLI if in_bytes(resource) else amount)


def _real_capacities(cycle: Cycle) -> dict[str, dict[str, float]]:
    """What each queue may hold at most under the plugin capacity: what its parent may, or the cluster, less what is guaranteed to
    other queues there, and its own capability at most. Empty under other policies."""
    options = [option for tier in cycle.policy.tiers for option in tier if option.name == _CAPACITY]
    if not options:
        return {}
    snapshot = cycle.snapshot
    total = snapshot.space.as_mapping(snapshot.nodes.allocatable.sum(axis=1))
    in_tree = options[0].is_enabled("hierarchy")
    queues = {name: spec for name, spec in snapshot.queues.items() if spec.dialect in ("volcano", "implied")}

    def parent(spec: QueueSpec) -> str:
        return (spec.parent or ROOT) if in_tree and spec.name != ROOT else ""

    guaranteed: dict[str, dict[str, float]] = {}
    for spec in queues.values():
        sums = guaranteed.setdefault(parent(spec), {})
        for name, amount in spec.guarantee or ():
            sums[name] = sums.get(name, 0) + amount
    real: dict[str, dict[str, float]] = {"": dict(total)}

    def capacity(spec: QueueSpec, above: int) -> dict[str, float]:
        """`above`: levels that may follow. The parents of broken trees form circles."""
        if spec.name not in real:
            over = queues.get(parent(spec))
            room = capacity(over, above - 1) if over is not None and above else real[""]
            own = dict(spec.guarantee or ())
            kept = guaranteed[parent(spec)]
            limit = {name: max(amount - kept.get(name, 0), 0) + own.get(name, 0) for name, amount in room.items()}
            bounds = dict(spec.capability or ())
            real[spec.name] = {name: min(amount, bounds.get(name, amount)) for name, amount in limit.items()}
        return real[spec.name]

    for spec in queues.values():
        capacity(spec, MOST_LEVELS)
    return real
