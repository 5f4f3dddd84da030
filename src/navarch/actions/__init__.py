"""Actions: the steps of a cycle, one file each. Register a new one in the table below."""

from __future__ import annotations

from collections.abc import Mapping

PLACES: Mapping[str, str] = {
    "allocate": "navarch.actions.allocate:Allocate",
    "kai:allocate": "navarch.actions.kai.allocate:KaiAllocate",
    "backfill": "navarch.actions.backfill:Backfill",
    "consolidation": "navarch.actions.kai.eviction:Consolidation",
    "enqueue": "navarch.actions.enqueue:Enqueue",
    "gangpreempt": "navarch.actions.gang_eviction:GangPreempt",
    "gangreclaim": "navarch.actions.gang_eviction:GangReclaim",
    "kai:preempt": "navarch.actions.kai.eviction:KaiPreempt",
    "kube-batch:preempt": "navarch.actions.kube_batch.eviction:KubeBatchPreempt",
    "preempt": "navarch.actions.preempt:Preempt",
    "kai:reclaim": "navarch.actions.kai.eviction:KaiReclaim",
    "kube-batch:reclaim": "navarch.actions.kube_batch.eviction:KubeBatchReclaim",
    "reclaim": "navarch.actions.reclaim:Reclaim",
    "schedule": "navarch.actions.kube_scheduler.schedule:Schedule",
    "shuffle": "navarch.actions.shuffle:Shuffle",
    "stalegangeviction": "navarch.actions.kai.stale_gangs:StaleGangEviction",
}
"""Name, or `DIALECT:NAME` where systems have different actions under one name -> place (`navarch.places`)."""
