"""Pods beyond the minimum of a gang that just starts wait a moment for the gangs that come together with it.

A job gets its minimum at once. If it got all its pods in the same cycle, a job that comes some milliseconds later would find its queue
full, and could wait for hours for a minimum that the policy puts first. So while jobs of a queue start, only their minimums are bound.
When none has started for `settle` seconds, one cycle sees them all and divides what is left in the order of the policy. No job's pods
wait longer than `MOST` settling times. Pods without a group start alone and do not wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from navarch.engine.record import Bind, CycleRecord
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.model.spec import JobSpec, TaskSpec
from navarch.model.status import TaskStatus

SURPLUS_SETTLE = 0.25
MOST = 4
_PLACED = frozenset({TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.ALLOCATED, TaskStatus.SUCCEEDED})


class _Start(Struct, frozen=True):
    queue: str
    at: float


class Surplus:
    """`settle`: seconds; 0: no pod waits."""

    def __init__(self, cache: ClusterCache, settle: float) -> None:
        self._cache = cache
        self._settle = settle
        self._started: dict[str, _Start] = {}
        """Gangs that began to start a moment ago."""
        self._due: float | None = None

    def withheld(self, record: CycleRecord, now: float) -> frozenset[str]:
        """The pods among those that the cycle binds that wait."""
        if not self._settle:
            return frozenset()
        # A job is forgotten when no other can start in time for it any more.
        self._started = {job: start for job, start in self._started.items() if now < start.at + MOST * self._settle}
        binds: dict[str, list[Bind]] = {}
        for bind in record.binds:
            binds.setdefault(bind.job, []).append(bind)
        surplus: dict[str, list[str]] = {}
        for job, own in binds.items():
            spec = self._cache.cluster.job(job)
            if spec is None or spec.shadow:
                continue
            there = [task for task in self._members(job) if task.status in _PLACED]
            if job not in self._started and there:
                continue
            beyond = self._beyond_minimum(spec, own, there)
            if beyond:
                surplus[job] = beyond
                self._started.setdefault(job, _Start(spec.queue, now))
        latest: dict[str, float] = {}
        for start in self._started.values():
            latest[start.queue] = max(start.at, latest.get(start.queue, start.at))
        ends = {job: self._end(self._started[job], latest) for job in surplus}
        self._due = min((end for end in ends.values() if end > now), default=None)
        return frozenset(uid for job, end in ends.items() if end > now for uid in surplus[job])

    def is_due(self, now: float) -> bool:
        """Whether pods have waited long enough, so that a cycle is to be run. Says so once."""
        if self._due is None or now < self._due:
            return False
        self._due = None
        return True

    def _end(self, start: _Start, latest: Mapping[str, float]) -> float:
        """`latest`: when a gang of each queue started last."""
        return min(latest[start.queue] + self._settle, start.at + MOST * self._settle)

    def _members(self, job: str) -> list[TaskSpec]:
        cluster = self._cache.cluster
        row = cluster.jobs.rows.of.get(job)
        rows = () if row is None else cluster.jobs.tasks[row]
        return [spec for task in rows if (spec := cluster.tasks.specs[task]) is not None]

    def _beyond_minimum(self, spec: JobSpec, binds: list[Bind], there: list[TaskSpec]) -> list[str]:
        """Pods that the gang does not need beside those that are there, in the order in which the cycle placed them."""
        parts = _minimums(spec)
        parts.subtract(_part(task) for task in there)
        needed: list[str] = []
        rest: list[str] = []
        for bind in binds:
            task = self._cache.cluster.task(bind.uid)
            part = _part(task) if task is not None else ""
            (needed if parts[part] > 0 else rest).append(bind.uid)
            parts[part] -= 1
        short = max(0, spec.min_member - len(there) - len(needed))
        return rest[short:]


def _minimums(spec: JobSpec) -> Counter[str]:
    """Of each sub-group or role."""
    return Counter({part.name: part.min_member for part in spec.sub_groups} or dict(spec.roles))


def _part(task: TaskSpec) -> str:
    return task.sub_group or task.role
