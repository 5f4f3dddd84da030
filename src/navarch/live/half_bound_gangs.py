"""Gangs whose binding stopped half-way: found, retried, and released after a time-out.

A binding cannot be taken back. If some members of a gang are bound and others cannot be, the bound ones are evicted, so that the gang
can start again as a whole and holds no nodes in vain. Until then the missing members are retried.

The state is read from the pods alone, so a scheduler that starts after a crash finds it too. A gang is half bound if fewer members
than the minimum are on nodes, and there would be enough together with the members that were already pending when the first was bound.
A complete gang that lost a member usually does not look like that: the pending replacement is younger than the binding of the others.
A gang with more pods than its minimum does, as soon as it loses a pod or its minimum is raised. `gang_history` recognises it. Under a
policy that knows no gangs no group is half bound.

A gang whose start this scheduler has seen, and that was not complete since, is half bound even if a waiting member is deleted and too
few members are left. Its pods are marked while it is half bound, so a scheduler that starts later knows it too (`gang_history`).

The time-out starts when the gang is first seen half bound, also while volumes or devices are being prepared for a member. A
preparation is waited for beyond the time-out only while it advances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable

import numpy as np

from navarch.engine.points.protocols import JobReady
from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.gang_history import GangHistory, bound_at
from navarch.model.spec import JobSpec, TaskSpec
from navarch.model.status import TaskStatus

_PLACED = [int(s) for s in (TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)]
_ON_NODES = (TaskStatus.BOUND, TaskStatus.RUNNING)
_COMING = (TaskStatus.PENDING, TaskStatus.BINDING)
_SEEN = [int(s) for s in (TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED)]
_READY = [*_PLACED, int(TaskStatus.ALLOCATED), int(TaskStatus.SUCCEEDED)]


class HalfBoundGangs:
    """`release(job, tasks, now)` is called for a gang that stayed half bound for `timeout` seconds. `applies()`: whether the policy
    starts groups as gangs. `prepared_at(job)`: when the preparation for its members last advanced; None: nothing is being prepared
    (see `Preparations.advanced_at`)."""

    def __init__(
        self,
        cache: ClusterCache,
        release: Callable[[str, list[TaskSpec], float], None],
        timeout: float,
        applies: Callable[[], bool] = lambda: True,
        prepared_at: Callable[[str], float | None] = lambda job: None,
        history: GangHistory | None = None,
    ) -> None:
        self._cache = cache
        self._release = release
        self._timeout = timeout
        self._applies = applies
        self._prepared_at = prepared_at
        self._history = history or GangHistory(cache)
        self._since: dict[str, float] = {}
        self._starting: dict[str, set[str]] = {}
        """Gangs that were bound from nothing and were not complete since -> uids of members whose binding we saw accepted."""

    def __len__(self) -> int:
        return len(self._since)

    def start_leading(self, now: float) -> None:
        """Every time-out starts again: another leader may have completed a gang and started it again. Before we write anything,
        group statuses show what was true when a scheduler last led."""
        self._since, self._starting = {}, {}
        self._history.forget_all()
        self._history.trust_group_status = True
        self._starting = {job: set() for job in sorted(self._history.read_marks())}
        self.check(now)
        self._history.trust_group_status = False

    def bind(self, jobs: Iterable[str]) -> None:
        """Pods of these jobs are about to be bound."""
        table = self._cache.cluster.jobs
        for job in jobs:
            row = table.rows.of.get(job)
            if row is not None and table.min_member[row] > 1 and not table.counts[row, _PLACED].any():
                self._starting[job] = set()

    def bound(self, job: str, uid: str) -> None:
        """The API server accepted the binding of a member. The gang is complete once it has accepted enough."""
        accepted = self._starting.get(job)
        if accepted is None:
            return
        accepted.add(uid)
        jobs, task = self._cache.cluster.jobs, self._cache.cluster.task
        row = jobs.rows.of.get(job)
        spec = jobs.specs[row] if row is not None else None
        if spec is not None and len(accepted) >= spec.min_member:
            there = [each for each in map(task, sorted(accepted)) if each is not None and each.status != TaskStatus.FAILED]
            if len(there) >= spec.min_member and _fills_minimums(spec, there):
                del self._starting[job]

    def is_starting(self, job: str) -> bool:
        """Whether this is a gang that is not complete yet."""
        jobs = self._cache.cluster.jobs
        row = jobs.rows.of.get(job)
        if row is None or not self._applies():
            return False
        return 1 < int(jobs.min_member[row]) > int(jobs.counts[row, _SEEN].sum())

    def check(self, now: float) -> None:
        """Cost: a few array operations over all jobs, a step for each job with pods on nodes and pending pods, and the pods of
        gangs that look half bound.

        The time-out runs until the gang is complete. A retry does not restart it: a member whose binding is refused each time would
        restart it with every attempt. Nothing is released while a member's binding is in flight, unless its preparation is stuck."""
        if not self._applies():
            self._since, self._starting = {}, {}
            self._history.forget_all()
            return
        jobs = self._cache.cluster.jobs
        top = jobs.rows.top
        counts, minimum = jobs.counts[:top], jobs.min_member[:top]
        extra = jobs.best_effort_pending[:top]
        placed, pending = counts[:, _PLACED].any(axis=1), counts[:, TaskStatus.PENDING] > 0
        begun = placed & (counts[:, _SEEN].sum(axis=1) + extra < minimum)
        short = counts[:, _READY].sum(axis=1) + extra < minimum
        known = np.zeros(top, dtype=bool)
        known[[jobs.rows.of[job] for job in {*self._since, *self._starting} if job in jobs.rows.of]] = True
        for row in np.flatnonzero(placed & (pending | known) & ~short).tolist():
            spec = jobs.specs[row]
            if spec is not None and spec.roles:
                begun[row] |= not self._fills_roles(row, spec, _SEEN)
                short[row] |= not self._fills_roles(row, spec, _READY)
        waits = short & (pending | known)
        lacking = np.flatnonzero(begun).tolist()
        self._history.observe(
            complete={jobs.keys[row] for row in np.flatnonzero(placed & pending & ~begun).tolist() if jobs.specs[row] is not None},
            incomplete={jobs.keys[row] for row in lacking},
        )
        leaving = {jobs.keys[row] for row in np.flatnonzero(known & (counts[:, TaskStatus.RELEASING] > 0)).tolist()}
        """Gangs that are being released. An eviction may turn out not to have happened, and then the gang is half bound still."""
        since = {job: started for job, started in self._since.items() if job in leaving}
        for row in lacking:
            key, advanced = jobs.keys[row], self._prepared_at(jobs.keys[row])
            candidate = jobs.specs[row] is not None and (waits[row] or advanced is not None)
            stranded = self._stranded(row, bool(known[row])) if candidate else []
            if not known[row] and (not stranded or self._history.was_complete(key, stranded)):
                continue
            since[key] = self._since.get(key, now)
            if waits[row]:
                self._history.mark_incomplete(key, stranded)
            stuck = waits[row] or (advanced is not None and now - advanced >= self._timeout)
            if stranded and stuck and now - since[key] >= self._timeout:
                since[key] = now  # a disruption budget may refuse the eviction
                self._release(key, stranded, now)
        self._since = since
        unfinished = leaving.union(jobs.keys[row] for row in lacking)
        self._starting = {job: accepted for job, accepted in self._starting.items() if job in unfinished}

    def _stranded(self, row: int, known: bool) -> list[TaskSpec]:
        """The bound members of a gang that was never complete, though it could have been. `known`: its start was seen, or it was
        seen half bound, and it was not complete since. Then members that are gone make no difference."""
        jobs, tasks = self._cache.cluster.jobs, self._cache.cluster.tasks
        members = [spec for task in jobs.tasks[row] if (spec := tasks.specs[task]) is not None]
        bound = [spec for spec in members if spec.status in _ON_NODES]
        if known:
            return bound
        first = min((bound_at(spec) for spec in bound), default=0.0)
        coming = [spec for spec in members if spec.status in _COMING and spec.created <= first]
        ended = [spec for spec in members if spec.status == TaskStatus.SUCCEEDED]
        job, there = jobs.specs[row], [*bound, *coming, *ended]
        enough = len(there) >= int(jobs.min_member[row]) and (job is None or _fills_minimums(job, there))
        return bound if enough else []

    def _fills_roles(self, row: int, job: JobSpec, statuses: Collection[int]) -> bool:
        cluster = self._cache.cluster
        tasks, best_effort = cluster.tasks, cluster.shapes.best_effort
        present = (
            spec
            for task in cluster.jobs.tasks[row]
            if (spec := tasks.specs[task]) is not None
            and (int(spec.status) in statuses or (spec.status == TaskStatus.PENDING and best_effort[tasks.shape[task]]))
        )
        return _fills_minimums(job, present)


def starts_gangs(policy: Policy, registry: Registry) -> bool:
    """Whether the policy starts groups as gangs: one of its plugins decides when a job is ready, or one of its actions does."""
    asked = (points for tier in registry.select_plugins(policy).tiers for _, _, points in tier)
    actions = (registry.action(name, policy.dialect) for name in policy.actions)
    return any(JobReady in points for points in asked) or any(action is not None and action.starts_gangs for action in actions)


def _fills_minimums(job: JobSpec, tasks: Iterable[TaskSpec]) -> bool:
    """Minimums of roles count only if the minimum of the group covers all of them, as in a cycle."""
    if not job.roles or job.min_member < sum(minimum for _, minimum in job.roles):
        return True
    there = Counter(task.role for task in tasks)
    return all(there[role] >= minimum for role, minimum in job.roles)
