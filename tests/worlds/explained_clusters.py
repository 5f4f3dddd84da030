"""Random small clusters with jobs that wait, from a seed: gangs, queues, quotas, selectors, taints, priorities, workloads.

Every pod of job `j7` is named `j7-...`, or `j7` where it stands alone. The judge finds pods by that.
"""

from __future__ import annotations

from typing import Any

from tests.worlds.random_objects import GPU, Object, RandomObjects

POLICIES: dict[str, Any] = {
    "navarch": "navarch",
    "volcano": "volcano",
    "kai": "kai",
    "kube-batch": "kube-batch",
    "kube-scheduler": "kube-scheduler",
    "volcano-evicting": {
        "compat": "volcano",
        "actions": "enqueue, allocate, preempt, reclaim, backfill",
        "tiers": [
            {"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]},
            {"plugins": [{"name": "drf"}, {"name": "predicates"}, {"name": "capacity"}, {"name": "nodeorder"}]},
        ],
    },
    "kube-batch-evicting": {
        "compat": "kube-batch",
        "actions": "reclaim, allocate, backfill, preempt",
        "tiers": [
            {"plugins": [{"name": "priority"}, {"name": "gang"}]},
            {"plugins": [{"name": "drf"}, {"name": "predicates"}, {"name": "proportion"}, {"name": "nodeorder"}]},
        ],
    },
}
GROUPS = {
    "volcano": ("scheduling.volcano.sh/v1beta1", "scheduling.k8s.io/group-name"),
    "kube-batch": ("scheduling.incubator.k8s.io/v1alpha1", "scheduling.k8s.io/group-name"),
    "kai": ("scheduling.run.ai/v2alpha2", "pod-group-name"),
}


class World(RandomObjects):
    """The objects, and the names of jobs that wait."""

    def __init__(self, seed: int, policy: str) -> None:
        super().__init__(f"{policy} {seed}")
        self.kai = policy == "kai"
        self._nodes()
        self._queues(policy)
        for number in range(self.random.randint(0, 3)):
            self.add("scheduling.k8s.io/v1", "PriorityClass", f"p{number}", value=self.random.choice((0, 10, 60, 120, 1000)))
        self.classes = [each["metadata"]["name"] for each in self.objects if each["kind"] == "PriorityClass"]
        dialects = ("kai",) if self.kai else ("volcano", "kube-batch") if policy == "kube-batch" else ("volcano",)
        for number in range(self.random.randint(3, 9)):
            self._job(f"r{number}", self.random.choice(dialects), running=True)
        if self.chance(3):
            self._running_workload("r90")
        if self.chance(4):
            self._budget()
        for number in range(self.random.randint(1, 4)):
            name = f"j{number}"
            self.jobs.append(name)
            self._job(name, self.random.choice(dialects), running=False)

    def _nodes(self) -> None:
        for number in range(self.random.randint(1, 5)):
            name = f"n{number}"
            amounts = {
                "cpu": self.random.choice((4, 4, 8)),
                GPU: self.random.choice((0, 2, 4)),
                "pods": self.random.choice((4, 110)),
            }
            self.free[name] = {key: float(amount) for key, amount in amounts.items()}
            allocatable = {key: str(value) for key, value in amounts.items()} | {"memory": "32Gi"}
            spec: Object = {}
            if self.chance(6):
                spec["unschedulable"] = True
            if self.chance(5):
                spec["taints"] = [{"key": "maint", "value": "x", "effect": "NoSchedule"}]
            node = self.add("v1", "Node", name, spec=spec)
            node["metadata"]["labels"] = {
                "kubernetes.io/hostname": name,
                "zone": self.random.choice("ab"),
                "gpu": self.random.choice(("h100", "h200")),
            }
            ready = [{"type": "Ready", "status": "True" if not self.chance(12) else "False"}]
            node["status"] = {"allocatable": allocatable, "capacity": dict(allocatable), "conditions": ready}

    def _queues(self, policy: str) -> None:
        if policy == "kube-scheduler" or self.chance(6):
            return
        self.queues = [f"q{number}" for number in range(self.random.randint(1, 3))]
        if self.kai:
            top = self.chance(2)
            if top:
                self.add("scheduling.run.ai/v2", "Queue", "top", spec={"resources": self._shares()})
            for name in self.queues:
                spec: Object = {"resources": self._shares()}
                if top:
                    spec["parentQueue"] = "top"
                self.add("scheduling.run.ai/v2", "Queue", name, spec=spec)
            return
        for name in self.queues:
            spec = {"weight": self.random.choice((1, 1, 2, 4))}
            for field in ("capability", "deserved"):
                if self.chance(3):
                    spec[field] = {"cpu": str(self.random.randint(1, 8))}
            if self.chance(6):
                spec["reclaimable"] = False
            state = "Closed" if self.chance(12) else "Open"
            self.add("scheduling.volcano.sh/v1beta1", "Queue", name, spec=spec, status={"state": state})

    def _shares(self) -> Object:
        def one(unit: int) -> Object:
            return {
                "quota": self.random.choice((-1, 0, 2 * unit, 4 * unit)),
                "limit": self.random.choice((-1, -1, 4 * unit)),
                "overQuotaWeight": self.random.choice((0, 1, 2)),
            }

        return {"gpu": one(1), "cpu": one(1000), "memory": {"quota": -1, "limit": -1, "overQuotaWeight": 1}}

    def _pod_spec(self) -> Object:
        requests: Object = {}
        if not self.chance(10):
            requests["cpu"] = self.random.choice(("500m", "1", "2", "3"))
        if self.chance(3):
            requests[GPU] = str(self.random.choice((1, 2)))
        if self.chance(4):
            requests["memory"] = self.random.choice(("1Gi", "8Gi", "8Gi", "16Gi", "40Gi"))
        resources: Object = {"requests": requests}
        if GPU in requests:
            resources["limits"] = {GPU: requests[GPU]}
        spec: Object = {"containers": [{"name": "main", "image": "x", "resources": resources}]}
        if self.chance(6):
            spec["nodeSelector"] = {"gpu": self.random.choice(("h100", "h100", "h200", "h200", "b200"))}
        if self.chance(8):
            expression = {"key": "zone", "operator": "In", "values": [self.random.choice("aabbc")]}
            terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        if self.chance(6):
            spec["tolerations"] = [{"key": "maint", "operator": "Exists"}]
        if self.chance(10):
            spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        if self.classes and self.chance(2):
            spec["priorityClassName"] = self.random.choice(self.classes)
        if self.chance(12):
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
            affinity = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec.setdefault("affinity", {})[self.random.choice(("podAntiAffinity", "podAffinity"))] = affinity
        if self.chance(12):
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": "x"}},
                }
            ]
        return spec

    def _job(self, name: str, dialect: str, *, running: bool) -> None:
        kind = self.random.choice(("group", "group", "group", "pod", "workload", "volcano-job" if not self.kai else "pod"))
        created = f"2026-01-01T0{self.random.randint(0, 8)}:00:00Z"
        size = self.random.randint(1, 4)
        spec = self._pod_spec()
        if kind == "pod":
            self._pod(name, spec, created, running=running)
        elif kind == "workload" and not running:
            self._workload(name, spec, created, size)
        elif kind == "volcano-job" and not running:
            self._volcano_job(name, spec, created, size)
        else:
            self._group(name, dialect, spec, created, size, running=running)

    def _group(self, name: str, dialect: str, spec: Object, created: str, size: int, *, running: bool) -> None:
        version, annotation = GROUPS[dialect]
        least = self.random.randint(1, size) if not self.chance(12) else size + 1
        group: Object = {"minMember": least}
        queue = self._queue()
        if queue:
            group["queue"] = queue
        if self.classes and self.chance(3):
            group["priorityClassName"] = self.random.choice(self.classes)
        if dialect == "volcano" and self.chance(4):
            group["minResources"] = {"cpu": str(self.random.randint(1, 6))}
        if dialect == "kai" and self.chance(5):
            group["preemptibility"] = self.random.choice(("preemptible", "non-preemptible"))
        made = self.add(version, "PodGroup", name, "default", spec=group)
        made["metadata"]["creationTimestamp"] = created
        if running and dialect != "kai":
            made["status"] = {"phase": "Running"}
        for number in range(size):
            own = spec if not self.chance(8) else self._pod_spec()
            said = {annotation: name}
            if dialect == "kai" and self.chance(6) and not running:
                said["gpu-fraction"] = "0.5"
                own = _without_gpu(own)
            self._pod(f"{name}-{number}", own, created, running=running and not self.chance(8), annotations=said)

    def _queue(self) -> str:
        if self.chance(25):
            return "nowhere"
        return self.random.choice(self.queues) if self.queues and not self.chance(8) else ""

    def _pod(self, name: str, spec: Object, created: str, *, running: bool, annotations: dict[str, str] | None = None) -> None:
        pod = self.pod(name, "default", spec, created)
        spec = pod["spec"]
        pod["metadata"]["labels"] = {"app": "x"}
        if annotations:
            pod["metadata"]["annotations"] = dict(annotations)
        elif self.queues and self.kai:
            pod["metadata"]["labels"]["kai.scheduler/queue"] = self.random.choice(self.queues)
            spec["schedulerName"] = "kai-scheduler"
        elif self.queues and self.chance(2):
            pod["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": self.random.choice(self.queues)}
        if running and self.start(pod):
            return
        if self.chance(30):
            spec["schedulingGates"] = [{"name": "hold"}]

    def _running_workload(self, name: str) -> None:
        """A Deployment or Job whose pods are in the input: it makes none, until they are taken out."""
        spec, created = self._pod_spec(), "2026-01-01T01:00:00Z"
        before = len(self.objects)
        self._workload(name, spec, created, 2)
        made = self.objects[before]
        owner = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": name, "uid": "u", "controller": True}
        if made["kind"] == "Deployment":
            owner |= {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-5c"}
        for number in range(2):
            self._pod(f"{name}-5c-{number}" if made["kind"] == "Deployment" else f"{name}-{number}", spec, created, running=True)
            self.objects[-1]["metadata"]["ownerReferences"] = [dict(owner)]

    def _budget(self) -> None:
        spec: Object = {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": self.random.randint(0, 3)}
        self.add("policy/v1", "PodDisruptionBudget", "budget", "default", spec=spec)

    def _workload(self, name: str, spec: Object, created: str, size: int) -> None:
        template = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
        if self.chance(2):
            made = self.add("batch/v1", "Job", name, "default", spec={"parallelism": size, "completions": size, "template": template})
        else:
            selector = {"matchLabels": {"app": "x"}}
            kind = self.random.choice(("Deployment", "StatefulSet"))
            made = self.add("apps/v1", kind, name, "default", spec={"replicas": size, "selector": selector, "template": template})
        made["metadata"]["creationTimestamp"] = created

    def _volcano_job(self, name: str, spec: Object, created: str, size: int) -> None:
        task = {"name": "worker", "replicas": size, "template": {"spec": spec}}
        body: Object = {"minAvailable": self.random.randint(1, size), "tasks": [task]}
        if queue := self._queue():
            body["queue"] = queue
        made = self.add("batch.volcano.sh/v1alpha1", "Job", name, "default", spec=body)
        made["metadata"]["creationTimestamp"] = created


def _without_gpu(spec: Object) -> Object:
    requests = {key: value for key, value in spec["containers"][0]["resources"]["requests"].items() if key != GPU}
    return {**spec, "containers": [{**spec["containers"][0], "resources": {"requests": requests}}]}
