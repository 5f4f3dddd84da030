"""Random clusters whose queues share idle resources, and the strict policies that divide them."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

Object = dict[str, Any]


GPU = "nvidia.com/gpu"


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

    def __init__(self, seed: int, *, admitted: bool = True) -> None:
        """`admitted` False: `enqueue` has yet to admit the gangs that wait."""
        self.admitted = admitted
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
        group: Object = {"minMember": pods, "queue": queue}
        if not self.admitted:
            group["minResources"] = {resource: str(pods * amount) for resource, amount in asked.items()}
        metadata = {"name": name, "namespace": "default"}
        version = "scheduling.volcano.sh/v1beta1"
        phase = {"phase": "Running" if running else "Inqueue" if self.admitted else "Pending"}
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
