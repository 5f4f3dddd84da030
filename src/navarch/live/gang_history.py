"""Gangs that were whole once: pods that run are not taken down because their group has fewer of them than it needs by now.

A gang may have more pods than it needs, of which some find no room. When it loses one that ran, or somebody raises its minimum, its
pods look as if its start had stopped half-way. It did start; what is to become of it is for the policy to say. What tells the
two apart:

- it was seen whole since its first pod was bound: remembered while one of its pods stands;
- its group's status says so, written when it was whole and not since: how a scheduler that has just started knows. Not every
  API has words for it (KAI's has none);
- a condition on its pods. It is written when the gang looks half bound for the first time, since its status tells nothing from then
  on: it is rare, needs no right that evictions do not need, and goes with the pods, so that a gang that starts again is a new one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

import msgspec

from navarch.kube.errors import KubeError, NotFound
from navarch.kube.resources import PODS
from navarch.kube.write.pool import Outcome, Priority, Write, WritePool
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.pod_status import STRATEGIC
from navarch.model.spec import TaskSpec
from navarch.model.timestamps import rfc3339

log = logging.getLogger(__name__)

CONDITION = "navarch.io/GangWasWhole"
MESSAGE = "its gang had started as a whole before it came to have fewer pods than it needs, so it is not released"


class GangHistory:
    """Without a `pool` nothing is written."""

    def __init__(self, cache: ClusterCache, pool: WritePool | None = None, clock: Callable[[], float] = time.time) -> None:
        self._cache = cache
        self._pool = pool
        self._clock = clock
        self.asks_groups = False
        """What groups say of themselves counts: nobody has written it anew since we began to look."""
        self._seen: set[str] = set()
        """Jobs that were seen whole, with pods that waited all the same."""
        self._told: set[str] = set()
        """Jobs that the log has."""
        self._in_flight: set[str] = set()

    def forget_all(self) -> None:
        self._seen, self._told = set(), set()

    def see(self, whole: set[str], lacking: set[str]) -> None:
        """`whole`: jobs that have what they need on nodes, and more pods that wait; `lacking`: those that have too few there. Of one
        whose pods are gone nothing is remembered, and one that is whole and has nobody waiting cannot come to look half bound."""
        self._seen = whole | (self._seen & lacking)
        self._told &= lacking

    def was(self, job: str, bound: Sequence[TaskSpec]) -> bool:
        """Whether this job, which looks half bound, was whole since the first of its bound pods stands. If so its pods say it from
        now on."""
        if job not in self._seen and not any(map(_is_marked, bound)) and not self._says_so(job, bound):
            return False
        self._seen.add(job)
        if job not in self._told:
            self._told.add(job)
            log.info("the gang %s was whole, and its %d pods on nodes stay although it needs more by now", job, len(bound))
        for task in bound:
            if task.uid not in self._in_flight and not _is_marked(task):
                self._mark(task)
        return True

    def _says_so(self, job: str, bound: Sequence[TaskSpec]) -> bool:
        """Kubernetes' own groups say for good that they started, so it counts if it was said of these pods. Others have the phase
        Running while enough pods run or have failed: where some failed it tells nothing."""
        group = self._cache.group(job) if self.asks_groups else None
        if group is None:
            return False
        if group.dialect == "upstream":
            first = min(map(bound_at, bound))
            return any(c.type == "Scheduled" and c.status == "True" and c.last_transition >= first for c in group.conditions)
        return group.phase == "Running" and not group.counts.get("failed")

    def _mark(self, task: TaskSpec) -> None:
        if self._pool is None:
            return
        moment = rfc3339(self._clock())
        condition = {"type": CONDITION, "status": "True", "reason": "Started", "message": MESSAGE, "lastTransitionTime": moment}
        body = msgspec.json.encode({"metadata": {"uid": task.uid}, "status": {"conditions": [condition]}})
        path = PODS.path(task.namespace, task.name, "status")
        write = Write("PATCH", path, body, content_type=STRATEGIC, priority=Priority.STATUS, repeatable=True)
        self._in_flight.add(task.uid)
        self._pool.submit(write, lambda outcome: self._marked(task, outcome))

    def _marked(self, task: TaskSpec, outcome: Outcome) -> None:
        self._in_flight.discard(task.uid)
        if isinstance(outcome, KubeError) and not isinstance(outcome, NotFound):
            log.warning("%s is not marked as of a gang that was whole: %s", task.key, outcome)  # the next look does it again


def bound_at(task: TaskSpec) -> float:
    """When the API server took the binding; 0: nobody knows."""
    return next((since for kind, value, _, since in task.conditions if (kind, value) == ("PodScheduled", "True")), 0.0)


def _is_marked(task: TaskSpec) -> bool:
    return any(kind == CONDITION and value == "True" for kind, value, _, _ in task.conditions)
