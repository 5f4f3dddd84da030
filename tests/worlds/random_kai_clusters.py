"""Random clusters, small and larger, with a tree of queues, gangs, elastic jobs and shared GPUs, in a state that could really be."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import DeviceRequest, JobSpec, NodeSpec, QueueShare, QueueSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus

CPUS, MEMORY, GPU_MEMORY = 16, 64, 40_000
FREE = QueueShare(-1.0, -1.0, 1.0)


@dataclass
class KaiWorld:
    rng: random.Random
    cluster: Cluster = field(default_factory=Cluster)
    free: dict[str, int] = field(default_factory=dict)
    """Node -> whole free GPUs."""
    room: dict[str, int] = field(default_factory=dict)
    shared: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Node -> its shared GPU and the thousandths of it that are free."""
    limits: dict[str, float] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    sharing: float = 0.25
    """How many jobs want a part of a GPU."""


def kai_world(seed: int, sharing: float = 0.25) -> KaiWorld:
    world = KaiWorld(random.Random(seed), sharing=sharing)
    return _filled(world, world.rng.randint(2, 4), (2, 4, 4), world.rng.randint(4, 10), 4)


def large_world(seed: int, sharing: float = 0.25, most_nodes: int = 60) -> KaiWorld:
    """Tens of nodes, hundreds of running pods, jobs that wait for many nodes at once."""
    world = KaiWorld(random.Random(seed), sharing=sharing)
    nodes = world.rng.randint(most_nodes // 2, most_nodes)
    return _filled(world, nodes, (4, 8, 8), 3 * nodes, 12)


def fragmented_world(seed: int) -> KaiWorld:
    """Every node has room, and no node has enough of it for a pod of the gangs that wait. Single pods and small gangs run."""
    world = KaiWorld(random.Random(seed), sharing=0.0)
    rng, nodes = world.rng, [f"node-{i}" for i in range(world.rng.randint(6, 12))]
    for name in nodes:
        _node(world, name, 8)
    _queue(world, "department", "", -1.0, -1.0, 0)
    _queue(world, "holder", "department", 0.0, -1.0, 1)
    _queue(world, "claimant", "department", float(8 * len(nodes)), -1.0, 2)
    asked, spread = rng.choice((5, 6, 6)), rng.choice((0.0, 0.0, 0.1, 0.5))
    for i, name in enumerate(nodes):
        while world.free[name] >= asked:
            others = [each for each in rng.sample(nodes, 2) if each != name and world.free[each] and rng.random() < spread]
            _gang(world, f"running-{i}-{world.free[name]}", "holder", 1, [name, *others])
    for i in range(rng.randint(1, 3)):
        _gang(world, f"waiting-{i}", "claimant", asked, [""] * rng.randint(2, 8))
    return world


def _gang(world: KaiWorld, name: str, queue: str, gpus: int, nodes: list[str]) -> None:
    """A gang with a pod on each of these nodes; pods without one wait. Some gangs need fewer pods than they have."""
    created = float(len(world.limits) + len(world.room) + sum(world.free.values()))
    least = len(nodes) if world.rng.random() < 0.8 else 1
    spec = JobSpec(
        f"ns/{name}", queue, least, "ns", name, name, "kai", priority=50, preemptable=True, created=created, phase="Inqueue"
    )
    world.cluster.put_job(spec)
    shape = Shape(requests=requests_from({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(gpus)}))
    for i, node in enumerate(nodes):
        status = TaskStatus.RUNNING if node else TaskStatus.PENDING
        if node:
            world.free[node] -= gpus
        pod = f"{name}-{i}"
        world.cluster.put_task(
            TaskSpec(pod, "ns", pod, shape, spec.key, node, status, created=created, phase=status.name.capitalize())
        )


def _node(world: KaiWorld, name: str, gpus: int) -> None:
    requests = {"cpu": str(CPUS), "memory": f"{MEMORY}Gi", "pods": "40", "nvidia.com/gpu": str(gpus)}
    labels = {"nvidia.com/gpu.memory": str(GPU_MEMORY), "kubernetes.io/hostname": name}
    world.cluster.put_node(NodeSpec(name, allocatable=requests_from(requests), labels=labels))
    world.free[name], world.room[name] = gpus, CPUS


def _filled(world: KaiWorld, nodes: int, sizes: tuple[int, ...], jobs: int, largest: int) -> KaiWorld:
    rng = world.rng
    for i in range(nodes):
        _node(world, f"node-{i}", rng.choice(sizes))
    total = sum(world.free.values())
    departments = [f"dep-{i}" for i in range(rng.randint(1, 2))]
    for i, name in enumerate(departments):
        _queue(world, name, "", rng.choice((-1.0, float(total))), -1.0, i)
    leaves = [f"queue-{i}" for i in range(rng.randint(2, 3))]
    for i, name in enumerate(leaves):
        limit = rng.choice((-1.0, -1.0, float(rng.randint(1, total))))
        _queue(world, name, rng.choice(departments), float(rng.randint(0, total)), limit, 10 + i)
    for i in range(jobs):
        _job(world, f"job-{i}", rng.choice(leaves), 100 + i, largest)
    return world


def _queue(world: KaiWorld, name: str, parent: str, quota: float, limit: float, created: int) -> None:
    world.limits[name], world.parents[name] = limit, parent
    shares = {"cpu": FREE, "memory": FREE, "gpu": QueueShare(quota, limit, float(world.rng.choice((0, 1, 2))))}
    world.cluster.put_queue(QueueSpec(name, parent=parent, priority=100, state="Open", shares=shares, created=float(created)))


def _job(world: KaiWorld, name: str, queue: str, created: int, largest: int) -> None:
    rng = world.rng
    size = rng.randint(1, largest)
    least = rng.randint(1, size)
    gpus = rng.choice((0, 1, 1, 2, 4) if largest < 8 else (0, 1, 1, 2, 4, 8))
    fraction = rng.choice((250, 500)) if rng.random() < world.sharing else 0
    runs = rng.random() < 0.6
    priority = rng.choice((50, 50, 75, 125))
    world.cluster.put_job(
        JobSpec(
            f"ns/{name}", queue, least, "ns", name, name, "kai", priority=priority, preemptable=priority < 100,
            created=float(created), phase="Inqueue",
        )
    )  # fmt: skip
    amounts = {"cpu": "1", "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus and not fraction else {})
    devices = DeviceRequest(fraction=fraction) if fraction else None
    shape = Shape(requests=requests_from(amounts), devices=devices)
    for i in range(size):
        node, groups = _place(world, gpus, fraction) if runs else ("", ())
        if runs and not node:
            runs = i >= least  # what is placed so far stays if the gang is whole; the rest waits
        status = TaskStatus.RUNNING if node else TaskStatus.PENDING
        world.cluster.put_task(
            TaskSpec(
                f"{name}-{i}", "ns", f"{name}-{i}", shape, f"ns/{name}", node, status, created=float(created),
                gpu_groups=groups, phase=status.name.capitalize(),
            )
        )  # fmt: skip


def _place(world: KaiWorld, gpus: int, fraction: int) -> tuple[str, tuple[str, ...]]:
    nodes = sorted(world.free)
    world.rng.shuffle(nodes)
    for node in nodes:
        if not world.room[node]:
            continue
        if fraction:
            group, left = world.shared.get(node, ("", 0))
            if left < fraction:
                if not world.free[node]:
                    continue
                world.free[node] -= 1
                group, left = f"group-{node}-{world.free[node]}", 1000
            world.shared[node] = (group, left - fraction)
            world.room[node] -= 1
            return node, (group,)
        if world.free[node] >= gpus:
            world.free[node] -= gpus
            world.room[node] -= 1
            return node, ()
    return "", ()
