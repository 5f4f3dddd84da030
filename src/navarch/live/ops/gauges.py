"""Metrics that are computed when /metrics is read, so that they cost nothing in between."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.live.scheduler import Scheduler


_INFORMERS = {
    "events": "Watch events seen.",
    "lists": "Full lists read: one at the start, and one after each expired watch.",
    "failures": "Lists and watches that failed.",
}
_WRITES = ("sent", "replies", "throttled", "unknown")


class Gauges:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        metrics = scheduler.metrics
        metrics.watch("navarch_writes_waiting", "Writes without an outcome.", "kind", self._waiting_writes)
        metrics.watch("navarch_api_writes", "Writes that were sent, by outcome.", "event", self._writes, counts=True)
        metrics.watch("navarch_api_connections", "Connections for writes.", "result", self._connections, counts=True)
        for name, text in _INFORMERS.items():
            metrics.watch(f"navarch_informer_{name}", text, "kind", partial(self._informers, name), counts=True)

    def refresh(self) -> None:
        scheduler = self._scheduler
        cluster, metrics = scheduler.cache.cluster, scheduler.metrics
        pending = cluster.jobs.counts[: cluster.jobs.rows.top, TaskStatus.PENDING]
        held = len(scheduler.queue)
        metrics.pending_pods.set(int(pending.sum()))
        metrics.pending_jobs.labels("held").set(held)
        metrics.pending_jobs.labels("active").set(max(0, int((pending > 0).sum()) - held))
        metrics.assumed.labels("bind").set(len(scheduler.assumed.binds))
        metrics.assumed.labels("eviction").set(len(scheduler.assumed.evictions))
        metrics.nodes.set(int(cluster.nodes.alive.sum()))
        metrics.closed_nodes.set(len(scheduler.cache.unreadable.nodes))
        metrics.pods.set(len(cluster.tasks.rows))
        metrics.policy_in_force.set(0 if scheduler.policy_file.refused else 1)
        if scheduler.core.last_cycle is not None:
            metrics.queues(scheduler.core.last_cycle.record.queues)
        scheduler.followed_metrics.refresh(scheduler.core)

    def _waiting_writes(self) -> dict[str, float]:
        scheduler = self._scheduler
        statuses = (scheduler.writers.pods, scheduler.writers.groups, scheduler.writers.queues)
        return {
            "binding": len(scheduler.writers.binder.outbox),
            "eviction": len(scheduler.writers.evictor),
            "status": sum(len(each.outbox) for each in statuses),
            "event": len(scheduler.events.outbox),
        }

    def _writes(self) -> dict[str, float]:
        return {event: getattr(self._scheduler.pool.counters, event) for event in _WRITES}

    def _connections(self) -> dict[str, float]:
        counters = self._scheduler.pool.counters
        return {"opened": counters.connections_opened, "failed": counters.connections_failed}

    def _informers(self, counter: str) -> dict[str, float]:
        return {str(each.resource): getattr(each.counters, counter) for each in self._scheduler.informers.group.informers}
