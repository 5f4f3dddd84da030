"""Adds the operations of a committed statement to the record of the cycle: binds, evictions and nominations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from navarch.engine.job import Job
from navarch.engine.record import Bind, Eviction, Nomination
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.engine.session import Session
    from navarch.engine.statement import Operation

ALLOCATED, BINDING = int(TaskStatus.ALLOCATED), int(TaskStatus.BINDING)


def record_operation(session: Session, operation: Operation, action: str, evicted: int = 1) -> None:
    """`evicted`: evictions of the whole statement."""
    if operation.kind == TaskStatus.ALLOCATED:
        assert operation.job is not None
        record_binds(session, operation.job, operation.tasks)
    elif operation.kind == TaskStatus.RELEASING:
        _record_eviction(session, operation, action, evicted)
    elif operation.kind == TaskStatus.PENDING:
        spec, job = session.task(operation.tasks[0]), operation.job
        node = session.nodes.names[operation.nodes[0]]
        session.record.nominations.append(Nomination(spec.key, node, spec.uid, job.key if job else "", evicting=operation.evicting))
    elif operation.evicting:
        session.promised_by_eviction.update(operation.tasks)


def _record_eviction(session: Session, operation: Operation, action: str, evicted: int) -> None:
    victim = operation.tasks[0]
    spec = session.task(victim)
    session.record.evictions.append(
        Eviction(
            pod=spec.key,
            node=session.nodes.names[operation.nodes[0]],
            uid=spec.uid,
            job=operation.job.key if operation.job is not None else "",
            action=action,
            for_=operation.for_,
            reason=operation.reason or action,
            message=operation.message,
            together=evicted,
        )
    )
    if operation.holds_node:
        for follower in session.events.followers:
            follower.pod_evicted(operation.task, victim, operation.nodes[0])


def record_binds(session: Session, job: Job, tasks: Sequence[int]) -> None:
    """Add allocated tasks to the record's binds and move them to BINDING."""
    names = session.nodes.names
    rows: list[int] = session.node[list(tasks)].tolist() if len(tasks) > 1 else [int(session.node[tasks[0]])]
    specs, key, binds = session.snapshot.tasks.specs, job.key, session.record.binds
    if session.devices is None and not session.zones and not session.cpus and not session.bind_annotations:
        placed = zip(map(specs.__getitem__, tasks), rows)
        binds += [Bind(f"{spec.namespace}/{spec.name}", names[row], spec.uid, key) for spec, row in placed if spec is not None]
    else:
        held = {} if session.devices is None else session.devices.groups
        for task, row in zip(tasks, rows):
            spec = session.task(task)
            groups, zones = held.get(task, ()), session.zones.get(task, ())
            marks = tuple(sorted(session.bind_annotations.get(task, {}).items()))
            amounts = session.numa_placements.get(task, ())
            binds.append(Bind(spec.key, names[row], spec.uid, key, groups, zones, session.cpus.get(task), marks, amounts))
    if job.last_undone:
        for task in tasks:
            job.last_undone.pop(task, None)
    if len(rows) == 1:
        session.status[tasks[0]] = BINDING
    else:
        session.status[list(tasks)] = BINDING
    job.counts[ALLOCATED] -= len(tasks)
    job.counts[BINDING] += len(tasks)
