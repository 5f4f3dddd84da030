"""Metrics under the names of KAI's scheduler (namespace `kai`). Durations are gauges there: those of the last cycle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from navarch.engine.policy import Policy
from navarch.engine.policy.search_budgets import ACTIONS as SEARCHING
from navarch.engine.policy.search_budgets import GENERATORS, SearchBudgets
from navarch.engine.record import CycleRecord, Eviction
from navarch.live.ops.metric_names.followed_metrics import (
    MOST_JOBS,
    FollowedMetrics,
    action_times,
    bounded,
    evictions_by_purpose,
    exponential,
    plugin_times,
)
from navarch.live.ops.metrics import MOST_QUEUES, OTHERS
from navarch.model.objects.queue_usage import QUEUE_USAGE
from navarch.model.spec import JobSpec, TaskSpec

if TYPE_CHECKING:
    from navarch.live.core import LiveCore
    from navarch.live.cycle import Cycle

_MILLI: Final = 1000.0
_QUEUE: Final = ("queue_name", "queue_metadata_name", "queue_display_name")
_DEFAULT_POOL: Final = "default"
_RESOURCES: Final = (("cpu", "cpu_cores", 1e3), ("memory", "memory_gb", 1e9), ("gpu", "gpu", 1e3))
"""Resource, end of the name of the fair share, divisor from the model's unit."""


