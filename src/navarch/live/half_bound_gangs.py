"""Gangs whose binding stopped half-way: found, waited for, and when hopeless released.

A binding cannot be taken back, so a gang of which some members are bound and others cannot be is given up by evicting the bound
ones: better to start again as a whole than to hold nodes for nothing. The rest is retried all the while until then.

Whether a gang looks like that is read from its pods alone, so a scheduler that was killed in the midst of it is replaced by one
that sees it: fewer members than the minimum stand on nodes, and together with those that already waited when the first of
them was bound there would be enough. A gang that ran whole and lost a member mostly does not look like that (the one that waits is
younger than the binding of the others). One that has more pods than it needs, some of which never found room, does, as soon as it
loses a pod or somebody raises its minimum: that it was whole is remembered (`whole`), and it is left to the policy. Under a policy
that knows no gangs a group that stands in part is as it should be.

The time runs from when the gang is seen to stand in part, also while a volume or a device is being prepared for a member: that is
waited for beyond the time-out only as long as it gets on.
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
    """`release(job, tasks)` is called for a gang that stayed half bound for `timeout` seconds of the event loop. `applies` says
    whether the policy in force starts groups as a whole. `prepared(job)`: when what is being prepared for its members last got on,
    None if nothing is (see `Preparations.got_on`)."""

    def __init__(
        self,
        cache: ClusterCache,
        release: Callable[[str, list[TaskSpec]], None],
        timeout: float,
        applies: Callable[[], bool] = lambda: True,
        prepared: Callable[[str], float | None] = lambda job: None,
        whole: GangHistory | None = None,
    ) -> None:
        self._cache = cache
        self._release = release
        self._timeout = timeout
        self._applies = applies
        self._prepared = prepared
        self._whole = whole or GangHistory(cache)
        self._since: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def begin(self, now: float) -> None:
        """We lead from now on. Every gang's time begins anew: who led meanwhile may have completed it and begun it again. Looked at
        before anything is written, what groups say of themselves is what was true when somebody last led."""
        self._since = {}
        self._whole.forget_all()
        self._whole.asks_groups = True
        self.look(now)
        self._whole.asks_groups = False

    def starts(self, job: str) -> bool:
        """Whether this is a gang that does not stand yet."""
        jobs = self._cache.cluster.jobs
        row = jobs.rows.of.get(job)
        if row is None or not self._applies():
            return False
        return 1 < int(jobs.min_member[row]) > int(jobs.counts[row, _SEEN].sum())

    def look(self, now: float) -> None:
        """Cost: a few array operations over all jobs, a step for each that has pods on nodes and others that wait, and the pods of
        those that look half bound.

        The time runs until the gang is seen to be whole, not merely tried again: a member that is refused each time would
        otherwise start it anew with every attempt. Nothing is released while a member's binding is on its way, unless what is
        prepared for it does not get on."""
        if not self._applies():
            self._since = {}
            self._whole.forget_all()
            return
        jobs = self._cache.cluster.jobs
        top = jobs.rows.top
        counts, minimum = jobs.counts[:top], jobs.min_member[:top]
        extra = jobs.best_effort_pending[:top]
        placed, pending = counts[:, _PLACED].any(axis=1), counts[:, TaskStatus.PENDING] > 0
        begun = placed & (counts[:, _SEEN].sum(axis=1) + extra < minimum)
        waits = (counts[:, _READY].sum(axis=1) + extra < minimum) & pending
        for row in np.flatnonzero(placed & pending & ~waits).tolist():
            spec = jobs.specs[row]
            if spec is not None and spec.roles:
                begun[row] |= not self._has_its_roles(row, spec, _SEEN)
                waits[row] |= not self._has_its_roles(row, spec, _READY)
        lacking = np.flatnonzero(begun).tolist()
        self._whole.see(
            whole={jobs.keys[row] for row in np.flatnonzero(placed & pending & ~begun).tolist() if jobs.specs[row] is not None},
            lacking={jobs.keys[row] for row in lacking},
        )
        since: dict[str, float] = {}
        for row in lacking:
            key = jobs.keys[row]
            known, got_on = key in self._since, self._prepared(key)
            stranded = self._stranded(row, known) if jobs.specs[row] is not None and (waits[row] or got_on is not None) else []
            if not known and (not stranded or self._whole.was(key, stranded)):
                continue
            since[key] = self._since.get(key, now)
            stuck = waits[row] or (got_on is not None and now - got_on >= self._timeout)
            if stranded and stuck and now - since[key] >= self._timeout:
                since[key] = now  # a budget may keep it where it is
                self._release(key, stranded)
        self._since = since

    def _stranded(self, row: int, known: bool) -> list[TaskSpec]:
        """The bound members of a gang that never became whole, though it could have been. `known`: it was seen half bound and not
        whole since, so whoever waits now, made anew perhaps, waits for the same."""
        jobs, tasks = self._cache.cluster.jobs, self._cache.cluster.tasks
        members = [spec for task in jobs.tasks[row] if (spec := tasks.specs[task]) is not None]
        bound = [spec for spec in members if spec.status in _ON_NODES]
        first = min((bound_at(spec) for spec in bound), default=0.0)
        coming = [spec for spec in members if spec.status in _COMING and (known or spec.created <= first)]
        ended = [spec for spec in members if spec.status == TaskStatus.SUCCEEDED]
        job, there = jobs.specs[row], [*bound, *coming, *ended]
        enough = len(there) >= int(jobs.min_member[row]) and (job is None or _fill_roles(job, there))
        return bound if enough else []

    def _has_its_roles(self, row: int, job: JobSpec, statuses: Collection[int]) -> bool:
        cluster = self._cache.cluster
        tasks, best_effort = cluster.tasks, cluster.shapes.best_effort
        there = (
            spec
            for task in cluster.jobs.tasks[row]
            if (spec := tasks.specs[task]) is not None
            and (int(spec.status) in statuses or (spec.status == TaskStatus.PENDING and best_effort[tasks.shape[task]]))
        )
        return _fill_roles(job, there)


def starts_gangs(policy: Policy, registry: Registry) -> bool:
    """Whether something in the policy makes a group start as a whole: a plugin that is asked when a job is ready, or an action."""
    asked = (points for tier in registry.select_plugins(policy).tiers for _, _, points in tier)
    actions = (registry.action(name, policy.dialect) for name in policy.actions)
    return any(JobReady in points for points in asked) or any(action is not None and action.starts_gangs for action in actions)


def _fill_roles(job: JobSpec, tasks: Iterable[TaskSpec]) -> bool:
    """Minimums of roles count where the group's own covers them all, as in a cycle."""
    if not job.roles or job.min_member < sum(minimum for _, minimum in job.roles):
        return True
    there = Counter(task.role for task in tasks)
    return all(there[role] >= minimum for role, minimum in job.roles)
