"""One live cycle: take a snapshot, decide, and keep what metrics and recordings need.

A backlog is decided in parts (`queue/rounds.py`). One cycle over fifty thousand single pods would stop everything else in the process
for longer than a lease lasts, and the API server would accept the bindings no sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from navarch.engine.cycle import decide
from navarch.engine.points.conversation import Exchange
from navarch.engine.policy import Policy
from navarch.engine.record import CycleRecord, JobFailure
from navarch.engine.registry import Registry
from navarch.live.queue.rounds import Rounds
from navarch.model.cluster import Cluster
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec
from navarch.model.status import ON_NODE

_PLACED = [int(status) for status, there in enumerate(ON_NODE) if there]


@dataclass(frozen=True, slots=True)
class Cycle:
    """The input and the outcome of a cycle. The specs in the snapshot are those from the start of the cycle."""

    number: int
    snapshot: Snapshot
    more: bool
    """Another cycle may do more at once: this one was cut, or jobs were left to the next."""
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
    rounds: Rounds | None = None,
    instead_of: Snapshot | None = None,
    set_aside: Collection[str] = (),
    left_out_nodes: Collection[str] = (),
    failed_before: Sequence[JobFailure] = (),
    note_job: Callable[[str], None] | None = None,
    asks: bool = False,
) -> Cycle:
    """`rounds`: which jobs are tried; None: all, in as many steps as it takes. `instead_of`: see `Cluster.snapshot`.
    `set_aside`, `left_out_nodes`, `failed_before`, `note_job`: see `decide`. `asks`: the cycle may stop at a question to a server
    outside (`decide_again`)."""
    started = perf_counter()
    snapshot = cluster.snapshot(policy.semantics.node_order, instead_of=instead_of)
    if rounds is not None:
        kept, promises = registry.keeps_order(policy), registry.makes_promises(policy)
        leave_out(snapshot, rounds.leave_out(snapshot, in_order=kept, promises=promises))
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
        steps=None if rounds is None else rounds.steps,
    )
    spent = perf_counter() - started
    more = record.cut or (rounds is not None and rounds.more)
    return Cycle(number, snapshot, more, policy, now, uid, record, taken, spent)


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
        steps=cycle.record.steps_allowed,
    )
    more = cycle.more or record.cut
    return replace(cycle, record=record, more=more, seconds=cycle.seconds + perf_counter() - started)


def undecided(cluster: Cluster, policy: Policy, now: float, number: int, uid: str) -> Cycle:
    """What a cycle would read now, for debugging a cycle that fails. Nothing is decided."""
    return Cycle(number, cluster.snapshot(policy.semantics.node_order), False, policy, now, uid, CycleRecord(), 0.0, 0.0)


def leave_out(snapshot: Snapshot, rows: Sequence[int]) -> None:
    """Remove jobs from this snapshot. A job that holds nodes sits out: decisions about others depend on its pods."""
    if rows:
        jobs = snapshot.jobs
        chosen = np.array(rows, dtype=np.intp)
        holding = set(chosen[jobs.counts[chosen[:, None], _PLACED].any(axis=1)].tolist())
        for row in rows:
            if row in holding:
                jobs.sit_out(row)
            else:
                jobs.leave_out(row)
