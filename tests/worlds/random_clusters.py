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
        make: Callable[[], Object | None] = self.pick(
            lambda: None,
            lambda: {},
            lambda: {"matchLabels": self.labels()},
            lambda: {"matchLabels": self.labels()},
            lambda: {"matchExpressions": self.some(self.expression, 1, 2)},
        )
        return make()

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

    # storage

    def storage(self, nodes: Sequence[str]) -> list[Object]:
        """Classes, volumes, claims and what nodes attach; claims c0 to c3 of both namespaces, some missing."""
        made: list[Object] = []
        for name, mode in (("wait", "WaitForFirstConsumer"), ("now", "Immediate")):
            found: Object = {"kind": "StorageClass", "metadata": {"name": name}, "volumeBindingMode": mode}
            found["provisioner"] = self.pick("p", "kubernetes.io/no-provisioner")
            if self.chance(3):
                expressions = [{"key": "rack", "values": self.subset(("1", "2"), 1)}]
                found["allowedTopologies"] = [{"matchLabelExpressions": expressions}]
            made.append(found)
        made += [self.volume(f"v{i}") for i in range(4)]
        made += [self.claim(f"c{i}", space) for i in range(4) for space in ("default", "other") if not self.chance(8)]
        for node in nodes:
            if not self.chance(3):
                drivers = [{"name": d, "allocatable": {"count": self.random.randint(0, 2)}} for d in self.subset(("d", "p"))]
                meta: Object = {"name": node}
                if self.chance(3):
                    meta["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
                made.append({"kind": "CSINode", "metadata": meta, "spec": {"drivers": drivers}})
        if self.chance(2):
            made.append({"kind": "CSIDriver", "metadata": {"name": "p"}, "spec": {"storageCapacity": True}})
            topology = self.pick({}, {"matchLabels": {"rack": "1"}})
            meta = {"name": "k", "namespace": "default"}
            room = {"storageClassName": "wait", "nodeTopology": topology, "capacity": self.pick("1Gi", "2Gi")}
            made.append({"kind": "CSIStorageCapacity", "metadata": meta, **room})
        if self.chance(2):
            spec = {"attacher": "d", "nodeName": self.pick(*nodes), "source": {"persistentVolumeName": "v0"}}
            made.append({"kind": "VolumeAttachment", "metadata": {"name": "a"}, "spec": spec})
        return [{"apiVersion": "v1", **each} for each in made]

    def volume(self, name: str) -> Object:
        spec: Object = {"capacity": {"storage": self.pick("1Gi", "2Gi", "3Gi")}, "storageClassName": self.pick("wait", "wait", "now")}
        spec["accessModes"] = self.subset(("ReadWriteOnce", "ReadWriteOncePod"), 1)
        if self.chance(2):
            spec["csi"] = {"driver": "d", "volumeHandle": name}
        elif self.chance(2):
            spec["awsElasticBlockStore"] = {"volumeID": f"aws://{name}"}
        if self.chance(2):
            values = self.subset(("1", "2"), 1)
            term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": values}]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        if self.chance(5):
            spec["claimRef"] = {"name": "c0", "namespace": "default"}
        labels = {"topology.kubernetes.io/zone": self.pick("z1", "z1__z2")} if self.chance(3) else {}
        meta = {"name": name, "labels": labels}
        status = {"phase": self.pick("Available", "Available", "Bound")}
        return {"kind": "PersistentVolume", "metadata": meta, "spec": spec, "status": status}

    def claim(self, name: str, namespace: str) -> Object:
        meta: Object = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "annotations": {}}
        spec: Object = {"storageClassName": self.pick("wait", "wait", "wait", "now", "absent")}
        spec["accessModes"] = [self.pick("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod")]
        if not self.chance(4):
            spec["resources"] = {"requests": {"storage": self.pick("1Gi", "2Gi")}}
        if self.chance(2):
            spec["volumeName"] = self.pick("v0", "v1", "v2", "v3", "v9")
            if not self.chance(4):
                meta["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        elif self.chance(4):
            meta["annotations"]["volume.kubernetes.io/selected-node"] = self.pick("n0", "n1")
        if self.chance(12):
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}

    def mounts(self) -> list[Object]:
        made: list[Object] = []
        for number in range(self.random.randint(1, 2)):
            source: Object = {"persistentVolumeClaim": {"claimName": f"c{self.random.randint(0, 3)}"}}
            if self.chance(4):
                source = {"gcePersistentDisk": {"pdName": self.pick("x", "y"), "readOnly": self.chance(2)}}
            elif self.chance(6):
                source = {"awsElasticBlockStore": {"volumeID": self.pick("x", "y")}}
            made.append({"name": f"m{number}", **source})
        return made

    def case(self, *, volumes: bool = False) -> Object:
        """Nodes, placed pods, objects and one pending pod, in the form of a recorded case."""
        case = self._plain_case()
        if volumes:
            case["objects"] += self.storage([node["metadata"]["name"] for node in case["nodes"]])
            for pod in (*case["existingPods"], case["pod"]):
                if self.chance(2):
                    pod["spec"]["volumes"] = self.mounts()
        return case

    def _plain_case(self) -> Object:
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
