"""A cluster at a glance: its jobs, queues and nodes as rows, from the model that scheduling uses.

`navarch jobs|queues|nodes` fill the model from any API server, `navarch up` has it in memory; both show the same rows. The plugins of
the policy compute what a queue deserves and has: a cycle without actions runs over a snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from navarch.engine.cycle import decide
from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.model.status import TaskStatus
from navarch.views.jobs import FindPod, JobRow, job_rows
from navarch.views.nodes import NodeRow, node_rows
from navarch.views.prospects import prospects
from navarch.views.queues import QueueRow, queue_rows


@dataclass(frozen=True)
class Overview:
    jobs: list[JobRow]
    queues: list[QueueRow]
    nodes: list[NodeRow]
    others: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(namespace, scheduler name) -> pending pods of schedulers that we do not decide for."""


def overview(
    cluster: Cluster,
    policy: Policy,
    registry: Registry,
    now: float,
    find_pod: FindPod,
    served: frozenset[str] | None = None,
) -> Overview:
    """All rows of a cluster, in an order that does not depend on how it was filled. `served`: the scheduler names that we decide for;
    None: all."""
    record = decide(cluster.snapshot(policy.semantics.node_order), replace(policy, actions=()), registry, now)
    jobs = job_rows(cluster, record, find_pod, served, prospects(cluster, policy, registry, now))
    others = {} if served is None else _pending_for_others(cluster, served)
    waiting = Counter(job.queue for job in jobs if job.pending)
    running = Counter(job.queue for job in jobs if job.running)
    return Overview(jobs, queue_rows(cluster, record.queues, waiting, running), node_rows(cluster), others)


def _pending_for_others(cluster: Cluster, served: frozenset[str]) -> dict[tuple[str, str], int]:
    waiting = (task for task in cluster.tasks.specs if task is not None and task.status == TaskStatus.PENDING and not task.node)
    counts = Counter((task.namespace, task.scheduler_name) for task in waiting if task.scheduler_name not in served)
    return dict(sorted(counts.items()))
