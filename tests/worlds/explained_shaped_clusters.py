"""Random clusters for explanations, each of one shape that real clusters have: a queue that borrows all, a cluster in fragments, a
long backlog, pools of nodes, volumes that are bound late, devices that pods share, gangs that are half there, trees of queues.

The other random worlds mix everything a little. Here one trouble is large, and policies are drawn too. Every pod of job `j7` is named
`j7-...`, or `j7` where it stands alone. The judge finds pods by that.
"""

from __future__ import annotations

from random import Random
from typing import Any

Object = dict[str, Any]
GPU, HOST, ZONE = "nvidia.com/gpu", "kubernetes.io/hostname", "topology.kubernetes.io/zone"
VOLCANO, KAI = "scheduling.volcano.sh/v1beta1", "scheduling.run.ai/v2alpha2"
SHAPES = ("borrowing", "fragments", "backlog", "pools", "volumes", "devices", "halves", "tree")
PRESETS = ("navarch", "volcano", "kai", "kube-scheduler", "kube-batch", "fifo", "fifo-skip", "sjf", "easy", "packing")
CREATED = "2026-01-01T0{}:{:02d}:00Z"


def random_policy(random: Random) -> Object:
    """A policy file in Volcano's form that loads: plugins in random tiers, actions in an order that makes sense."""
    some = random.sample
    first = ["priority", "gang", "conformance", *some(("pdb", "sla", "namespace-turns", "ageing", "shortest-first"), 1)]
    queues = random.choice(("proportion", "capacity", "proportion"))
    second = ["predicates", queues, *some(("drf", "nodeorder", "binpack", "best-fit", "overcommit", "fragmentation"), 3)]
    random.shuffle(first)
    random.shuffle(second)
    evicting = random.choice((["preempt", "reclaim"], ["gangpreempt", "gangreclaim"], ["reclaim"], ["preempt"], [], ["gangreclaim"]))
    actions = ["enqueue"] * random.randrange(2) + ["allocate", *random.sample(evicting, len(evicting)), "backfill"]
    if random.randrange(3) == 0:
        actions.remove("backfill")
    found: Object = {
        "actions": ", ".join(actions),
        "tiers": [{"plugins": [{"name": each} for each in tier]} for tier in (first, second)],
    }
    if random.randrange(3) == 0:
        found["compat"] = "volcano"
    return found


