"""Gangs whose binding stopped half-way: found, waited for, and when hopeless released.

A binding cannot be taken back, so a gang of which some members are bound and others cannot be is given up by evicting the bound
ones: better to start again as a whole than to hold nodes for nothing. The rest is retried all the while until then.

Whether a gang is in that state is read from its pods alone, so a scheduler that was killed in the midst of it is replaced by one
that sees it: fewer members than the minimum stand on nodes, and together with those that already waited when the first of
them was bound there would be enough. A gang that ran whole and lost a member does not look like that (the one that waits is
younger than the binding of the others), and is left to the policy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from navarch.cache.mirror import Mirror
from navarch.model.spec import TaskSpec
from navarch.model.status import TaskStatus

_PLACED = [int(s) for s in (TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)]
_SEEN = [int(s) for s in (TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED)]
_READY = [*_PLACED, int(TaskStatus.ALLOCATED), int(TaskStatus.SUCCEEDED)]


class HalfBoundGangs:
    """`release(job, tasks)` is called for a gang that stayed half bound for `timeout` seconds of the event loop."""

    def __init__(self, mirror: Mirror, release: Callable[[str, list[TaskSpec]], None], timeout: float) -> None:
        self._mirror = mirror
        self._release = release
        self._timeout = timeout
        self._since: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def look(self, now: float) -> None:
        """Cost: a few array operations over all jobs, and the pods of those that are half bound.

        The time runs until the gang is seen to be whole, not merely tried again: a member that is refused each time would
        otherwise start it anew with every attempt. Nothing is released while a member's binding is on its way."""
        jobs = self._mirror.cluster.jobs
        top = jobs.rows.top
        counts, minimum = jobs.counts[:top], jobs.min_member[:top]
        extra = jobs.best_effort_pending[:top]
        begun = counts[:, _PLACED].any(axis=1) & (counts[:, _SEEN].sum(axis=1) + extra < minimum)
        waits = (counts[:, _READY].sum(axis=1) + extra < minimum) & (counts[:, TaskStatus.PENDING] > 0)
        since: dict[str, float] = {}
        for row in np.flatnonzero(begun).tolist():
            key = jobs.keys[row]
            stranded = self._stranded(row) if waits[row] and jobs.specs[row] is not None else []
            if not stranded and key not in self._since:
                continue
            since[key] = self._since.get(key, now)
            if stranded and now - since[key] >= self._timeout:
                del since[key]
                self._release(key, stranded)
        self._since = since

    def _stranded(self, row: int) -> list[TaskSpec]:
        """The bound members of a gang that never became whole."""
        jobs, tasks = self._mirror.cluster.jobs, self._mirror.cluster.tasks
        members = [spec for task in jobs.tasks[row] if (spec := tasks.specs[task]) is not None]
        bound = [spec for spec in members if int(spec.status) in _PLACED]
        first = min((_bound_at(spec) for spec in bound), default=0.0)
        waited = sum(1 for spec in members if spec.status == TaskStatus.PENDING and spec.created <= first)
        ended = sum(1 for spec in members if spec.status == TaskStatus.SUCCEEDED)
        return bound if len(bound) + waited + ended >= int(jobs.min_member[row]) else []


def _bound_at(task: TaskSpec) -> float:
    """When the API server took the binding; a binding that is on its way counts as later than everything."""
    if task.status == TaskStatus.BINDING:
        return float("inf")
    return next((since for kind, value, _, since in task.conditions if (kind, value) == ("PodScheduled", "True")), 0.0)
