"""Whether a task may evict: its preemption policy, and whether an earlier eviction for it is still in progress."""

from __future__ import annotations

import numpy as np

from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.model.status import TaskStatus


def needs_domain(job: Job) -> bool:
    """Whether the job, or a part of it, must be placed in one domain. A search task by task cannot do that."""
    demands = (job.spec.topology, *(group.topology for group in job.spec.sub_groups))
    return any(demand is not None and (demand.label or (demand.hard and not demand.topology)) for demand in demands)


def names_topology(job: Job) -> bool:
    """Whether the job, or a part of it, says anything about domains, even a preference: then Volcano's `preempt` passes over it."""
    return job.spec.topology is not None or any(group.topology is not None for group in job.spec.sub_groups)


def keeps_to_label(job: Job) -> bool:
    """Whether all nodes of the job must have the same value of a label. Only `allocate` searches such domains."""
    return job.spec.topology is not None and bool(job.spec.topology.label)


def may_evict_for(session: Session, row: int) -> bool:
    """False for preemptionPolicy Never. A task with a nominated node waits while lower tasks are leaving that node, unless the node
    has become impossible for it. With `stale_promise_blocks` it also waits where that node is gone, or lacks only resources."""
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
