"""Conformance: protects critical pods of the cluster from eviction."""

from __future__ import annotations

from collections.abc import Sequence

from navarch.engine.job import Job
from navarch.engine.plugin import Plugin

CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
CRITICAL_NAMESPACE = "kube-system"


class Conformance(Plugin):
    """Keeps critical pods from being evicted"""

    name = "conformance"

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        return self._ordinary(candidates)

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None:
        return self._ordinary(candidates)

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None:
        return self._ordinary(candidates)

    def _ordinary(self, candidates: Sequence[int]) -> list[int]:
        task = self.session.task
        return [c for c in candidates if task(c).priority_class not in CRITICAL_CLASSES and task(c).namespace != CRITICAL_NAMESPACE]
