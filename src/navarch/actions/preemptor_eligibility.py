"""Whether a task may evict at all: its own policy, and whether an earlier eviction for it is still under way."""

from __future__ import annotations

import numpy as np

from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.model.status import TaskStatus


def needs_domain(job: Job) -> bool:
    """Whether the job, or a part of it, must be put together in one HyperNode: no place for a search task by task."""
    demands = (job.spec.topology, *(group.topology for group in job.spec.sub_groups))
    return any(demand is not None and demand.hard and not demand.topology for demand in demands)


def may_evict_for(session: Session, job: Job, row: int) -> bool:
    """No for preemptionPolicy Never. A task with a nominated node waits while lower tasks are still leaving that node, unless it has
    become impossible for it. With `stale_promise_blocks` it waits as well where that node is gone, or would do but for resources."""
    spec, blocks = session.task(row), session.semantics.stale_promise_blocks
    if spec.preemption_policy == "Never":
        return False
    if not spec.nominated_node:
        return True
    node = session.snapshot.nodes.row(spec.nominated_node)
    if node is None:
        return not blocks
    view = session.view(session.class_of(row))
    if view.unresolvable()[node]:
        return True
    if blocks and view.passes(node):
        return False
    return not _lower_leaving(session, row, node)


def _lower_leaving(session: Session, row: int, node: int) -> bool:
    mine = session.task(row).pod_priority
    there = np.flatnonzero((session.node == node) & (session.status == TaskStatus.RELEASING))
    return any((spec := session.task(int(t))).pod_priority < mine and spec.deleting and spec.disruption_target for t in there.tolist())