class World:
    """The objects, the policy, and the names of jobs that wait, each with its namespace."""

    def __init__(self, seed: int, policy: str = "", shape: str = "") -> None:
        self.random = Random(f"shaped {seed}")
        self.shape = shape or SHAPES[seed % len(SHAPES)]
        self.policy: Any = policy or (random_policy(self.random) if self.chance(3) else self.random.choice(PRESETS))
        self.kai = self.policy == "kai"
        self.objects: list[Object] = []
        self.jobs: list[str] = []
        self.free: dict[str, dict[str, float]] = {}
        self.queues: list[str] = []
        self.classes = [f"p{value}" for value in (0, 100, 1000)]
        for value in (0, 100, 1000):
            self._add("scheduling.k8s.io/v1", "PriorityClass", f"p{value}", value=value)
        getattr(self, f"_{self.shape}")()
        self.random.shuffle(self.objects)

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def pick(self, *values: Any) -> Any:
        return self.random.choice(values)

    def _add(self, version: str, kind: str, name: str, namespace: str = "", **rest: Any) -> Object:
        metadata: Object = {"name": name} | ({"namespace": namespace} if namespace else {})
        found = {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
        self.objects.append(found)
        return found

    # parts

    def _node(self, name: str, cpu: int, gpus: int, labels: dict[str, str] | None = None, **spec: Any) -> None:
        amounts = {"cpu": str(cpu), "memory": "256Gi", "pods": "60"} | ({GPU: str(gpus)} if gpus else {})
        self.free[name] = {"cpu": float(cpu), GPU: float(gpus)}
        status = {"allocatable": amounts, "capacity": dict(amounts), "conditions": [{"type": "Ready", "status": "True"}]}
        node = self._add("v1", "Node", name, spec=spec, status=status)
        node["metadata"]["labels"] = {HOST: name, ZONE: self.pick("a", "b"), **(labels or {})}

    def _queue(self, name: str, parent: str = "", *, leaf: bool = True, **spec: Any) -> None:
        if leaf:
            self.queues.append(name)
        if self.kai:
            amounts = {each: {"quota": -1, "limit": -1, "overQuotaWeight": spec.get("weight", 1)} for each in ("gpu", "cpu", "memory")}
            for field, key in (("deserved", "quota"), ("capability", "limit")):
                if field in spec:
                    amounts["gpu"][key] = int(spec[field].get(GPU, 0))
                    amounts["cpu"][key] = 1000 * int(spec[field].get("cpu", 0))
            body: Object = {"resources": amounts} | ({"parentQueue": parent} if parent else {})
            self._add("scheduling.run.ai/v2", "Queue", name, spec=body)
        elif self.policy != "kube-scheduler":
            self._add(VOLCANO, "Queue", name, spec=spec | ({"parent": parent} if parent else {}), status={"state": "Open"})

    def _pod_spec(self, cpu: float, gpus: int = 0) -> Object:
        requests = {"cpu": f"{int(cpu * 1000)}m"} | ({GPU: str(gpus)} if gpus else {})
        resources: Object = {"requests": requests} | ({"limits": {GPU: str(gpus)}} if gpus else {})
        return {"containers": [{"name": "main", "image": "x", "resources": resources}]}

    def _gang(
        self, name: str, spec: Object, size: int, least: int, queue: str = "", *, running: int = 0, priority: str = ""
    ) -> list[Object]:
        """`running`: so many of its pods get a node, as far as there is room."""
        version = KAI if self.kai else VOLCANO
        group: Object = {"minMember": least} | ({"queue": queue} if queue else {})
        priority = priority or (self.pick(*self.classes) if self.chance(2) else "")
        if priority:
            group["priorityClassName"] = priority
        made = self._add(version, "PodGroup", name, "default", spec=group)
        created = CREATED.format(self.random.randint(0, 8), self.random.randint(0, 59))
        made["metadata"]["creationTimestamp"] = created
        if not self.kai:
            made["status"] = {"phase": "Running" if running >= least else self.pick("Pending", "Inqueue")}
        pods = []
        for number in range(size):
            own = {**spec, "containers": [dict(each) for each in spec["containers"]]} | (
                {"priorityClassName": priority} if priority else {}
            )
            pod = self._add("v1", "Pod", f"{name}-{number}", "default", spec=own, status={"phase": "Pending"})
            pod["metadata"] |= {"creationTimestamp": created, "labels": {"app": name, "tier": self.pick("x", "y")}}
            pod["metadata"]["annotations"] = {"pod-group-name" if self.kai else "scheduling.k8s.io/group-name": name}
            if number < running and (node := self._room(spec)):
                own["nodeName"] = node
                pod["status"] = {"phase": "Running", "startTime": created}
            pods.append(pod)
        if not running:
            self.jobs.append(f"default/{name}")
        return pods

    def _room(self, spec: Object) -> str:
        requests = spec["containers"][0]["resources"]["requests"]
        cpu, gpus = int(requests["cpu"][:-1]) / 1000, int(requests.get(GPU, 0))
        for name in self.random.sample(sorted(self.free), len(self.free)):
            free = self.free[name]
            if free["cpu"] >= cpu and free[GPU] >= gpus:
                free["cpu"] -= cpu
                free[GPU] -= gpus
                return name
        return ""

    def _budget(self) -> None:
        if self.chance(3):
            spec = {"selector": {"matchLabels": {"tier": "x"}}, self.pick("minAvailable", "maxUnavailable"): self.pick(1, 2, "50%")}
            self._add("policy/v1", "PodDisruptionBudget", "budget", "default", spec=spec)

    # shapes

    def _borrowing(self) -> None:
        """One queue holds nearly all with elastic gangs, the others wait below their due."""
        for number in range(self.random.randint(2, 5)):
            self._node(f"n{number}", 16, 8)
        for name, weight in (("rich", self.pick(1, 2)), ("poor", self.pick(1, 2, 5)), ("idle", 1)):
            deserved: Object = {"deserved": {"cpu": "16", GPU: "8", "memory": "64Gi"}} if self.chance(2) else {}
            self._queue(name, weight=weight, reclaimable=not self.chance(6), **deserved)
        for number in range(self.random.randint(3, 7)):
            size = self.random.randint(2, 6)
            self._gang(f"r{number}", self._pod_spec(1, self.pick(1, 2)), size, self.random.randint(1, size), "rich", running=size)
        self._budget()
        for number in range(self.random.randint(1, 3)):
            size = self.random.randint(2, 6)
            self._gang(
                f"j{number}", self._pod_spec(1, self.pick(1, 2, 4)), size, self.pick(size, size - 1), self.pick("poor", "poor", "rich")
            )

    def _fragments(self) -> None:
        """Small pods everywhere, and gangs that need whole nodes."""
        for number in range(self.random.randint(4, 9)):
            self._node(f"n{number}", 32, 8)
        self._queue("q")
        for number in range(self.random.randint(8, 18)):
            self._gang(f"r{number}", self._pod_spec(self.pick(1, 4), self.pick(1, 2, 3)), 1, 1, "q", running=1)
        self._budget()
        for number in range(2):
            self._gang(f"j{number}", self._pod_spec(4, self.pick(4, 6, 8)), self.random.randint(1, 3), self.pick(1, 1, 2, 3), "q")
        for pod in self.objects:
            if pod["kind"] == "PodGroup" and pod["metadata"]["name"].startswith("j"):
                pod["spec"]["minMember"] = min(pod["spec"]["minMember"], 3)

    def _backlog(self) -> None:
        """Many jobs wait for a little room, by priority, age and size."""
        for number in range(self.random.randint(1, 3)):
            self._node(f"n{number}", 16, 4)
        for number in range(self.random.randint(1, 4)):
            self._queue(f"q{number}", weight=self.pick(1, 1, 3))
        for number in range(self.random.randint(2, 4)):
            self._gang(f"r{number}", self._pod_spec(self.pick(2, 4), self.pick(0, 1)), 2, 1, self.pick(*self.queues), running=2)
        for number in range(self.random.randint(8, 20)):
            size = self.random.randint(1, 4)
            least = self.random.randint(1, size)
            self._gang(f"j{number}", self._pod_spec(self.pick(1, 2, 6), self.pick(0, 0, 1, 2)), size, least, self.pick(*self.queues))
        self.jobs = self.random.sample(self.jobs, 3)

    def _pools(self) -> None:
        """Nodes in pools by label and taint; jobs that ask for a pool in different ways."""
        pools = ("blue", "red", "spot")
        for number in range(self.random.randint(4, 8)):
            pool = self.pick(*pools)
            taints = [{"key": "pool", "value": pool, "effect": self.pick("NoSchedule", "NoExecute")}] if pool == "spot" else []
            extra: Object = {"taints": taints} if taints else {}
            if self.chance(5):
                extra["unschedulable"] = True
            self._node(
                f"n{number}", self.pick(8, 16), self.pick(0, 4), {"pool": pool, "generation": str(self.random.randint(1, 5))}, **extra
            )
        self._queue("q")
        for number in range(self.random.randint(3, 9)):
            self._gang(f"r{number}", self._pod_spec(self.pick(2, 4), self.pick(0, 1)), 2, 2, "q", running=2)
        for number in range(3):
            spec = self._pod_spec(self.pick(2, 4, 8), self.pick(0, 1, 2))
            if self.chance(2):
                spec["nodeSelector"] = {"pool": self.pick(*pools, "green")}
            else:
                rules = [{"key": "generation", "operator": self.pick("Gt", "Lt"), "values": [str(self.random.randint(1, 5))]}]
                rules += [{"key": "pool", "operator": "NotIn", "values": [self.pick(*pools)]}] if self.chance(2) else []
                terms = {"nodeSelectorTerms": [{"matchExpressions": rules}]}
                spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
            if self.chance(3):
                spec["tolerations"] = [{"key": "pool", "operator": "Equal", "value": "spot"}]
            if self.chance(3):
                term = {"topologyKey": self.pick(HOST, ZONE), "labelSelector": {"matchLabels": {"tier": "x"}}}
                which = self.pick("podAntiAffinity", "podAffinity")
                spec.setdefault("affinity", {})[which] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            if self.chance(3):
                spread = {"maxSkew": 1, "topologyKey": self.pick(HOST, ZONE), "whenUnsatisfiable": "DoNotSchedule"}
                spec["topologySpreadConstraints"] = [spread | {"labelSelector": {"matchLabels": {"tier": self.pick("x", "y")}}}]
            size = self.random.randint(1, 4)
            self._gang(f"j{number}", spec, size, self.pick(size, 1), "q")

    def _volumes(self) -> None:
        """Claims that are bound when a pod is placed, volumes of one zone, a volume that only one pod may use."""
        for number in range(self.random.randint(2, 5)):
            self._node(f"n{number}", 16, self.pick(0, 4))
            limit = {"count": self.random.randint(1, 3)}
            drivers = [{"name": "disk.example.com", "nodeID": f"n{number}", "topologyKeys": [ZONE], "allocatable": limit}]
            self._add("storage.k8s.io/v1", "CSINode", f"n{number}", spec={"drivers": drivers})
        topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": [self.pick("a", "b")]}]}]
        late: Object = {"provisioner": "disk.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
        self._add(
            "storage.k8s.io/v1", "StorageClass", "late", **(late | ({"allowedTopologies": topologies} if self.chance(2) else {}))
        )
        self._add(
            "storage.k8s.io/v1",
            "StorageClass",
            "local",
            provisioner="kubernetes.io/no-provisioner",
            volumeBindingMode="WaitForFirstConsumer",
        )
        self._queue("q")
        for number in range(self.random.randint(0, 3)):
            terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [f"n{self.random.randint(0, 3)}"]}]}]
            affinity = {"required": {"nodeSelectorTerms": terms}}
            spec = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
            self._add(
                "v1",
                "PersistentVolume",
                f"pv{number}",
                spec=spec | {"nodeAffinity": affinity, "local": {"path": "/x"}},
                status={"phase": "Available"},
            )
        for number in range(self.random.randint(2, 5)):
            self._gang(f"r{number}", self._pod_spec(self.pick(2, 4, 8)), 2, 1, "q", running=2)
        for number in range(2):
            pods = self._gang(f"j{number}", self._pod_spec(self.pick(2, 4)), self.random.randint(1, 3), 1, "q")
            for pod in pods:
                name = f"{pod['metadata']['name']}-data" if self.chance(2) else f"j{number}-data"
                mode = self.pick("ReadWriteOnce", "ReadWriteOncePod")
                claim = {
                    "accessModes": [mode],
                    "storageClassName": self.pick("late", "local"),
                    "resources": {"requests": {"storage": "1Gi"}},
                }
                if not any(each["kind"] == "PersistentVolumeClaim" and each["metadata"]["name"] == name for each in self.objects):
                    self._add("v1", "PersistentVolumeClaim", name, "default", spec=claim, status={"phase": "Pending"})
                pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]

    def _devices(self) -> None:
        """Claims that pods share, requests with alternatives, claims that hold devices already."""
        driver = "card.example.com"
        self._add("resource.k8s.io/v1", "DeviceClass", "card", spec={})
        for number in range(self.random.randint(2, 4)):
            self._node(f"n{number}", 16, 0)
            cards = [
                {
                    "name": f"c{card}",
                    "attributes": {"size": {"int": self.pick(1, 2)}},
                    "capacity": {"memory": {"value": self.pick("20Gi", "40Gi")}},
                }
                for card in range(self.random.randint(1, 4))
            ]
            pool = {"name": f"n{number}", "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": driver, "pool": pool, "nodeName": f"n{number}", "devices": cards}
            self._add("resource.k8s.io/v1", "ResourceSlice", f"n{number}-cards", spec=spec)
        self._queue("q")
        for number in range(self.random.randint(1, 3)):
            (pod,) = self._gang(f"r{number}", self._pod_spec(2), 1, 1, "q", running=1)
            node = pod["spec"].get("nodeName")
            if node:
                results = [{"request": "cards", "driver": driver, "pool": node, "device": f"c{number}"}]
                fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
                selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
                status = {
                    "allocation": {"devices": {"results": results}, "nodeSelector": selector},
                    "reservedFor": [{"resource": "pods", "name": f"r{number}-0", "uid": f"default/r{number}-0"}],
                }
                devices = {"requests": [{"name": "cards", "exactly": {"deviceClassName": "card"}}]}
                self._add(
                    "resource.k8s.io/v1", "ResourceClaim", f"r{number}-claim", "default", spec={"devices": devices}, status=status
                )
                pod["spec"]["resourceClaims"] = [{"name": "cards", "resourceClaimName": f"r{number}-claim"}]
        for number in range(2):
            big = {"deviceClassName": "card", "selectors": [{"cel": {"expression": f'device.attributes["{driver}"].size == 2'}}]}
            few: Object = {"deviceClassName": "card", "count": self.pick(1, 2)}
            request: Object = self.pick(
                {"exactly": few}, {"exactly": big}, {"exactly": {"deviceClassName": "card", "allocationMode": "All"}}
            )
            if self.chance(3):
                request = {"firstAvailable": [{"name": "big", **big}, {"name": "any", **few}]}
            devices = {"requests": [{"name": "cards", **request}]}
            spec = self._pod_spec(self.pick(2, 4))
            if self.chance(2):
                self._add("resource.k8s.io/v1", "ResourceClaim", f"j{number}-claim", "default", spec={"devices": devices})
                spec["resourceClaims"] = [{"name": "cards", "resourceClaimName": f"j{number}-claim"}]
            else:
                self._add(
                    "resource.k8s.io/v1", "ResourceClaimTemplate", f"j{number}-each", "default", spec={"spec": {"devices": devices}}
                )
                spec["resourceClaims"] = [{"name": "cards", "resourceClaimTemplateName": f"j{number}-each"}]
            size = self.random.randint(1, 3)
            self._gang(f"j{number}", spec, size, self.pick(size, 1), "q")

    def _halves(self) -> None:
        """Gangs with some pods on nodes and below their minimum, pods that leave, promises, finished members."""
        for number in range(self.random.randint(2, 4)):
            self._node(f"n{number}", 8, 4)
        self._queue("q0")
        self._queue("q1", weight=2)
        for number in range(self.random.randint(2, 5)):
            size = self.random.randint(1, 3)
            for pod in self._gang(
                f"r{number}", self._pod_spec(self.pick(1, 2), self.pick(0, 1)), size, size, self.pick("q0", "q1"), running=size
            ):
                if pod["spec"].get("nodeName") and self.chance(3):
                    pod["metadata"]["deletionTimestamp"] = "2026-01-01T08:55:00Z"
        for number in range(3):
            size = self.random.randint(2, 5)
            running = self.random.randint(0, size - 2)
            pods = self._gang(
                f"j{number}",
                self._pod_spec(self.pick(1, 2, 4), self.pick(0, 1)),
                size,
                size - self.pick(0, 0, 1),
                self.pick("q0", "q1"),
                running=running,
            )
            if running:
                self.jobs.append(f"default/j{number}")
            last = pods[-1]
            if self.chance(3):
                last["status"] = {"phase": "Pending", "nominatedNodeName": self.pick("n0", "n1")}
            elif self.chance(4):
                last["status"], last["spec"]["nodeName"] = {"phase": self.pick("Succeeded", "Failed")}, "n0"
            elif self.chance(5):
                last["spec"]["schedulingGates"] = [{"name": "hold"}]

    def _tree(self) -> None:
        """Three levels of queues with bounds at each."""
        for number in range(self.random.randint(2, 4)):
            self._node(f"n{number}", 16, 8)

        def bounds(size: int) -> Object:
            found: Object = {"weight": self.pick(1, 2)}
            if self.chance(2):
                found["deserved"] = {"cpu": str(size), GPU: str(size // 2), "memory": "64Gi"}
            if self.chance(2):
                found["capability"] = {"cpu": str(size + self.pick(0, 4)), GPU: str(size // 2 + self.pick(0, 2)), "memory": "128Gi"}
            return found

        for top in ("one", "two"):
            self._queue(top, "" if self.kai else "root", leaf=False, **bounds(20))
            for number in range(self.random.randint(1, 2)):
                self._queue(f"{top}-{number}", top, **bounds(10))
        for number in range(self.random.randint(3, 8)):
            size = self.random.randint(1, 4)
            self._gang(
                f"r{number}",
                self._pod_spec(self.pick(1, 2), self.pick(0, 1, 2)),
                size,
                self.pick(1, size),
                self.pick(*self.queues),
                running=size,
            )
        for number in range(3):
            size = self.random.randint(1, 5)
            self._gang(
                f"j{number}", self._pod_spec(self.pick(1, 2, 4), self.pick(0, 1, 2)), size, self.pick(1, size), self.pick(*self.queues)
            )
