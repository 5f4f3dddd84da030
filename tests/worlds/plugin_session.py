"""A small cluster for plugin tests: real tables, a real session, only the plugins under test."""

from __future__ import annotations

from typing import Any

from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.policy.compat import COMPAT
from navarch.engine.policy.point_switches import DEFAULTS
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.registry import Registry
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Requests, Shape, TaskSpec
from navarch.model.status import TaskStatus

GPU = "nvidia.com/gpu"


def amounts(given: dict[str, Any] | None) -> Requests | None:
    """`{"cpu": 2, "gpu": 1}` in the model's units; None stays None."""
    if given is None:
        return None
    return requests_from({GPU if name == "gpu" else name: quantity for name, quantity in given.items()})


class World:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self._pods = 0

    def node(self, name: str, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **given: Any) -> World:
        given.setdefault("pods", 110)
        found = amounts(given)
        assert found is not None
        spec = NodeSpec(name, allocatable=found, capacity=found, labels=labels or {}, annotations=annotations or {})
        self.cluster.put_node(spec)
        return self

    def queue(self, name: str, **fields: Any) -> World:
        for field in ("capability", "deserved", "guarantee"):
            if field in fields:
                fields[field] = amounts(fields[field])
        fields.setdefault("state", "Open")
        self.cluster.put_queue(QueueSpec(name, **fields))
        return self

    def job(self, name: str, queue: str = "q", **fields: Any) -> World:
        fields.setdefault("phase", "Inqueue")
        if "min_resources" in fields:
            fields["min_resources"] = amounts(fields["min_resources"])
        self.cluster.put_job(JobSpec(f"ns/{name}", queue, namespace="ns", name=name, **fields))
        return self

    def pods(self, job: str, count: int = 1, node: str = "", **given: Any) -> World:
        """Pods of a job: running where a node is named, else pending. Fields of TaskSpec and of Shape are taken as such."""
        spec = {k: given.pop(k) for k in list(given) if k in TaskSpec.__struct_fields__ and k != "shape"}
        shape = {k: given.pop(k) for k in list(given) if k in Shape.__struct_fields__}
        if "claims" in shape:
            shape["namespace"] = "ns"
        spec.setdefault("status", TaskStatus.RUNNING if node else TaskStatus.PENDING)
        requests = amounts(given)
        assert requests is not None
        for _ in range(count):
            name = f"{job}-{self._pods}"
            self._pods += 1
            fields = {"uid": name, "namespace": "ns", "name": name, "job": f"ns/{job}", "node": node} | spec
            self.cluster.put_task(TaskSpec(shape=Shape(requests=requests, **shape), **fields))
        return self

    def session(
        self,
        *kinds: type[Plugin],
        arguments: dict[str, Any] | None = None,
        switches: dict[str, bool] | None = None,
        compat: str = "strict",
        now: float = 0.0,
    ) -> Session:
        """A session of these plugins in one tier; arguments and switches go to each."""
        tier = tuple(PluginOption(k.name, {**DEFAULTS, **(switches or {})}, arguments or {}) for k in kinds)
        policy = Policy((), (tier,), compat=compat, dialect=compat, semantics=COMPAT[compat])
        return Session(self.cluster.snapshot(), policy, Registry(kinds), now)


def job_of(session: Session, name: str) -> Job:
    found = session.job(session.snapshot.jobs.keys.index(f"ns/{name}"))
    assert found is not None
    return found


def place(session: Session, job: str, node: str, count: int = 1, *, pipelined: bool = False) -> None:
    """Put pending pods of a job on a node, in a statement of its own that is kept."""
    found = job_of(session, job)
    tasks = found.tasks_in(TaskStatus.PENDING)[:count]
    row = session.snapshot.nodes.row(node)
    assert row is not None and len(tasks) == count
    statement = session.statement()
    put = statement.pipeline if pipelined else statement.allocate
    put(found, tasks, [row] * count, session.class_of(tasks[0]))


def place_in_steps(session: Session, job: str, at_once: int) -> list[tuple[int, int]]:
    """Place pending equal pods of a job where the session chooses, up to `at_once` of them in one step, until no node has room.
    Returns the tasks and their nodes."""
    found = job_of(session, job)
    waiting, placed = list(found.tasks_in(TaskStatus.PENDING)), list[tuple[int, int]]()
    while waiting:
        task = session.class_of(waiting[0])
        chosen, _ = session.view(task).choose(min(at_once, len(waiting)))
        if not chosen:
            break
        now, waiting = waiting[: len(chosen)], waiting[len(chosen) :]
        session.statement().allocate(found, now, chosen, task)
        placed += zip(now, chosen, strict=True)
    return placed
