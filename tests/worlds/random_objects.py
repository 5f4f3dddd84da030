"""What random worlds of Kubernetes objects share: chances from a seed, the objects, and nodes with room for pods that run."""

from __future__ import annotations

from random import Random
from typing import Any

Object = dict[str, Any]
GPU = "nvidia.com/gpu"


class RandomObjects:
    """Every world of the same `seed` is the same. `jobs`: names of jobs that wait. `free`: amounts that are left on each node."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.objects: list[Object] = []
        self.jobs: list[str] = []
        self.queues: list[str] = []
        self.free: dict[str, dict[str, float]] = {}

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def add(self, version: str, kind: str, name: str, namespace: str = "", **rest: Any) -> Object:
        metadata: Object = {"name": name}
        if namespace:
            metadata["namespace"] = namespace
        found = {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
        self.objects.append(found)
        return found

    def room(self, spec: Object) -> str:
        """Take what a pod requests from a node that has it; empty: none has."""
        asked = {"cpu": 0.0, GPU: 0.0, "pods": 1.0}
        for container in spec["containers"]:
            for key, value in container["resources"].get("requests", {}).items():
                if key in asked:
                    asked[key] += int(str(value)[:-1]) / 1000 if str(value).endswith("m") else int(value)
        for name in self.random.sample(sorted(self.free), len(self.free)):
            if all(self.free[name][key] >= amount for key, amount in asked.items()):
                for key, amount in asked.items():
                    self.free[name][key] -= amount
                return name
        return ""

    def pod(self, name: str, namespace: str, spec: Object, created: str) -> Object:
        """A pod that waits, with a spec of its own."""
        spec = {**spec, "containers": [dict(each) for each in spec["containers"]]}
        made = self.add("v1", "Pod", name, namespace, spec=spec, status={"phase": "Pending"})
        made["metadata"]["creationTimestamp"] = created
        return made

    def start(self, pod: Object) -> bool:
        """Let the pod run, if some node has room. One in twelve is being deleted."""
        node = self.room(pod["spec"])
        if not node:
            return False
        pod["spec"]["nodeName"] = node
        pod["status"] = {"phase": "Running", "startTime": pod["metadata"]["creationTimestamp"]}
        if self.chance(12):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T08:55:00Z"
        return True
