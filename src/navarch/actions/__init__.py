"""Actions: the steps of a cycle, one file each. A new one is entered below."""

from __future__ import annotations

from collections.abc import Mapping

PLACES: Mapping[str, str] = {
    "allocate": "navarch.actions.allocate:Allocate",
    "kai:allocate": "navarch.actions.fair_allocate:FairAllocate",
    "backfill": "navarch.actions.backfill:Backfill",
    "consolidation": "navarch.actions.fair_eviction:Consolidation",
    "enqueue": "navarch.actions.enqueue:Enqueue",
    "gangpreempt": "navarch.actions.gang_evict:GangPreempt",
    "gangreclaim": "navarch.actions.gang_evict:GangReclaim",
    "kai:preempt": "navarch.actions.fair_eviction:FairPreempt",
    "kube-batch:preempt": "navarch.actions.kube_batch_evict:KubeBatchPreempt",
    "preempt": "navarch.actions.preempt:Preempt",
    "kai:reclaim": "navarch.actions.fair_eviction:FairReclaim",
    "kube-batch:reclaim": "navarch.actions.kube_batch_evict:KubeBatchReclaim",
    "reclaim": "navarch.actions.reclaim:Reclaim",
    "schedule": "navarch.actions.schedule:Schedule",
    "shuffle": "navarch.actions.shuffle:Shuffle",
    "stalegangeviction": "navarch.actions.stale_gangs:StaleGangEviction",
}
"""Name, or `DIALECT:NAME` where systems have different actions under one name -> place (`navarch.places`)."""
