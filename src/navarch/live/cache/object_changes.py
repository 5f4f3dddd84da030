"""Compares two versions of an object: whether they differ in what scheduling reads, and whether the new one frees anything.

Most new versions that a watch shows change nothing for scheduling: a heartbeat, a status, a condition of our own. These activate no
job, and neither do changes that can only keep jobs waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navarch.live.queue.equivalence_classes import freed_by_resize, occupied_requests
from navarch.model.spec import JobSpec, QuotaSpec, Requests, TaskSpec
from navarch.model.status import TaskStatus


def same_demand(a: TaskSpec, b: TaskSpec) -> bool:
    """Whether two versions of a pending pod have the same demands. Its status conditions do not count."""
    return (
        a.shape == b.shape
        and a.job == b.job
        and a.gates == b.gates
        and a.priority == b.priority
        and a.labels == b.labels
        and a.nominated_node == b.nominated_node
    )


def freed_resources(before: TaskSpec, task: TaskSpec) -> Requests:
    """What a pod frees that stays pending or running: its nominated node, or the difference of an in-place resize."""
    if before.status == TaskStatus.PENDING:
        promised = before.nominated_node
        return occupied_requests(before.shape) if promised and promised != (task.node or task.nominated_node) else ()
    stays = before.node and before.node == task.node and before.shape is not task.shape
    return freed_by_resize(before.shape, task.shape) if stays else ()


def same_queue_and_protection(a: JobSpec, b: JobSpec) -> bool:
    """Whether two versions of a group are in the same queue and equally protected from eviction."""
    return (
        a.queue == b.queue
        and a.min_member == b.min_member
        and a.priority == b.priority
        and (a.preemptable, a.never_preempted, a.preemptible_below) == (b.preemptable, b.never_preempted, b.preemptible_below)
        and (a.roles, a.sub_groups, a.min_sub_groups) == (b.roles, b.sub_groups, b.min_sub_groups)
    )


def permits_more(before: QuotaSpec, now: QuotaSpec) -> bool:
    """Whether the quota permits more of some resource. Every pod that is created changes its status, mostly to less."""
    hard, used, was = dict(now.hard), dict(now.used), dict(before.used)
    return any(name not in hard or hard[name] - used.get(name, 0) > limit - was.get(name, 0) for name, limit in before.hard)


def same_object(before: Any, now: Any) -> bool:
    """Whether the objects are equal except for their version."""
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        return bool(before == now)
    return _said(before) == _said(now)


def _said(manifest: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
    meta = {key: value for key, value in (manifest.get("metadata") or {}).items() if key != "resourceVersion"}
    return {key: value for key, value in manifest.items() if key != "metadata"}, meta
