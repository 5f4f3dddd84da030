"""Random small clusters as manifests, from a seed: every field that kube-scheduler's rules read, in odd combinations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
Object = dict[str, Any]


class Maker:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def pick(self, *values: Any) -> Any:
        return self.random.choice(values)

    def some(self, make: Callable[[], Any], least: int, most: int) -> list[Any]:
        return [make() for _ in range(self.random.randint(least, most))]

    def subset(self, values: Sequence[Any], least: int = 0) -> list[Any]:
        return self.random.sample(values, self.random.randint(least, len(values)))

    def labels(self) -> dict[str, str]:
        return {key: self.pick("a", "b") for key in self.subset(("app", "tier"))}

    def expression(self) -> Object:
        key = self.pick("app", "tier")
        if self.chance(2):
            return {"key": key, "operator": self.pick("Exists", "DoesNotExist")}
        return {"key": key, "operator": self.pick("In", "NotIn"), "values": self.subset(("a", "b"), 1)}

    def selector(self) -> Object | None:
        return self.pick(
            lambda: None,
            lambda: {},
            lambda: {"matchLabels": self.labels()},
            lambda: {"matchLabels": self.labels()},
            lambda: {"matchExpressions": self.some(self.expression, 1, 2)},
        )()

    def pod_term(self) -> Object:
        term: Object = {"topologyKey": self.pick(*KEYS)}
        selector = self.selector()
        if selector is not None:
            term["labelSelector"] = selector
        spaces = self.pick(None, None, ["default"], ["default", "other"])
        if spaces:
            term["namespaces"] = spaces
        if self.chance(4):
            absent = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
            term["namespaceSelector"] = self.pick({}, {"matchLabels": {"team": "x"}}, absent)
        return term

    def pod_terms(self) -> list[Object]:
        made = self.some(self.pod_term, 1, 2)
        return [term for i, term in enumerate(made) if term not in made[:i]]

    def node_requirement(self) -> Object:
        kind = self.random.randrange(3)
        if kind == 0:
            return {"key": "rack", "operator": self.pick("In", "NotIn"), "values": self.subset(("1", "2", "x"), 1)}
        if kind == 1:
            return {"key": self.pick(*KEYS), "operator": self.pick("Exists", "DoesNotExist")}
        return {"key": "rack", "operator": self.pick("Gt", "Lt"), "values": [self.pick("0", "1", "x")]}

    def node_term(self) -> Object:
        term: Object = {}
        found = self.some(self.node_requirement, 0, 2)
        if found:
            term["matchExpressions"] = found
        if self.chance(6):
            names = self.subset(("n0", "n1", "n9"), 1)
            term["matchFields"] = [{"key": "metadata.name", "operator": self.pick("In", "NotIn"), "values": names}]
        return term

    def affinity(self) -> Object:
        out: Object = {}
        if self.chance(3):
            node: Object = {}
            if self.chance(2):
                node[REQUIRED] = {"nodeSelectorTerms": self.some(self.node_term, 0, 2)}
            if self.chance(2):
                terms = self.some(self.node_term, 1, 2)
                node[PREFERRED] = [{"weight": self.random.randint(0, 50), "preference": term} for term in terms]
            out["nodeAffinity"] = node
        for side in ("podAffinity", "podAntiAffinity"):
            if self.chance(3):
                part: Object = {}
                if self.chance(2):
                    part[REQUIRED] = self.pod_terms()
                if self.chance(2):
                    part[PREFERRED] = [{"weight": self.random.randint(1, 100), "podAffinityTerm": t} for t in self.pod_terms()]
                out[side] = part
        return out

    def spread(self, key: str) -> Object:
        entry: Object = {
            "maxSkew": self.random.randint(1, 2),
            "topologyKey": key,
            "whenUnsatisfiable": self.pick("DoNotSchedule", "ScheduleAnyway"),
        }
        selector = self.selector()
        if selector is not None:
            entry["labelSelector"] = selector
        if self.chance(2):
            entry["nodeAffinityPolicy"] = self.pick("Honor", "Ignore")
            entry["nodeTaintsPolicy"] = self.pick("Honor", "Ignore")
        if entry["whenUnsatisfiable"] == "DoNotSchedule" and self.chance(4):
            entry["minDomains"] = self.random.randint(1, 4)
        if self.chance(6):
            entry["matchLabelKeys"] = ["tier"]
        return entry

    def pod(self, name: str, node: str | None = None) -> Object:
        requests = {}
        for resource in self.subset(("cpu", "memory", "example.com/gpu", "ephemeral-storage")):
            amount = self.pick("0", "1", "2")
            requests[resource] = amount if resource in ("cpu", "example.com/gpu") else f"{amount}Gi"
        container: Object = {"name": "c", "image": self.pick("web", "db:1", "h:5000/x")}
        if requests:
            container["resources"] = {"requests": requests}
        if self.chance(5):
            address = self.pick("", "10.0.0.1", "10.0.0.2")
            container["ports"] = [{"containerPort": 80, "hostPort": self.pick(80, 81), "hostIP": address}]
        spec: Object = {"containers": [container], "priority": self.pick(0, 5, 10)}
        if self.chance(4):
            spec["nodeSelector"] = {"rack": self.pick("1", "2")}
        affinity = self.affinity()
        if affinity:
            spec["affinity"] = affinity
        if self.chance(3):
            soft = {"operator": "Exists", "effect": "PreferNoSchedule"}
            hard = {"key": "k", "value": "v", "effect": "NoSchedule"}
            spec["tolerations"] = [self.pick({"key": "k", "operator": "Exists"}, hard, soft)]
        if self.chance(4):
            spec["topologySpreadConstraints"] = [self.spread(key) for key in self.subset(KEYS, 1)]
        status: Object = {"phase": "Running" if node else "Pending"}
        metadata: Object = {"name": name, "namespace": self.pick("default", "default", "other"), "uid": f"uid-{name}"}
        metadata["labels"] = self.labels()
        if node:
            spec["nodeName"] = node
            status["startTime"] = f"2026-01-01T00:00:0{self.random.randint(0, 3)}Z"
            if self.chance(8):
                metadata["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}

    def node(self, name: str) -> Object:
        room = {"cpu": self.pick("2", "4"), "memory": "4Gi", "pods": self.pick("2", "10"), "ephemeral-storage": "4Gi"}
        if self.chance(2):
            room["example.com/gpu"] = "2"
        found = {"kubernetes.io/hostname": name}
        for key, values in (("topology.kubernetes.io/zone", ("z1", "z2")), ("rack", ("1", "2", "x"))):
            if not self.chance(4):
                found[key] = self.pick(*values)
        spec: Object = {}
        if self.chance(4):
            effect = self.pick("NoSchedule", "PreferNoSchedule")
            spec["taints"] = [{"key": "k", "value": self.pick("v", "w"), "effect": effect}]
        if self.chance(8):
            spec["unschedulable"] = True
        held = self.subset(("web:latest", "db:1", "h:5000/x:latest"))
        images = [{"names": [image], "sizeBytes": 300 << 20} for image in held]
        status = {"allocatable": room, "capacity": room, "images": images}
        return {"metadata": {"name": name, "uid": name, "labels": found}, "spec": spec, "status": status}

    def case(self) -> Object:
        """Nodes, placed pods, objects and one pending pod, in the form of a recorded case."""
        names = [f"n{i}" for i in range(self.random.randint(1, 5))]
        existing = [self.pod(f"e{i}", self.pick(*names)) for i in range(self.random.randint(0, 7))]
        objects: list[Object] = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "x"}}},
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
        ]
        if self.chance(3):
            meta = {"name": "s", "namespace": "default"}
            objects.append({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": self.labels()}})
        if self.chance(3):
            objects.append(
                {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": {"name": "b", "namespace": "default"},
                    "spec": {"selector": {"matchLabels": self.labels()}},
                    "status": {"disruptionsAllowed": self.random.randint(0, 1)},
                }
            )
        return {"nodes": [self.node(n) for n in names], "existingPods": existing, "objects": objects, "pod": self.pod("p")}
