"""Random clusters with groups of `scheduling.k8s.io`: some run, others come one after the other. The pods of one group are alike, so
that their order does not matter."""

from __future__ import annotations

from random import Random
from typing import Any

from navarch.testing.builders import node, pod

Object = dict[str, Any]
API, RESOURCE = "scheduling.k8s.io/v1alpha2", "resource.k8s.io/v1"
PRIORITIES = {0: "", 5: "five", 10: "ten"}


class GroupMaker:
    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.free: dict[str, int] = {}
        self.rack: dict[str, str] = {}
        self.reached_by_all = False

    def case(self, groups: int = 3) -> tuple[list[Object], list[list[Object]]]:
        """What is there before, and the groups that come: each with its pods first, and the PodGroup last."""
        draw = self.draw
        objects: list[Object] = []
        for number in range(draw.randint(1, 5)):
            name = f"n{number}"
            self.free[name], self.rack[name] = draw.randint(1, 5), draw.choice("aabb ").strip()
            made = node(name).cpu(str(self.free[name]))
            if self.rack[name]:
                made = made.label("rack", self.rack[name])
            objects.append(dict(made))
        objects += self._devices()
        for number in range(draw.randint(0, 4)):
            objects += self._group(f"r{number}", runs=True)
        for number in range(draw.choice((0, 0, 1))):
            objects.append(self._budget(f"b{number}"))
        return objects, [self._group(f"g{number}", runs=False) for number in range(groups)]

    def _devices(self) -> list[Object]:
        """Devices that one node has, or all reach. Pods share a claim on the latter only: within a group kube-scheduler 1.36 forgets
        that a claim on the former holds its pods to the node."""
        draw = self.draw
        devices = [{"name": f"dev-{number}"} for number in range(draw.randint(1, 4))]
        self.reached_by_all = draw.random() < 0.5
        place: Object = {"allNodes": True} if self.reached_by_all else {"nodeName": draw.choice(sorted(self.free))}
        pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d.example.com", "pool": pool, **place, "devices": devices}
        return [
            {"apiVersion": RESOURCE, "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}},
            {"apiVersion": RESOURCE, "kind": "ResourceSlice", "metadata": {"name": "pool"}, "spec": spec},
        ]

    def _claims(self, name: str, pods: list[Object]) -> list[Object]:
        """One claim for all pods of a group, or one for each."""
        kind = self.draw.choice(("", "", "shared" if self.reached_by_all else "own", "own"))
        made: list[Object] = []
        for number, user in enumerate(pods if kind else ()):
            claim = name if kind == "shared" else f"{name}-{number}"
            user["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": claim}]
            if kind == "own" or not number:
                request = {"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}}
                metadata = {"name": claim, "namespace": "default"}
                spec = {"devices": {"requests": [request]}}
                made.append({"apiVersion": RESOURCE, "kind": "ResourceClaim", "metadata": metadata, "spec": spec})
        return made

    def _group(self, name: str, *, runs: bool) -> list[Object]:
        draw = self.draw
        count = draw.choice((1, 2, 2, 3, 4))
        priority = draw.choice((0, 0, 5) if runs else (0, 5, 10, 10))
        cpu = draw.randint(1, 2)
        constrained = not runs and draw.random() < 0.35
        grouped = draw.random() < 0.8
        if not grouped and not runs:
            count = 1
        places = self._places(cpu)
        pods = []
        for number in range(count):
            made = pod(f"{name}-{number}").cpu(str(cpu)).label("group", name)
            made["spec"].pop("priority", None)
            if PRIORITIES[priority]:
                made["spec"]["priorityClassName"] = PRIORITIES[priority]
            if grouped:
                made["spec"]["schedulingGroup"] = {"podGroupName": name}
            if runs:
                if not places:
                    break
                where = draw.choice(places)
                self.free[where] -= cpu
                places = self._places(cpu)
                made["spec"]["nodeName"] = where
                made["status"] = {"phase": "Running", "startTime": f"2026-01-01T00:00:0{draw.randint(0, 9)}Z"}
            pods.append(dict(made))
        claims: list[Object] = []
        if not runs:
            self._bind_together(name, pods)
            claims = self._claims(name, pods)
        if not grouped:
            return [*claims, *pods]
        policy: Object = {"basic": {}} if draw.random() < 0.2 else {"gang": {"minCount": draw.randint(1, count)}}
        spec: Object = {"schedulingPolicy": policy}
        if constrained:
            spec["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
        if PRIORITIES[priority]:
            spec["priorityClassName"] = PRIORITIES[priority]
        spec["disruptionMode"] = draw.choice(("Pod", "PodGroup"))
        metadata = {"name": name, "namespace": "default"}
        return [*claims, *pods, {"apiVersion": API, "kind": "PodGroup", "metadata": metadata, "spec": spec}]

    def _bind_together(self, name: str, pods: list[Object]) -> None:
        """Now and then a rule that the pods of a group have about each other."""
        rule = self.draw.choice(("", "", "", "", "apart", "spread"))
        selector = {"matchLabels": {"group": name}}
        for made in pods:
            if rule == "apart":
                term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
                made["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
            elif rule == "spread":
                spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
                made["spec"]["topologySpreadConstraints"] = [{**spread, "labelSelector": selector}]

    def _places(self, cpu: int) -> list[str]:
        return [name for name, free in self.free.items() if free >= cpu]

    def _budget(self, name: str) -> Object:
        selector = {"matchLabels": {"group": f"r{self.draw.randint(0, 3)}"}}
        metadata = {"name": name, "namespace": "default"}
        status = {"disruptionsAllowed": self.draw.randint(0, 1)}
        kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        return {**kind, "metadata": metadata, "spec": {"minAvailable": 1, "selector": selector}, "status": status}
