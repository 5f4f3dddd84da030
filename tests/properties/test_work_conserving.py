"""Strict policies leave nothing idle that a waiting gang could use, unless a hard limit forbids it; and shares stay fair."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import navarch

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
UNITS = {"cpu": 1000, GPU: 1000}
PLACES = [{"name": name} for name in ("gang", "predicates", "nodeorder")]


def policy(actions: str, *plugins: str) -> Object:
    return {"actions": actions, "tiers": [{"plugins": [*PLACES, *({"name": name} for name in plugins)]}]}


POLICIES: dict[str, Any] = {
    "navarch": "navarch",
    "proportion": policy("allocate", "proportion"),
    "proportion and reclaim": policy("allocate, reclaim, preempt", "priority", "proportion"),
    "capacity": policy("allocate, reclaim", "capacity"),
    "drf": policy("allocate, preempt", "drf"),
    "drf and proportion": policy("allocate, gangreclaim, gangpreempt", "priority", "drf", "proportion"),
}


class World:
    """A random cluster, and how much of it is idle once a cycle is over."""

    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed)
        self.objects: list[Object] = []
        self.idle: dict[str, dict[str, int]] = {}
        self.labels: dict[str, str] = {}
        self.limits: dict[str, int] = {}
        self.held: Counter[str] = Counter()
        self.waiting: dict[str, tuple[str, str, int, dict[str, int]]] = {}
        """Gang -> its queue, the pool it wants, how many pods it needs, and what each asks for."""
        for number in range(random.randint(1, 4)):
            self.node(f"n{number}", random.choice("ab"), random.randint(1, 12), random.randint(0, 8))
        for number in range(random.randint(1, 4)):
            self.queue(f"q{number}", random.randint(1, 9), random.choice((None, None, random.randint(0, 8))))
        for number in range(random.randint(0, 3)):
            self.gang(f"r{number}", running=True)
        for number in range(random.randint(1, 7)):
            self.gang(f"w{number}", running=False)

    def node(self, name: str, pool: str, cpu: int, gpu: int) -> None:
        allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": "64", GPU: str(gpu)}
        metadata = {"name": name, "labels": {"pool": pool}}
        ready = {"type": "Ready", "status": "True"}
        status = {"allocatable": allocatable, "conditions": [ready]}
        self.objects.append({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
        self.idle[name], self.labels[name] = {"cpu": cpu, GPU: gpu}, pool

    def queue(self, name: str, weight: int, limit: int | None) -> None:
        spec: Object = {"weight": weight, "reclaimable": True}
        if limit is not None:
            spec["capability"] = {GPU: str(limit)}
            self.limits[name] = limit
        version = "scheduling.volcano.sh/v1beta1"
        status = {"state": "Open"}
        self.objects.append({"apiVersion": version, "kind": "Queue", "metadata": {"name": name}, "spec": spec, "status": status})

    def gang(self, name: str, *, running: bool) -> None:
        random = self.random
        queue = f"q{random.randrange(sum(o['kind'] == 'Queue' for o in self.objects))}"
        pods, pool = random.randint(1, 4), random.choice(("", "", "a", "b", "none"))
        asked = {"cpu": random.choice((0, 1, 2, 50)), GPU: random.choice((0, 1, 1, 2))}
        asked = {resource: amount for resource, amount in asked.items() if amount} or {"cpu": 1}
        places = [self.room_for(asked, pool) for _ in range(pods)] if running else [""] * pods
        if running and (None in places or self.held[queue] + pods * asked.get(GPU, 0) > self.limits.get(queue, 99)):
            return
        group = {"minMember": pods, "queue": queue}
        metadata = {"name": name, "namespace": "default"}
        version = "scheduling.volcano.sh/v1beta1"
        phase = {"phase": "Running" if running else "Inqueue"}
        self.objects.append({"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": group, "status": phase})
        for number, place in enumerate(places):
            self.objects.append(self.pod(f"{name}-{number}", name, asked, pool, place or ""))
        if running:
            self.held[queue] += pods * asked.get(GPU, 0)
        else:
            self.waiting[f"default/{name}"] = (queue, pool, pods, asked)

    def room_for(self, asked: dict[str, int], pool: str) -> str | None:
        for name, idle in self.idle.items():
            if pool in ("", self.labels[name]) and all(idle[resource] >= amount for resource, amount in asked.items()):
                self.take(name, asked)
                return name
        return None

    def take(self, node: str, asked: dict[str, int]) -> None:
        for resource, amount in asked.items():
            self.idle[node][resource] -= amount

    def pod(self, name: str, group: str, asked: dict[str, int], pool: str, node: str) -> Object:
        requests = {resource: str(amount) for resource, amount in asked.items()}
        spec: Object = {"schedulerName": "volcano", "containers": [{"name": "c", "resources": {"requests": requests}}]}
        if pool:
            spec["nodeSelector"] = {"pool": pool}
        if node:
            spec["nodeName"] = node
        metadata = {"name": name, "namespace": "default", "annotations": {"scheduling.k8s.io/group-name": group}}
        status = {"phase": "Running" if node else "Pending"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}

    def slots(self, pool: str, asked: dict[str, int]) -> int:
        nodes = [idle for name, idle in self.idle.items() if pool in ("", self.labels[name])]
        return sum(min(idle[resource] // amount for resource, amount in asked.items()) for idle in nodes)


def waiting_that_fit(world: World, record: Any) -> list[str]:
    """Gangs that wait after the cycle although what is idle would hold them and no hard limit forbids it."""
    bound = Counter(bind.job for bind in record.binds)
    for job, (queue, _, pods, asked) in world.waiting.items():
        assert bound[job] in (0, pods), "a gang is placed whole or not at all"
        world.held[queue] += bound[job] * asked.get(GPU, 0)
    for placed in (*record.binds, *record.nominations):
        if placed.job in world.waiting:
            world.take(placed.node, world.waiting[placed.job][3])
    promised = {nomination.job for nomination in record.nominations}
    found = []
    for job, (queue, pool, pods, asked) in world.waiting.items():
        within = world.held[queue] + pods * asked.get(GPU, 0) <= world.limits.get(queue, 99)
        if not bound[job] and job not in promised and within and world.slots(pool, asked) >= pods:
            found.append(job)
    return found


@pytest.mark.parametrize("name", POLICIES)
@given(seed=st.integers(0, 10**9))
def test_no_gang_waits_that_fits_what_is_idle(name: str, seed: int) -> None:
    world = World(seed)
    record = navarch.plan(world.objects, policy=POLICIES[name]).records[0]
    assert waiting_that_fit(world, record) == []


@given(seed=st.integers(0, 10**9))
def test_demand_that_no_node_can_meet_changes_nothing_for_others(seed: int) -> None:
    """A pod that asks for what no node has gets a queue of its own with a large weight; all else is decided as without it."""
    world, plain = World(seed), World(seed)
    world.queue("large", 1000, None)
    plain.queue("large", 1000, None)
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "never", "namespace": "default"}}
    world.objects += [{**group, "spec": {"minMember": 1, "queue": "large"}, "status": {"phase": "Inqueue"}}]
    world.objects.append(world.pod("never-0", "never", {"cpu": 1000}, "nowhere", ""))
    outcomes = [navarch.plan(each.objects, policy="navarch").records[0] for each in (plain, world)]
    assert outcomes[0].binds == outcomes[1].binds
    assert outcomes[0].evictions == outcomes[1].evictions
    for before, after in zip(*(record.queues for record in outcomes)):
        assert after.deserved == pytest.approx(before.deserved)


def serve(size: int, total: int, cycles: int, plugins: tuple[str, ...]) -> Counter[str]:
    """Gangs served to each queue over many cycles. Every queue always has gangs waiting; each cycle the oldest gang ends."""
    file = policy("allocate", *plugins)
    running: list[tuple[str, str]] = []
    """(gang, queue), oldest first."""
    waiting: dict[str, tuple[str, int]] = {}
    """Gang -> its queue and the cycle in which it was made."""
    served: Counter[str] = Counter()
    for cycle in range(cycles):
        world = World.__new__(World)
        world.objects, world.idle, world.labels, world.limits = [], {}, {}, {}
        world.node("n", "a", 64, total)
        for name, weight in WEIGHTS.items():
            world.queue(name, weight, None)
        if cycle:
            running.pop(0)
        group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
        for queue in WEIGHTS:
            there = sum(of == queue for of, _ in waiting.values())
            waiting |= {f"{queue}-{cycle:02}-{i}": (queue, cycle) for i in range(total // size - there)}
        for name, (queue, since) in [*((name, (queue, 0)) for name, queue in running), *waiting.items()]:
            node = "" if name in waiting else "n"
            status = {"phase": "Running" if node else "Inqueue"}
            metadata = {"name": name, "namespace": "default", "creationTimestamp": f"2026-01-01T00:00:{since:02}Z"}
            made = {**group, "metadata": metadata, "spec": {"minMember": size, "queue": queue}}
            world.objects.append({**made, "status": status})
            world.objects += [world.pod(f"{name}-{i}", name, {GPU: 1}, "", node) for i in range(size)]
        record = navarch.plan(world.objects, policy=file).records[0]
        placed = sorted({bind.job.removeprefix("default/") for bind in record.binds})
        running += [(name, waiting.pop(name)[0]) for name in placed]
        assert len(running) == total // size, "nothing idles"
        served.update(queue for _, queue in running)
    return served


WEIGHTS = {"q0": 1, "q1": 2, "q2": 3}


@pytest.mark.parametrize(("size", "total"), [(1, 6), (2, 12), (3, 20)])
@pytest.mark.parametrize("plugins", [("proportion",), ("drf", "proportion")])
def test_over_many_cycles_shares_come_to_the_weights(size: int, total: int, plugins: tuple[str, ...]) -> None:
    served = serve(size, total, 30, plugins)
    whole = sum(served.values())
    for name, weight in WEIGHTS.items():
        assert abs(served[name] / whole - weight / 6) <= size / total, served


def test_gangs_larger_than_every_share_are_served_in_turn() -> None:
    served = serve(4, 6, 30, ("proportion",))
    assert all(served[queue] >= 5 for queue in WEIGHTS), served
