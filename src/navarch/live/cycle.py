"""One live cycle: take a snapshot, decide, and keep what metrics and recordings need.

A backlog is decided in batches: of each queue the first pending pods by priority and age, and the rest in the next cycles. One cycle
over fifty thousand single pods would stop everything else in the process for longer than a lease lasts, and the API server would
accept the bindings no sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from navarch.engine.cycle import decide
from navarch.engine.points.conversation import Exchange
from navarch.engine.policy import Policy
from navarch.engine.record import CycleRecord, JobFailure
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.model.resources import RowArray
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec
from navarch.model.status import ON_NODE, TaskStatus

Rows = np.ndarray[Any, np.dtype[np.intp]]
_PLACED = [int(status) for status, there in enumerate(ON_NODE) if there]


@dataclass(frozen=True, slots=True)
class Cycle:
    """The input and the outcome of a cycle. The specs in the snapshot are those from the start of the cycle."""

    number: int
    snapshot: Snapshot
    more: bool
    """Some jobs were left to the next cycle."""
    policy: Policy
    now: float
    uid: str
    record: CycleRecord
    snapshot_seconds: float
    seconds: float

    @property
    def held(self) -> dict[str, JobSpec]:
        """Jobs that were left out: inactive ones, and those beyond the batch."""
        jobs = self.snapshot.jobs
        return {jobs.keys[row]: spec for row, spec in (*jobs.held.items(), *jobs.left_out.items())}


def run_cycle(
    cluster: Cluster,
    policy: Policy,
    registry: Registry,
    now: float,
    number: int,
    uid: str,
    *,
    batch: int | None = None,
    instead_of: Snapshot | None = None,
    set_aside: Collection[str] = (),
    left_out_nodes: Collection[str] = (),
    failed_before: Sequence[JobFailure] = (),
    note_job: Callable[[str], None] | None = None,
    asks: bool = False,
) -> Cycle:
    """`batch`: how many pending pods of each queue are tried; None: all. `instead_of`: see `Cluster.snapshot`.
    `set_aside`, `left_out_nodes`, `failed_before`, `note_job`: see `decide`. `asks`: the cycle may stop at a question to a server
    outside (`decide_again`)."""
    started = perf_counter()
    snapshot = cluster.snapshot(policy.semantics.node_order, instead_of=instead_of)
    if batch is not None:
        leave_out(snapshot, beyond_batch(snapshot, batch, turns=registry.namespaces_take_turns(policy)))
    taken = perf_counter() - started
    exchanges: list[Exchange] | None = [] if asks else None
    record = decide(
        snapshot,
        policy,
        registry,
        now,
        uid=uid,
        devices=uid,
        report_all=False,
        set_aside=set_aside,
        left_out_nodes=left_out_nodes,
        exchanges=exchanges,
        failed_before=failed_before,
        note_job=note_job,
    )
    spent = perf_counter() - started
    return Cycle(number, snapshot, bool(snapshot.jobs.left_out), policy, now, uid, record, taken, spent)


def decide_again(
    cycle: Cycle,
    registry: Registry,
    set_aside: Collection[str],
    left_out_nodes: Collection[str],
    failed_before: Sequence[JobFailure],
    exchanges: list[Exchange],
    note_job: Callable[[str], None] | None = None,
) -> Cycle:
    """Run a cycle that stopped at a question once more, over the same snapshot."""
    started = perf_counter()
    record = decide(
        cycle.snapshot,
        cycle.policy,
        registry,
        cycle.now,
        uid=cycle.uid,
        devices=cycle.uid,
        report_all=False,
        set_aside=set_aside,
        left_out_nodes=left_out_nodes,
        exchanges=exchanges,
        failed_before=failed_before,
        note_job=note_job,
    )
    return replace(cycle, record=record, seconds=cycle.seconds + perf_counter() - started)


def undecided(cluster: Cluster, policy: Policy, now: float, number: int, uid: str) -> Cycle:
    """What a cycle would read now, for debugging a cycle that fails. Nothing is decided."""
    return Cycle(number, cluster.snapshot(policy.semantics.node_order), False, policy, now, uid, CycleRecord(), 0.0, 0.0)


def leave_out(snapshot: Snapshot, rows: Sequence[int]) -> None:
    """Remove jobs from this snapshot. A job that holds nodes stays: decisions about others depend on its pods."""
    if rows:
        jobs = snapshot.jobs
        chosen = np.array(rows, dtype=np.intp)
        for row in chosen[~jobs.counts[chosen[:, None], _PLACED].any(axis=1)].tolist():
            jobs.leave_out(row)


def beyond_batch(snapshot: Snapshot, batch: int, *, turns: bool = False) -> list[int]:
    """Rows of jobs without a pod among the first `batch` pending pods of their queue. The order is priority (of the group or the pod,
    whichever is higher), age, arrival. With `turns`, the first pods of all namespaces come before the second ones."""
    tasks, jobs = snapshot.tasks, snapshot.jobs
    if jobs.counts[jobs.marks.waiting, TaskStatus.PENDING].sum() <= batch:
        return []
    waiting = np.flatnonzero(tasks.alive & (tasks.status == TaskStatus.PENDING) & (tasks.job >= 0) & ~tasks.gated)
    if len(waiting) <= batch:
        return []
    waiting = waiting[jobs.taking_part[tasks.job[waiting]]]
    queue = jobs.queue[tasks.job[waiting]]
    priority = np.maximum(tasks.priority[waiting], jobs.priority[tasks.job[waiting]])
    order = np.lexsort((waiting, tasks.created[waiting], -priority, queue))
    if turns:
        order = order[_in_turns(snapshot, waiting[order], queue[order])]
    job, queue = tasks.job[waiting][order], queue[order]
    rank = np.arange(len(order)) - np.searchsorted(queue, queue)
    first = np.zeros(len(jobs.specs), dtype=bool)
    first[job[rank < batch]] = True
    rows: list[int] = np.flatnonzero(np.bincount(job, minlength=len(first)).astype(bool) & ~first).tolist()
    return rows


def _in_turns(snapshot: Snapshot, waiting: Rows, queue: RowArray) -> Rows:
    """The order in which namespaces take turns inside each queue; `waiting` is in the order that holds inside a namespace. About ten
    milliseconds for 100,000 pods."""
    identities, of = np.unique(snapshot.tasks.labels[waiting], return_inverse=True)
    numbers: dict[str, int] = {}
    namespace = np.array([numbers.setdefault(snapshot.identities[i][0], len(numbers)) for i in identities.tolist()])[of]
    together = np.lexsort((np.arange(len(waiting)), namespace, queue))
    place = queue[together].astype(np.int64) * len(numbers) + namespace[together]
    turn = np.empty(len(waiting), dtype=np.int64)
    turn[together] = np.arange(len(waiting)) - np.searchsorted(place, place)
    return np.lexsort((np.arange(len(waiting)), turn, queue))