class KaiMetrics(FollowedMetrics):
    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"kai_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str) -> Histogram:
            return Histogram(f"kai_{name}", text, buckets=exponential(5, 2, 10), registry=registry)

        self._session = gauge("e2e_scheduling_latency_milliseconds", "The last cycle, from snapshot to committed decisions.")
        self._open = gauge("open_session_latency_milliseconds", "Snapshot and opening of the last cycle.")
        self._close = gauge("close_session_latency_milliseconds", "Closing of the last cycle.")
        self._plugins = gauge(
            "plugin_scheduling_latency_milliseconds", "Opening and closing of plugins in the last cycle.", "plugin", "OnSession"
        )
        self._actions = gauge("action_scheduling_latency_milliseconds", "Actions of the last cycle.", "action")
        self._tasks = histogram("task_scheduling_latency_milliseconds", "From a pod's creation to the decision to bind it.")
        self._binds = histogram("task_bind_latency_milliseconds", "From decision to binding.")
        self._scheduled = gauge("podgroups_scheduled_by_action", "Jobs that an action gave room, counted up.", "action")
        self._attempts = gauge("total_preemption_attempts", "Jobs that preempt gave room, counted up.")
        self._evicted = Counter(
            "kai_pod_group_evicted_pods",
            "Pods that were chosen for eviction.",
            ["podgroup", "namespace", "uid", "nodepool", "action"],
            registry=registry,
        )
        self._fair_share = {
            name: gauge(f"queue_fair_share_{end}", f"Fair share of a queue: {name}.", *_QUEUE) for name, end, _ in _RESOURCES
        }
        self._usage = {
            name: gauge(f"queue_{name}_usage", f"Usage of a queue over time: {name}.", *_QUEUE) for name, _, _ in _RESOURCES
        }
        self._action_budget = gauge("scenario_search_action_budget_configured_seconds", "Budget of an action's searches.", "action")
        self._job_budget = gauge("scenario_search_job_budget_configured_seconds", "Budget of the search for one job.")
        self._generator_budget = gauge(
            "scenario_search_generator_budget_configured_seconds", "Budget of one way of choosing victims.", "generator"
        )
        self._groups: set[str] = set()
        """Groups with series of their own."""

    def cycle(self, cycle: Cycle, commit_seconds: float, core: LiveCore) -> None:
        record = cycle.record
        self._session.set((cycle.seconds + commit_seconds) * _MILLI)
        self._open.set((cycle.snapshot_seconds + record.timings.get("open", 0.0)) * _MILLI)
        self._close.set(record.timings.get("close", 0.0) * _MILLI)
        for plugin, moment, seconds in plugin_times(record):
            self._plugins.labels(plugin, moment).set(seconds * _MILLI)
        for action, seconds in action_times(cycle):
            self._actions.labels(action).set(seconds * _MILLI)
        cluster = core.cache.cluster
        for bind in record.binds:
            task = cluster.task(bind.uid)
            if task is not None:
                self._tasks.observe(max(0.0, cycle.now - task.created) * _MILLI)
        self._count_jobs(record)
        for eviction in record.evictions:
            row = cluster.jobs.rows.of.get(eviction.job)
            self._count_eviction(eviction, None if row is None else cluster.jobs.specs[row], core.cache.settings.node_pool_key)

    def _count_jobs(self, record: CycleRecord) -> None:
        """A job that gets room by evictions counts for the action that evicts, any other job that is bound for `allocate`."""
        by_eviction = evictions_by_purpose(record)
        served = {job for _, job in by_eviction}
        for action, job in by_eviction:
            if job:
                self._scheduled.labels(action).inc()
            if action == "preempt":
                self._attempts.inc()
        bound = {bind.job for bind in record.binds} - served
        if bound:
            self._scheduled.labels("allocate").inc(len(bound))

    def _count_eviction(self, eviction: Eviction, spec: JobSpec | None, pool_key: str) -> None:
        if spec is None or (eviction.job not in self._groups and len(self._groups) >= MOST_JOBS):
            self._evicted.labels(OTHERS, "", "", "", eviction.action).inc()
            return
        self._groups.add(eviction.job)
        pool = spec.labels.get(pool_key, "") if pool_key else ""
        self._evicted.labels(spec.name, spec.namespace, spec.uid, pool or _DEFAULT_POOL, eviction.action).inc()

    def bound(self, task: TaskSpec, waited: float, binding: float) -> None:
        self._binds.observe(binding * _MILLI)

    def refresh(self, core: LiveCore) -> None:
        for gauge in (*self._fair_share.values(), *self._usage.values()):
            gauge.clear()
        cluster = core.cache.cluster
        for (_, queue), usage in sorted(cluster.objects.get(QUEUE_USAGE, {}).items())[:MOST_QUEUES]:
            for name, _, _ in _RESOURCES:
                self._usage[name].labels(*self._labels(core, queue)).set(usage.get(name, 0.0))
        if core.last_cycle is None:
            return
        self._show_budgets(core.last_cycle.policy)
        for label, figures in bounded(core.last_cycle.record.queues):
            if figures.fair_share is not None:
                labels = self._labels(core, label)
                for name, _, unit in _RESOURCES:
                    self._fair_share[name].labels(*labels).inc(_amount(figures.fair_share, name) / unit)

    def _show_budgets(self, policy: Policy) -> None:
        budgets = SearchBudgets.of(policy)
        self._action_budget.clear()
        for action in policy.actions:
            if action in SEARCHING:
                self._action_budget.labels(action).set(budgets.action(action))
        self._job_budget.set(budgets.job)
        for generator in GENERATORS:
            self._generator_budget.labels(generator).set(budgets.generator(generator))

    @staticmethod
    def _labels(core: LiveCore, queue: str) -> tuple[str, str, str]:
        """KAI shows a queue by its display name, where it has one."""
        spec = core.cache.cluster.queues.get(queue)
        display = "" if spec is None else spec.display_name
        return display or queue, queue, display


def _amount(amounts: Mapping[str, float], name: str) -> float:
    """All kinds of GPUs together count as `gpu`.

    >>> _amount({"cpu": 2000.0, "nvidia.com/gpu": 1000.0}, "gpu")
    1000.0
    """
    if name == "gpu":
        return sum(amount for resource, amount in amounts.items() if resource.endswith("/gpu"))
    return amounts.get(name, 0.0)
