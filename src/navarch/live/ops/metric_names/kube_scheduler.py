"""Metrics under the names of kube-scheduler (subsystem `scheduler`).

kube-scheduler tries one pod after the other. A cycle here tries many at once, so the attempt of a pod lasts as long as the cycle that
decided about it, and for a pod that was bound until its binding.
"""

from __future__ import annotations

from collections import Counter as Tally
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from navarch.engine.record import CycleRecord
from navarch.live.ops.metric_names.followed_metrics import FollowedMetrics, evictions_by_purpose, exponential
from navarch.model.cluster import Cluster
from navarch.model.spec import TaskSpec
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.live.core import LiveCore
    from navarch.live.cycle import Cycle

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
WAITING: Final = "waiting_on_preemption"
ERROR: Final = "error"
_GATED: Final = "SchedulingGated"
_MOST_COUNTED: Final = 15
"""Attempts of a pod from this number on share one label, as in kube-scheduler."""


class _Attempt(Struct, frozen=True):
    number: int
    cycle_seconds: float


class KubeSchedulerMetrics(FollowedMetrics):
    def __init__(self, registry: CollectorRegistry) -> None:
        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"scheduler_{name}", text, labels, buckets=buckets, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"scheduler_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"scheduler_{name}", text, labels, registry=registry)

        seconds, outcome = exponential(0.001, 2, 15), ("result", "profile")
        self._attempts = counter("schedule_attempts", "Attempts to schedule pods, by result.", *outcome)
        self._attempt_seconds = histogram(
            "scheduling_attempt_duration_seconds", "The cycle of an attempt, and the binding.", seconds, *outcome
        )
        self._algorithm = histogram("scheduling_algorithm_duration_seconds", "From snapshot to decisions.", seconds)
        self._victims = histogram("preemption_victims", "Pods evicted for one job.", exponential(1, 2, 7))
        self._preemptions = counter("preemption_attempts", "Jobs for which pods were evicted.")
        self._pending = gauge("pending_pods", "Pods without a node, by the state of their job.", "queue")
        self._entities = gauge("queued_entities", "Pods without a group and groups that wait, by state.", "queue", "type")
        self._sli = histogram(
            "pod_scheduling_sli_duration_seconds", "From a pod's creation to its binding.", exponential(0.01, 2, 20), "attempts"
        )
        self._tries = histogram("pod_scheduling_attempts", "Attempts until a pod was bound.", exponential(1, 2, 5))
        self._size = gauge("cache_size", "Nodes, pods and assumed pods in the cache.", "type")
        self._group_attempts = counter("podgroup_schedule_attempts", "Attempts to schedule groups, by result.", *outcome)
        self._group_seconds = histogram("podgroup_scheduling_attempt_duration_seconds", "The cycle of an attempt.", seconds, *outcome)
        self._group_algorithm = histogram(
            "podgroup_scheduling_algorithm_duration_seconds", "From snapshot to decisions, once a group.", seconds
        )
        self._decided: dict[str, _Attempt] = {}
        """UID of a pod whose binding is under way -> the attempt that decided it."""

    def cycle(self, cycle: Cycle, commit_seconds: float, core: LiveCore) -> None:
        record, cluster = cycle.record, core.cache.cluster
        if record.tried:
            self._algorithm.observe(cycle.seconds)
        if len(self._decided) > 2 * len(core.assumed.binds) + 1000:  # bindings that a former lead decided and never ended
            self._decided = {uid: each for uid, each in self._decided.items() if uid in core.assumed.binds}
        for bind in record.binds:
            self._decided[bind.uid] = _Attempt(core.queue.failed_attempts(bind.job) + 1, cycle.seconds)
        for (_, job), victims in evictions_by_purpose(record).items():
            if job:
                self._preemptions.inc()
                self._victims.observe(len(victims))
        self._count_refusals(record, cluster, cycle.seconds)
        self._count_groups(record, cluster, cycle.seconds)

    def _count_refusals(self, record: CycleRecord, cluster: Cluster, seconds: float) -> None:
        failed = {failure.job for failure in record.failures}
        found: Tally[tuple[str, str]] = Tally()
        for decision in record.jobs:
            result = ERROR if decision.job in failed else UNSCHEDULABLE
            for refusal in decision.refusals:
                if refusal.reason != _GATED:
                    found[result, _profile(cluster, refusal.uid)] += 1
        for labels, count in sorted(found.items()):
            self._attempts.labels(*labels).inc(count)
            observe = self._attempt_seconds.labels(*labels).observe
            for _ in range(count):
                observe(seconds)

    def _count_groups(self, record: CycleRecord, cluster: Cluster, seconds: float) -> None:
        """Of a group that is bound in several cycles each counts as an attempt, as in kube-scheduler."""
        failed = {failure.job for failure in record.failures}
        bound = {bind.job: bind.uid for bind in record.binds}
        promised = {each.job for each in record.nominations if each.evicting}
        for decision in record.jobs:
            if decision.shadow:
                continue
            refused = [each for each in decision.refusals if each.reason != _GATED]
            if decision.job in bound:
                result = SCHEDULED
            elif not refused:
                continue
            elif decision.job in failed:
                result = ERROR
            else:
                result = WAITING if decision.job in promised else UNSCHEDULABLE
            labels = (result, _profile(cluster, bound.get(decision.job) or refused[0].uid))
            self._group_attempts.labels(*labels).inc()
            self._group_seconds.labels(*labels).observe(seconds)
            self._group_algorithm.observe(seconds)

    def bound(self, task: TaskSpec, waited: float, binding: float) -> None:
        attempt = self._decided.pop(task.uid, _Attempt(1, 0.0))
        self._attempts.labels(SCHEDULED, task.scheduler_name).inc()
        self._attempt_seconds.labels(SCHEDULED, task.scheduler_name).observe(attempt.cycle_seconds + binding)
        self._sli.labels(f"{attempt.number}" if attempt.number < _MOST_COUNTED else f"{_MOST_COUNTED}+").observe(waited)
        self._tries.observe(attempt.number)

    def refresh(self, core: LiveCore) -> None:
        cluster, jobs, tasks = core.cache.cluster, core.cache.cluster.jobs, core.cache.cluster.tasks
        top = jobs.rows.top
        pending = jobs.counts[:top, TaskStatus.PENDING]
        waits = tasks.alive & (tasks.status == TaskStatus.PENDING) & (tasks.job >= 0) & tasks.gated
        gated = np.bincount(tasks.job[waits], minlength=top)[:top] if waits.any() else np.zeros(top, dtype=np.int64)
        free = pending - gated
        held, backing_off = np.zeros(top, dtype=bool), np.zeros(top, dtype=bool)
        for mark, names in ((held, core.queue.inactive()), (backing_off, core.queue.backing_off())):
            mark[[row for name in names if (row := jobs.rows.of.get(name)) is not None and row < top]] = True
        grouped = np.array([spec is not None and not spec.shadow for spec in jobs.specs[:top]], dtype=bool)
        states = {"active": ~held, "backoff": backing_off, "unschedulable": held & ~backing_off}
        for state, rows in states.items():
            self._pending.labels(state).set(int(free[rows].sum()))
            self._entities.labels(state, "pod").set(int((free[rows & ~grouped] > 0).sum()))
            self._entities.labels(state, "podgroup").set(int((free[rows & grouped] > 0).sum()))
        only_gated = (gated > 0) & (free <= 0)
        self._pending.labels("gated").set(int(gated.sum()))
        self._entities.labels("gated", "pod").set(int((only_gated & ~grouped).sum()))
        self._entities.labels("gated", "podgroup").set(int((only_gated & grouped).sum()))
        self._size.labels("nodes").set(int(cluster.nodes.alive.sum()))
        self._size.labels("pods").set(int((tasks.alive & (tasks.node >= 0)).sum()))
        self._size.labels("assumed_pods").set(len(core.assumed.binds))


def _profile(cluster: Cluster, uid: str) -> str:
    task = cluster.task(uid)
    return "" if task is None else task.scheduler_name
