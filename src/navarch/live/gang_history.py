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
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from navarch.live.cache.cluster_cache import ClusterCache
from navarch.model.spec import TaskSpec

log = logging.getLogger(__name__)

CONDITION = "navarch.io/GangWasWhole"


class GangHistory:
    """`mark(task)` writes the condition on a pod."""

    def __init__(self, cache: ClusterCache, mark: Callable[[TaskSpec], None] = lambda task: None) -> None:
        self._cache = cache
        self._mark = mark
        self.trust_group_status = False
        """Group statuses count: no status was written since we started to lead."""
        self._complete: set[str] = set()
        """Jobs that were seen complete while other pods of theirs were pending."""
        self._logged: set[str] = set()

    def forget_all(self) -> None:
        self._complete, self._logged = set(), set()

    def observe(self, complete: set[str], incomplete: set[str]) -> None:
        """`complete`: jobs that have enough pods on nodes and more that are pending. `incomplete`: jobs that have too few there. A job
        in neither set has no pods on nodes, or no pending pods; it cannot look half bound, so nothing is remembered of it."""
        self._complete = complete | (self._complete & incomplete)
        self._logged &= incomplete

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
                self._mark(task)
        return True

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
    return any(kind == CONDITION and value == "True" for kind, value, _, _ in task.conditions)
