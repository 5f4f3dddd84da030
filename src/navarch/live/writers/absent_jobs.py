"""Reasons for pods that no cycle sees: their group does not exist, or the queue of their group does not.

Such jobs are not in a session, so no decision mentions them. Once a second a few vector operations over the job table find them (150
us for 10,000 jobs). Their pods and groups get the reason, and again every ten seconds at most. A pod with scheduling gates has its
own condition and is skipped. A pod whose group is in another node pool is left to the scheduler of that pool. When the missing
object is created, the next cycle places or refuses the pods, and its message replaces this one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from navarch.engine.pod_conditions import pod_reason
from navarch.engine.record import JobDecision
from navarch.ingest.absent_jobs import absent
from navarch.live.cache.assumed_pods import AssumedStatus
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.group_status import GroupStatuses
from navarch.live.writers.pod_status import MESSAGE_INTERVAL, PodStatuses
from navarch.model.cluster import Cluster
from navarch.model.spec import Condition, JobSpec, TaskSpec
from navarch.model.status import TaskStatus

_WITH_CONDITIONS = ("kube-batch", "volcano")
"""Dialects whose conditions are those of the engine. The others build theirs from the reasons of the decision."""

_QUIET = 2.0
"""Seconds in which nothing is said of pods that wait for KAI's pod grouper: it usually needs less than one."""


class AbsentJobs:
    def __init__(self, cache: ClusterCache, pods: PodStatuses, groups: GroupStatuses, clock: Callable[[], float]) -> None:
        self._cache = cache
        self._pods = pods
        self._groups = groups
        self._clock = clock
        self._told: dict[str, tuple[str, float]] = {}
        """Job -> the last message, and when it was written."""

    def report(self, now: float) -> None:
        """`now` is the event loop's time; `clock` is seconds since the epoch, for the API."""
        cluster = self._cache.cluster
        found = {}
        for row in absent_rows(cluster):
            key, spec = cluster.jobs.keys[row], cluster.jobs.specs[row]
            if self._cache.is_foreign_group(key):
                continue
            required, since = not self._cache.settings.shadow_groups, self._cache.shadows.awaiting.get(key)
            if since is not None and self._clock() < since + _QUIET:
                continue
            decision = absent(key, spec, cluster.jobs.counts[row].tolist(), group_required=required, awaited_since=since)
            reason, text = pod_reason(decision.reasons[0].code), decision.reasons[0].message
            before, at = self._told.get(key, ("", 0.0))
            if before == text and now - at < MESSAGE_INTERVAL:
                found[key] = (text, at)
                continue
            found[key] = (text, now)
            if spec is not None and not spec.shadow:
                self._tell_group(spec, decision, now)
            marked = spec is None or spec.mark_unschedulable
            for task in [cluster.tasks.specs[each] for each in cluster.jobs.tasks[row]] if marked else ():
                if task is not None and task.status == TaskStatus.PENDING and not task.gates:
                    self._pods.refuse(task, reason, text, now, at_once=_says_otherwise(task, reason), news=text != before)
        self._told = found

    def _tell_group(self, spec: JobSpec, decision: JobDecision, now: float) -> None:
        if spec.dialect in _WITH_CONDITIONS:
            decision = replace(decision, phase=spec.phase or "Pending", conditions=self._conditions(spec, decision))
            if decision.conditions != spec.conditions or decision.phase != spec.phase:
                self._cache.assumed.statuses[spec.key] = AssumedStatus(spec.uid, decision.phase, decision.conditions)
                self._cache.put_status(replace(spec, phase=decision.phase, conditions=decision.conditions))
        self._groups.mark(spec.key, now, decision)

    def _conditions(self, spec: JobSpec, decision: JobDecision) -> tuple[Condition, ...]:
        """Its conditions, with ours instead of the one of the same type; unchanged if they already say it."""
        reason = decision.reasons[0]
        before = next((c for c in spec.conditions if c.type == "Unschedulable"), None)
        if before is not None and (before.status, before.reason, before.message) == ("True", reason.code, reason.message):
            return spec.conditions
        since = before.last_transition if before is not None and before.status == "True" else self._clock()
        fresh = Condition("Unschedulable", "True", reason.code, reason.message, last_transition=since)
        return (*(c for c in spec.conditions if c is not before), fresh)


def _says_otherwise(task: TaskSpec, reason: str) -> bool:
    """Whether the pod shows another reason. It is replaced without a further delay: an autoscaler might buy a node by it."""
    return any((kind, value) == ("PodScheduled", "False") and said != reason for kind, value, said, _ in task.conditions)


def absent_rows(cluster: Cluster) -> list[int]:
    """Rows of the jobs with pending pods that have no group, or name a queue that does not exist."""
    jobs = cluster.jobs
    known = np.zeros(len(jobs.queue_names) + 1, dtype=bool)  # the last one is for -1: there is no spec
    for name, number in jobs.queue_names.items():
        known[number] = name in cluster.queues
    rows: list[int] = np.flatnonzero((jobs.counts[:, TaskStatus.PENDING] > 0) & ~known[jobs.queue]).tolist()
    return rows
