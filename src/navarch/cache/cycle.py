"""One live cycle: snapshot, leave out who waits, decide, and what is left of it for metrics and recordings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter

from navarch.engine.cycle import decide
from navarch.engine.policy import Policy
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec
from navarch.model.status import ON_NODE

_PLACED = [int(status) for status, there in enumerate(ON_NODE) if there]


@dataclass(frozen=True, slots=True)
class Cycle:
    """Everything that went into a cycle and came out of it. The snapshot's specs are as they were when it began."""

    number: int
    snapshot: Snapshot
    held: Mapping[str, JobSpec]
    """Jobs that were left out because they wait."""
    policy: Policy
    now: float
    uid: str
    record: CycleRecord
    snapshot_seconds: float
    seconds: float


def run_cycle(
    cluster: Cluster, policy: Policy, registry: Registry, held: Iterable[str], now: float, number: int, uid: str
) -> Cycle:
    started = perf_counter()
    snapshot = cluster.snapshot(policy.semantics.node_order)
    left_out = leave_out(cluster, snapshot, held)
    taken = perf_counter() - started
    record = decide(snapshot, policy, registry, now, uid=uid, report_all=False)
    return Cycle(number, snapshot, left_out, policy, now, uid, record, taken, perf_counter() - started)


def leave_out(cluster: Cluster, snapshot: Snapshot, held: Iterable[str]) -> dict[str, JobSpec]:
    """Take jobs out of this snapshot. One that holds nodes stays in: others may have to know whose pods those are."""
    gone = {}
    counts, rows = snapshot.jobs.counts, cluster.jobs.rows.of
    for key in held:
        row = rows.get(key)
        if row is None:
            continue
        spec = snapshot.jobs.specs[row]
        if spec is not None and not counts[row, _PLACED].any():
            snapshot.jobs.specs[row] = None
            gone[key] = spec
    return gone
