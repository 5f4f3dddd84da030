"""Gangs that were complete once. Their running pods stay when the gang later has fewer pods than it needs.

A gang can have more pods than its minimum, and some of them may find no node. When it then loses a running pod, or its minimum is
raised, its pods look as if its start had stopped half-way. It did start, so the policy decides about it, not `half_bound_gangs`. Three
facts tell the two cases apart:

- The gang was seen complete since its first pod was bound. This is remembered while one of its pods is on a node.
- The status of its group says so, written while it was complete. This is how a scheduler that has just started knows. KAI's API has
  no field for it.
- A condition on its pods says so. It is written when the gang looks half bound for the first time, because from then on the group's
  status no longer shows that it was complete. It needs no permission that evictions do not need, and it is deleted with the pods, so
  a gang that starts again is a new one.

The same condition with the status False marks the pods of a gang that is half bound. If the members that it waits for are deleted and
the scheduler restarts, the remaining pods look like those of a complete gang that lost members; the condition tells that they are not.
It becomes True as soon as the gang is complete.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from navarch.live.cache.cluster_cache import ClusterCache
from navarch.model.spec import TaskSpec
from navarch.model.status import TaskStatus

log = logging.getLogger(__name__)

CONDITION = "navarch.io/GangWasWhole"
_ON_NODES = (TaskStatus.BOUND, TaskStatus.RUNNING)


class GangHistory:
    """`mark(task, complete)` writes the condition on a pod."""

    def __init__(self, cache: ClusterCache, mark: Callable[[TaskSpec, bool], None] = lambda task, complete: None) -> None:
        self._cache = cache
        self._mark = mark
        self.trust_group_status = False
        """Group statuses count: no status was written since we started to lead."""
        self._complete: set[str] = set()
        """Jobs that were seen complete while other pods of theirs were pending."""
        self._logged: set[str] = set()
        self._marked_incomplete: set[str] = set()
        """Jobs with a pod on a node that is marked as one of a half-bound gang, or is about to be."""

    def forget_all(self) -> None:
        self._complete, self._logged, self._marked_incomplete = set(), set(), set()

    def read_marks(self) -> set[str]:
        """Jobs whose pods say that their gang was never complete. Every pod of a started gang is read: call it once, at the start."""
        jobs = self._cache.cluster.jobs
        started = jobs.counts[: jobs.rows.top, [int(s) for s in _ON_NODES]].any(axis=1) & (jobs.min_member[: jobs.rows.top] > 1)
        for row in np.flatnonzero(started).tolist():
            if any(_mark_of(task) == "False" for task in self._on_nodes(row)):
                self._marked_incomplete.add(jobs.keys[row])
        return {
            job
            for job in self._marked_incomplete
            if not self._status_says_so(job, bound := self._on_nodes(jobs.rows.of[job])) and not any(map(_is_marked, bound))
        }

    def observe(self, complete: set[str], incomplete: set[str]) -> None:
        """`complete`: jobs that have enough pods on nodes and more that are pending. `incomplete`: jobs that have too few there. A job
        in neither set has no pods on nodes, or no pending pods; it cannot look half bound, so nothing is remembered of it."""
        self._complete = complete | (self._complete & incomplete)
        self._logged &= incomplete
        for job in sorted(self._marked_incomplete - incomplete):
            row = self._cache.cluster.jobs.rows.of.get(job)
            outdated = [task for task in self._on_nodes(row) if _mark_of(task) == "False"] if row is not None else []
            for task in outdated:
                self._mark(task, True)
            if not outdated:
                self._marked_incomplete.discard(job)

    def mark_incomplete(self, job: str, bound: Sequence[TaskSpec]) -> None:
        """This job is half bound. Its pods tell a scheduler that starts later."""
        self._marked_incomplete.add(job)
        for task in bound:
            if _mark_of(task) != "False":
                self._mark(task, False)

    def was_complete(self, job: str, bound: Sequence[TaskSpec]) -> bool:
        """Whether this job, which looks half bound, was complete since the first of its bound pods was bound. If so, its pods are
        marked."""
        if job not in self._complete and not any(map(_is_marked, bound)) and not self._status_says_so(job, bound):
            return False
        self._complete.add(job)
        if job not in self._logged:
            self._logged.add(job)
            log.info("gang %s: keeping %d running pods: the gang was complete before it needed more", job, len(bound))
        for task in bound:
            if not _is_marked(task):
                self._mark(task, True)
        return True

    def _on_nodes(self, row: int) -> list[TaskSpec]:
        jobs, tasks = self._cache.cluster.jobs, self._cache.cluster.tasks
        return [spec for task in jobs.tasks[row] if (spec := tasks.specs[task]) is not None and spec.status in _ON_NODES]

    def _status_says_so(self, job: str, bound: Sequence[TaskSpec]) -> bool:
        """Upstream groups keep the condition Scheduled after they start, so it counts if it is newer than the first binding. Other
        groups have the phase Running while enough pods run or have failed. If some failed, the phase proves nothing."""
        group = self._cache.group(job) if self.trust_group_status else None
        if group is None:
            return False
        if group.dialect == "upstream":
            first = min(map(bound_at, bound))
            return any(c.type == "Scheduled" and c.status == "True" and c.last_transition >= first for c in group.conditions)
        return group.phase == "Running" and not group.counts.get("failed")


def bound_at(task: TaskSpec) -> float:
    """When the API server accepted the binding; 0: not known."""
    return next((since for kind, value, _, since in task.conditions if (kind, value) == ("PodScheduled", "True")), 0.0)


def _is_marked(task: TaskSpec) -> bool:
    return _mark_of(task) == "True"


def _mark_of(task: TaskSpec) -> str:
    return next((value for kind, value, _, _ in task.conditions if kind == CONDITION), "")
