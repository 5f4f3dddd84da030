"""Small clusters for engine tests, made of model specs: no manifests, no files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from navarch.actions import builtin_actions
from navarch.engine.plugin import Plugin
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.registry import Registry
from navarch.engine.semantics import STRICT, Semantics
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus

Amounts = Mapping[str, str | int]


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
) -> JobSpec:
    """A gang whose tasks are pending, or running on `node`."""
    shapes = list(tasks)
    job = JobSpec(
        f"ns/{name}",
        queue,
        namespace="ns",
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
                namespace="ns",
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


def open_session(cluster: Cluster, *plugins: type[Plugin], semantics: Semantics = STRICT) -> Session:
    registry = Registry(plugins, builtin_actions())
    return Session(cluster.snapshot(), policy(*(p.name for p in plugins), semantics=semantics), registry, now=0.0)
