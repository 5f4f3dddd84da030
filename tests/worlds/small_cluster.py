"""Small clusters for engine tests, made of model specs: no manifests, no files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from navarch.actions import PLACES
from navarch.engine.action import Action
from navarch.engine.cycle import decide
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.engine.semantics import STRICT, Semantics
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus
from navarch.places import at

Amounts = Mapping[str, str | int]
ACTIONS: list[type[Action]] = [at(place) for place in PLACES.values()]


def shape(**amounts: str | int) -> Shape:
    return Shape(requests=requests_from({name.replace("_", "."): value for name, value in amounts.items()}))


def with_nodes(*nodes: tuple[str, Amounts]) -> Cluster:
    cluster = Cluster()
    cluster.put_queue(QueueSpec("default", state="Open"))
    for name, amounts in nodes:
        cluster.put_node(NodeSpec(name, allocatable=requests_from({"pods": 110, **amounts})))
    return cluster


def add_job(
    cluster: Cluster,
    name: str,
    tasks: Iterable[Shape],
    *,
    minimum: int | None = None,
    queue: str = "default",
    priority: int = 0,
    node: str = "",
    created: float = 0.0,
    namespace: str = "ns",
) -> JobSpec:
    """A gang whose tasks are pending, or running on `node`."""
    shapes = list(tasks)
    job = JobSpec(
        f"{namespace}/{name}",
        queue,
        namespace=namespace,
        name=name,
        min_member=len(shapes) if minimum is None else minimum,
        priority=priority,
        created=created,
        phase="Running" if node else "Inqueue",
    )
    cluster.put_job(job)
    for number, each in enumerate(shapes):
        cluster.put_task(
            TaskSpec(
                uid=f"{name}-{number}",
                namespace=namespace,
                name=f"{name}-worker-{number}",
                shape=each,
                job=job.key,
                node=node,
                status=TaskStatus.RUNNING if node else TaskStatus.PENDING,
                priority=priority,
                pod_priority=priority,
                created=created,
            )
        )
    return job


def policy(*plugins: str, actions: tuple[str, ...] = ("allocate",), semantics: Semantics = STRICT) -> Policy:
    return Policy(actions, (tuple(PluginOption(name) for name in plugins),), semantics=semantics)


def task(uid: str, shape: Shape, job: str = "", node: str = "", **fields: Any) -> TaskSpec:
    """A pod in namespace ns: running where a node is named, else pending."""
    fields.setdefault("status", TaskStatus.RUNNING if node else TaskStatus.PENDING)
    return TaskSpec(uid=uid, namespace="ns", name=fields.pop("name", uid), shape=shape, job=job, node=node, **fields)


def decided(
    cluster: Cluster,
    *plugins: type[Plugin],
    actions: tuple[str, ...] = ("allocate",),
    semantics: Semantics = STRICT,
    now: float = 0.0,
    **options: Any,
) -> CycleRecord:
    """One cycle with these plugins in one tier."""
    chosen = dataclasses.replace(_policy(plugins, semantics), actions=actions, **options)
    return decide(cluster.snapshot(semantics.node_order), chosen, Registry(plugins, ACTIONS), now)


def apply(cluster: Cluster, record: CycleRecord) -> None:
    """What a calm cluster makes of a record: bound pods run, evicted ones come back pending, promises are noted."""
    for bind in record.binds:
        _change(cluster, bind.uid, node=bind.node, status=TaskStatus.RUNNING, nominated_node="")
    for eviction in record.evictions:
        _change(cluster, eviction.uid, node="", status=TaskStatus.PENDING)
    for promise in record.nominations:
        _change(cluster, promise.uid, nominated_node=promise.node)


def _change(cluster: Cluster, uid: str, **fields: Any) -> None:
    before = cluster.task(uid)
    assert before is not None
    cluster.put_task(msgspec.structs.replace(before, **fields))


def binds(record: CycleRecord) -> dict[str, str]:
    """uid -> node"""
    return {bind.uid: bind.node for bind in record.binds}


def promises(record: CycleRecord) -> dict[str, str]:
    return {promise.uid: promise.node for promise in record.nominations}


def evicted(record: CycleRecord) -> list[str]:
    return sorted(eviction.uid for eviction in record.evictions)


def waits(record: CycleRecord, name: str) -> list[str]:
    """The messages of why a job waits."""
    (decision,) = [d for d in record.jobs if d.job == f"ns/{name}"]
    return [reason.message for reason in decision.reasons]


def phases(record: CycleRecord) -> dict[str, str]:
    return {d.job.removeprefix("ns/"): d.phase for d in record.jobs}


def job_in(session: Session, name: str) -> Job:
    (found,) = [job for job in session.all_jobs() if job.key == f"ns/{name}"]
    return found


def row_in(session: Session, uid: str) -> int:
    """The row of a pod."""
    (row,) = [i for i, spec in enumerate(session.snapshot.tasks.specs) if spec is not None and spec.uid == uid]
    return row


def open_session(cluster: Cluster, *plugins: type[Plugin], semantics: Semantics = STRICT) -> Session:
    return Session(cluster.snapshot(), _policy(plugins, semantics), Registry(plugins, ACTIONS), now=0.0)


def _policy(plugins: tuple[type[Plugin], ...], semantics: Semantics) -> Policy:
    """Of the dialect that any of the plugins is of."""
    found = policy(*(p.name for p in plugins), semantics=semantics)
    return dataclasses.replace(found, dialect=next((p.dialect for p in plugins if p.dialect), found.dialect))
