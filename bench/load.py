"""A cluster of pods under construction, for benchmarks of kube-scheduler's rules."""

from __future__ import annotations

from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ROOM = requests_from({"cpu": "4", "memory": "32Gi", "pods": "110"})
PLAIN = Shape(requests=requests_from({"cpu": "100m", "memory": "500Mi"}), scoring=(100, 500 << 20), footprint=(100, 500 << 20))


class Load:
    """A cluster under construction."""

    def __init__(self, nodes: int, room: object = ROOM) -> None:
        self.cluster = Cluster()
        self.cluster.put_queue(QueueSpec("default", state="Open"))
        self.names = [f"node-{i:05d}" for i in range(nodes)]
        self.count = 0
        for i, name in enumerate(self.names):
            labels = {HOST: name, ZONE: f"zone-{i % 3}"}
            self.cluster.put_node(NodeSpec(name, allocatable=room, labels=labels))  # type: ignore[arg-type]

    def pods(
        self,
        count: int,
        shape: Shape,
        labels: dict[str, str] | None = None,
        *,
        placed: bool = False,
        priority: int = 0,
        ns: str = "ns",
    ) -> Load:
        for i in range(count):
            name = f"pod-{self.count + 1:06d}"
            job = f"{ns}/{name}"
            phase = "Running" if placed else "Pending"
            self.cluster.put_job(JobSpec(job, "default", namespace=ns, name=name, shadow=True, phase=phase))
            self._pod(name, job, shape, labels or {}, ns, self.names[i % len(self.names)] if placed else "", priority)
        return self

    def job(self, name: str, size: int, shape: Shape, labels: dict[str, str], *, placed: bool, ns: str = "ns") -> None:
        """A gang, on nodes that follow each other if it is placed."""
        job = f"{ns}/{name}"
        phase = "Running" if placed else "Inqueue"
        self.cluster.put_job(JobSpec(job, "default", min_member=size, namespace=ns, name=name, phase=phase))
        for i in range(size):
            node = self.names[self.count % len(self.names)] if placed else ""
            self._pod(f"{name}-{i}", job, shape, labels, ns, node)

    def _pod(self, name: str, job: str, shape: Shape, labels: dict[str, str], ns: str, node: str, priority: int = 0) -> None:
        self.count += 1
        self.cluster.put_task(
            TaskSpec(
                uid=name,
                namespace=ns,
                name=name,
                shape=shape,
                job=job,
                labels=labels,
                pod_priority=priority,
                priority=priority,
                created=float(self.count),
                node=node,
                status=TaskStatus.RUNNING if node else TaskStatus.PENDING,
            )
        )
