"""Random clusters for explanations with what `explained_clusters` leaves out: claims on devices, parts of GPUs, topologies, trees of
queues, parts of gangs, namespaces, volumes, operators' workloads, pods of other schedulers, and pods that have ended.

Every pod of job `j7` is named `j7-...`, or `j7` where it stands alone. The judge finds pods by that.
"""

from __future__ import annotations

from typing import Any

from tests.worlds.random_objects import GPU, Object, RandomObjects

DRIVER = "gpu.example.com"


def _tiers(*plugins: str | Object) -> list[Object]:
    return [{"plugins": [{"name": each} if isinstance(each, str) else each for each in plugins]}]


POLICIES: dict[str, Any] = {
    "navarch": "navarch",
    "volcano": "volcano",
    "kai": "kai",
    "kube-scheduler": "kube-scheduler",
    "kube-batch-early": "kube-batch-early",
    "fifo": "fifo",
    "easy": "easy",
    "packing": "packing",
    "volcano-tree": {
        "compat": "volcano",
        "actions": "enqueue, allocate, reclaim, preempt, backfill",
        "tiers": _tiers("priority", "gang", "conformance", "pdb")
        + _tiers("drf", "predicates", {"name": "capacity", "enableHierarchy": True}, "nodeorder", "network-topology-aware"),
    },
    "gangs-by-network": {
        "actions": "enqueue, allocate, backfill, gangreclaim, gangpreempt",
        "tiers": _tiers("priority", "gang", "conformance", "pdb", "overcommit")
        + _tiers("predicates", "capacity", "binpack", "network-topology-aware", "resourcequota"),
    },
}
VOLCANO, KAI, COSCHEDULING = "scheduling.volcano.sh/v1beta1", "scheduling.run.ai/v2alpha2", "scheduling.x-k8s.io/v1alpha1"
UPSTREAM = "scheduling.k8s.io/v1alpha2"


class World(RandomObjects):
    """The objects, and the names of jobs that wait, each with its namespace."""

    def __init__(self, seed: int, policy: str) -> None:
        super().__init__(f"mixed {policy} {seed}")
        self.policy = policy
        self.kai = policy == "kai"
        self.has_claims = self.chance(3)
        self.has_topology = self.chance(2)
        self.has_volumes = self.chance(5)
        self._nodes()
        self._topology()
        self._devices()
        self._queues()
        self.classes: list[str] = []
        for number, value in enumerate(self.random.sample((-10, 0, 50, 75, 100, 125, 1000), self.random.randint(0, 4))):
            made = self.add("scheduling.k8s.io/v1", "PriorityClass", f"p{number}", value=value)
            self.classes.append(f"p{number}")
            if self.chance(5):
                made["preemptionPolicy"] = "Never"
            if self.chance(9) and number == 0:
                made["globalDefault"] = True
        for number in range(self.random.randint(2, 10)):
            self._job(f"r{number}", self._namespace(), running=True)
        if self.chance(3):
            self._foreign_pods()
        if self.chance(3):
            self._budget()
        if self.chance(5):
            self._resource_quota()
        for number in range(self.random.randint(1, 3)):
            name, namespace = f"j{number}", self._namespace()
            self.jobs.append(f"{namespace}/{name}")
            self._job(name, namespace, running=False)
        self.random.shuffle(self.objects)

    def _namespace(self) -> str:
        return self.random.choice(("default", "default", "ml"))

    # the cluster

    def _nodes(self) -> None:
        for number in range(self.random.randint(2, 6)):
            name = f"n{number}"
            amounts = {
                "cpu": self.random.choice((4, 8, 16)),
                GPU: self.random.choice((0, 2, 4, 8)),
                "pods": self.random.choice((5, 110)),
            }
            self.free[name] = {key: float(amount) for key, amount in amounts.items()}
            allocatable = {key: str(value) for key, value in amounts.items()} | {"memory": "64Gi", "ephemeral-storage": "100Gi"}
            spec: Object = {}
            if self.chance(8):
                spec["unschedulable"] = True
            if self.chance(5):
                effect = self.random.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
                spec["taints"] = [{"key": "dedicated", "value": self.random.choice("xy"), "effect": effect}]
            node = self.add("v1", "Node", name, spec=spec)
            node["metadata"]["labels"] = {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": self.random.choice("ab"),
                "rack": self.random.choice(("r1", "r2", "r3")),
                "nvidia.com/gpu.memory": "40960",
            }
            if self.chance(10):
                del node["metadata"]["labels"]["rack"]
            node["status"] = {
                "allocatable": allocatable,
                "capacity": dict(allocatable),
                "conditions": [{"type": "Ready", "status": "False" if self.chance(14) else "True"}],
            }

    def _topology(self) -> None:
        if not self.has_topology:
            return
        if self.kai:
            levels = [{"nodeLabel": "topology.kubernetes.io/zone"}, {"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
            self.add("kai.scheduler/v1alpha1", "Topology", "net", spec={"levels": levels})
            return
        racks: dict[str, list[str]] = {}
        for name in sorted(self.free):
            racks.setdefault(self.random.choice("abc"), []).append(name)
        for rack, names in sorted(racks.items()):
            members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in names]
            self.add(
                "topology.volcano.sh/v1alpha1", "HyperNode", f"rack-{rack}", spec={"tier": 1, "tierName": "rack", "members": members}
            )
        members = [{"type": "HyperNode", "selector": {"exactMatch": {"name": f"rack-{rack}"}}} for rack in sorted(racks)]
        self.add("topology.volcano.sh/v1alpha1", "HyperNode", "hall", spec={"tier": 2, "tierName": "hall", "members": members})

    def _devices(self) -> None:
        if not self.has_claims:
            return
        self.add("resource.k8s.io/v1", "DeviceClass", "card", spec={})
        expression = f'device.attributes["{DRIVER}"].model == "big"'
        self.add("resource.k8s.io/v1", "DeviceClass", "big", spec={"selectors": [{"cel": {"expression": expression}}]})
        for name in sorted(self.free):
            devices = [
                {"name": f"card-{number}", "attributes": {"model": {"string": self.random.choice(("big", "small"))}}}
                for number in range(self.random.randint(0, 3))
            ]
            if devices:
                pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
                spec = {"driver": DRIVER, "pool": pool, "nodeName": name, "devices": devices}
                self.add("resource.k8s.io/v1", "ResourceSlice", f"{name}-cards", spec=spec)

    def _queues(self) -> None:
        if self.policy == "kube-scheduler" or self.chance(6):
            return
        if self.kai:
            self._kai_queues()
            return
        tree = self.policy == "volcano-tree" or self.chance(5)
        parents = ["root"]
        if tree:
            for number in range(self.random.randint(1, 2)):
                self._volcano_queue(f"dep{number}", "root")
                parents.append(f"dep{number}")
        for number in range(self.random.randint(1, 3)):
            name = f"q{number}"
            self.queues.append(name)
            self._volcano_queue(name, self.random.choice(parents[1:]) if tree else "")

    def _volcano_queue(self, name: str, parent: str) -> None:
        spec: Object = {"weight": self.random.choice((1, 1, 3)), "reclaimable": not self.chance(7)}
        if parent:
            spec["parent"] = parent
        for field in ("capability", "deserved"):
            if self.chance(3):
                spec[field] = {"cpu": str(self.random.randint(2, 16)), GPU: str(self.random.randint(0, 8)), "memory": "64Gi"}
        if self.chance(8):
            spec["guarantee"] = {"resource": {"cpu": "1"}}
        if self.chance(5):
            spec["priority"] = self.random.choice((1, 10))
        self.add(VOLCANO, "Queue", name, spec=spec, status={"state": "Closed" if self.chance(15) else "Open"})

    def _kai_queues(self) -> None:
        tops = [f"dep{number}" for number in range(self.random.randint(1, 2))]
        middles = []
        for name in tops:
            self._kai_queue(name, "")
        if self.chance(3):
            middles = ["mid"]
            self._kai_queue("mid", self.random.choice(tops))
        for number in range(self.random.randint(1, 3)):
            self.queues.append(f"q{number}")
            self._kai_queue(f"q{number}", self.random.choice(tops + middles))

    def _kai_queue(self, name: str, parent: str) -> None:
        def share(unit: int) -> Object:
            return {
                "quota": self.random.choice((-1, 0, 2 * unit, 6 * unit)),
                "limit": self.random.choice((-1, -1, -1, 6 * unit)),
                "overQuotaWeight": self.random.choice((0, 1, 3)),
            }

        spec: Object = {"resources": {"gpu": share(1), "cpu": share(1000), "memory": share(8000)}}
        if parent:
            spec["parentQueue"] = parent
        if self.chance(4):
            spec["priority"] = self.random.choice((50, 150))
        if self.chance(6):
            spec["preemptMinRuntime"] = "2h"
        if self.chance(6):
            spec["reclaimMinRuntime"] = "2h"
        self.add("scheduling.run.ai/v2", "Queue", name, spec=spec)

    def _budget(self) -> None:
        spec: Object = {"selector": {"matchLabels": {"tier": self.random.choice("ab")}}}
        spec[self.random.choice(("minAvailable", "maxUnavailable"))] = self.random.choice((0, 1, 2, "50%"))
        made = self.add("policy/v1", "PodDisruptionBudget", "budget", self._namespace(), spec=spec)
        if self.chance(2):
            made["status"] = {
                "disruptionsAllowed": self.random.choice((0, 1)),
                "currentHealthy": 2,
                "desiredHealthy": 1,
                "expectedPods": 2,
            }

    def _resource_quota(self) -> None:
        hard = {"requests.cpu": str(self.random.randint(2, 8)), "pods": "20"}
        status = {"hard": dict(hard), "used": {"requests.cpu": str(self.random.randint(0, 4)), "pods": "2"}}
        self.add("v1", "ResourceQuota", "quota", self._namespace(), spec={"hard": hard}, status=status)

    def _foreign_pods(self) -> None:
        """Pods that another scheduler placed, and a pod of the control plane."""
        for number in range(self.random.randint(1, 3)):
            spec = self._pod_spec("kube-system", f"f{number}")
            spec.pop("priorityClassName", None)
            spec["schedulerName"] = "other"
            self._pod(f"f{number}", "kube-system", spec, "2026-01-01T00:00:00Z", running=True, grouped={})
        if self.chance(2):
            self.objects[-1]["spec"]["priority"] = 2000001000

    # jobs

    def _job(self, name: str, namespace: str, *, running: bool) -> None:
        kinds = ["group", "group", "group", "parts", "pod", "replicas", "mixed"]
        if not running:
            kinds += ["workload", "operator", "owned"]
        kind = self.random.choice(kinds)
        created = f"2026-01-01T0{self.random.randint(0, 8)}:{self.random.randint(10, 50)}:00Z"
        spec = self._pod_spec(namespace, name)
        size = self.random.randint(1, 5)
        if kind == "pod":
            self._pod(name, namespace, spec, created, running=running, grouped={})
        elif kind == "workload":
            self._workload(name, namespace, spec, created, size)
        elif kind == "operator":
            self._operator(name, namespace, spec, created, size)
        elif kind in ("replicas", "owned"):
            self._replicas(name, namespace, spec, created, size, running=running)
        else:
            self._group(name, namespace, spec, created, size, kind, running=running)

    def _pod_spec(self, namespace: str, name: str) -> Object:
        requests: Object = {"cpu": self.random.choice(("500m", "1", "1", "2", "4"))}
        if self.chance(12):
            requests = {}
        if self.chance(3):
            requests[GPU] = str(self.random.choice((1, 1, 2, 4)))
        if self.chance(4):
            requests["memory"] = self.random.choice(("4Gi", "16Gi", "48Gi"))
        if self.chance(15):
            requests["ephemeral-storage"] = "30Gi"
        if self.chance(40):
            requests["example.com/none"] = "1"
        resources: Object = {"requests": requests}
        devices = {key: value for key, value in requests.items() if "/" in key}
        if devices:
            resources["limits"] = devices
        spec: Object = {"containers": [{"name": "main", "image": "x", "resources": resources}]}
        if self.chance(8):
            spec["containers"].append({"name": "side", "image": "x", "resources": {"requests": {"cpu": "250m"}}})
        if self.chance(12):
            spec["initContainers"] = [{"name": "init", "image": "x", "resources": {"requests": {"cpu": "3"}}}]
        if self.chance(7):
            spec["nodeSelector"] = {"rack": self.random.choice(("r1", "r2", "r3", "r9"))}
        if self.chance(8):
            expression = {"key": "rack", "operator": self.random.choice(("NotIn", "In", "Exists", "DoesNotExist"))}
            if expression["operator"] in ("In", "NotIn"):
                expression["values"] = self.random.sample(("r1", "r2", "r3"), 2)  # type: ignore[assignment]
            terms: list[Object] = [{"matchExpressions": [expression]}]
            if self.chance(3):
                terms.append({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n0", "n9"]}]})
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
        if self.chance(5):
            spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule"}]
        if self.chance(12):
            spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": self.random.choice((8080, 9090)), "protocol": "TCP"}]
        if self.classes and self.chance(2):
            spec["priorityClassName"] = self.random.choice(self.classes)
        if self.chance(9):
            key = self.random.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"))
            term = {"topologyKey": key, "labelSelector": {"matchLabels": {"tier": self.random.choice("ab")}}}
            affinity = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec.setdefault("affinity", {})[self.random.choice(("podAntiAffinity", "podAntiAffinity", "podAffinity"))] = affinity
        if self.chance(9):
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": self.random.choice((1, 2)),
                    "topologyKey": self.random.choice(("topology.kubernetes.io/zone", "kubernetes.io/hostname")),
                    "whenUnsatisfiable": self.random.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
                    "labelSelector": {"matchLabels": {"tier": self.random.choice("ab")}},
                }
            ]
        if self.has_claims and self.chance(3):
            self._claim(spec, namespace, name)
        if self.has_volumes and self.chance(3):
            self._volume(spec, namespace, name)
        return spec

    def _claim(self, spec: Object, namespace: str, name: str) -> None:
        exactly = {"deviceClassName": self.random.choice(("card", "big")), "count": self.random.choice((1, 1, 2))}
        devices = {"requests": [{"name": "cards", "exactly": exactly}]}
        if self.chance(4):
            self.add("resource.k8s.io/v1", "ResourceClaim", f"{name}-claim", namespace, spec={"devices": devices})
            spec["resourceClaims"] = [{"name": "cards", "resourceClaimName": f"{name}-claim"}]
        else:
            self.add("resource.k8s.io/v1", "ResourceClaimTemplate", f"{name}-cards", namespace, spec={"spec": {"devices": devices}})
            spec["resourceClaims"] = [{"name": "cards", "resourceClaimTemplateName": f"{name}-cards"}]
        spec["containers"][0]["resources"]["claims"] = [{"name": "cards"}]

    def _volume(self, spec: Object, namespace: str, name: str) -> None:
        claim, volume = f"{name}-data", f"{name}-pv"
        terms = [
            {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [self.random.choice("ab")]}]}
        ]
        self.add(
            "v1",
            "PersistentVolume",
            volume,
            spec={
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany"],
                "claimRef": {"namespace": namespace, "name": claim},
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
                "csi": {"driver": "x", "volumeHandle": volume},
            },
            status={"phase": "Bound"},
        )
        self.add(
            "v1",
            "PersistentVolumeClaim",
            claim,
            namespace,
            spec={"volumeName": volume, "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
            status={"phase": "Bound"},
        )
        self.objects[-1]["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]

    def _queue(self) -> str:
        if self.chance(25):
            return "nowhere"
        return self.random.choice(self.queues) if self.queues and not self.chance(9) else ""

    def _api(self) -> str:
        if self.kai:
            return KAI if not self.chance(10) else VOLCANO
        if self.policy == "kube-scheduler":
            return self.random.choice((COSCHEDULING, UPSTREAM, VOLCANO))
        return self.random.choice((VOLCANO, VOLCANO, VOLCANO, COSCHEDULING, UPSTREAM))

    def _group(self, name: str, namespace: str, spec: Object, created: str, size: int, kind: str, *, running: bool) -> None:
        version = self._api()
        least = self.random.randint(1, size)
        if self.chance(15):
            least = size + 1
        if self.chance(25):
            least = 0
        group: Object = {"minMember": least}
        if version == UPSTREAM:
            group = {"schedulingPolicy": {"gang": {"minCount": max(1, least)}}}
        elif version in (VOLCANO, KAI):
            if queue := self._queue():
                group["queue"] = queue
            if self.classes and self.chance(3):
                group["priorityClassName"] = self.random.choice(self.classes)
        if version == VOLCANO:
            if self.chance(4):
                group["minResources"] = {"cpu": str(self.random.randint(1, 9))}
            if self.has_topology and self.chance(2):
                group["networkTopology"] = {
                    "mode": self.random.choice(("hard", "hard", "soft")),
                    "highestTierAllowed": self.random.choice((1, 1, 2)),
                }
        if version == KAI:
            if self.chance(4):
                group["preemptibility"] = self.random.choice(("preemptible", "non-preemptible"))
            if self.has_topology and self.chance(2):
                level = self.random.choice(("rack", "topology.kubernetes.io/zone", "kubernetes.io/hostname"))
                group["topologyConstraint"] = {"topology": "net", "requiredTopologyLevel": level}
        parts = ["one", "two"] if kind == "parts" and version in (VOLCANO, KAI) else []
        if parts:
            self._parts(group, version, size, parts)
        made = self.add(version, "PodGroup", name, namespace, spec=group)
        made["metadata"]["creationTimestamp"] = created
        if running and version == VOLCANO:
            made["status"] = {"phase": "Running"}
        elif version == VOLCANO and self.chance(2):
            made["status"] = {"phase": self.random.choice(("Pending", "Inqueue"))}
        for number in range(size):
            own = self._pod_spec(namespace, f"{name}-{number}") if kind == "mixed" and self.chance(2) else spec
            grouped = self._membership(version, name)
            if parts:
                grouped["labels"]["kai.scheduler/subgroup-name"] = grouped["labels"]["part"] = parts[number % 2]
                grouped["annotations"]["volcano.sh/task-spec"] = parts[number % 2]
            if self.chance(10):
                own = _without_gpu(own)
                grouped["annotations"] |= self.random.choice(
                    ({"gpu-fraction": "0.5"}, {"gpu-fraction": "0.25"}, {"gpu-memory": "20480"})
                )
            if version == UPSTREAM:
                own = {**own, "schedulingGroup": {"podGroupName": name}}
            runs = running and not self.chance(7)
            self._pod(f"{name}-{number}", namespace, own, created, running=runs, grouped=grouped)
            if not runs and self.chance(14):
                self.objects[-1]["status"] = {"phase": self.random.choice(("Succeeded", "Failed"))}
                self.objects[-1]["spec"]["nodeName"] = "n0"

    def _parts(self, group: Object, version: str, size: int, parts: list[str]) -> None:
        sizes = [sum(number % 2 == each for number in range(size)) for each in (0, 1)]
        least = [self.random.randint(0, each) for each in sizes]
        if version == KAI:
            group["subGroups"] = [
                {"name": part, "minMember": max(1, each)} for part, each in zip(parts, least) if each or self.chance(2)
            ]
            if not group["subGroups"]:
                del group["subGroups"]
            else:
                group.pop("minMember")
        elif self.chance(2):
            group["minTaskMember"] = dict(zip(parts, least))
            group["minMember"] = max(1, sum(least))
        else:
            policy: Object = {
                "name": "part",
                "labelSelector": {"matchLabels": {"part": "one"}},
                "matchLabelKeys": ["part"],
                "subGroupSize": max(1, least[0]),
                "minSubGroups": 1,
            }
            if self.has_topology and self.chance(2):
                policy["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
            group["subGroupPolicy"] = [policy]

    def _membership(self, version: str, name: str) -> Object:
        match version:
            case "scheduling.run.ai/v2alpha2":
                return {"labels": {}, "annotations": {"pod-group-name": name}}
            case "scheduling.x-k8s.io/v1alpha1":
                return {"labels": {"scheduling.x-k8s.io/pod-group": name}, "annotations": {}}
            case "scheduling.k8s.io/v1alpha2":
                return {"labels": {}, "annotations": {}}
        return {"labels": {}, "annotations": {"scheduling.k8s.io/group-name": name}}

    def _pod(self, name: str, namespace: str, spec: Object, created: str, *, running: bool, grouped: Object) -> None:
        pod = self.pod(name, namespace, spec, created)
        spec = pod["spec"]
        pod["metadata"]["labels"] = {"tier": self.random.choice("ab"), **grouped.get("labels", {})}
        if grouped.get("annotations"):
            pod["metadata"]["annotations"] = dict(grouped["annotations"])
        elif not grouped and self.queues and spec.get("schedulerName") != "other":
            if self.kai:
                pod["metadata"]["labels"]["kai.scheduler/queue"] = self.random.choice(self.queues)
                spec["schedulerName"] = "kai-scheduler"
            elif self.chance(2):
                pod["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": self.random.choice(self.queues)}
        if self.chance(12):
            pod["metadata"].setdefault("annotations", {})["volcano.sh/preemptable"] = self.random.choice(("true", "false"))
        if running and "resourceClaims" not in spec and self.start(pod):
            return
        if self.chance(25):
            spec["schedulingGates"] = [{"name": "hold"}]
        elif self.chance(25):
            pod["status"]["nominatedNodeName"] = "n0"

    # workloads

    def _replicas(self, name: str, namespace: str, spec: Object, created: str, size: int, *, running: bool) -> None:
        """Pods of one Deployment, StatefulSet or Job that are in the input, some of which may run."""
        kind = self.random.choice(("ReplicaSet", "StatefulSet", "Job"))
        owner_name = f"{name}-5d8f" if kind == "ReplicaSet" else name
        version = "batch/v1" if kind == "Job" else "apps/v1"
        owner = {"apiVersion": version, "kind": kind, "name": owner_name, "uid": f"u-{name}", "controller": True}
        if self.chance(2):
            body = {"template": {"metadata": {"labels": {"tier": "a"}}, "spec": spec}}
            if kind == "Job":
                self.add(version, "Job", name, namespace, spec={"parallelism": size, "completions": size, **body})
            else:
                selector = {"matchLabels": {"tier": "a"}}
                shown = "Deployment" if kind == "ReplicaSet" else kind
                self.add(version, shown, name, namespace, spec={"replicas": size, "selector": selector, **body})
        label = {"kai.scheduler/queue": self.random.choice(self.queues)} if self.kai and self.queues else {}
        for number in range(size):
            runs = running and not self.chance(6)
            grouped = {"labels": dict(label), "annotations": {}}
            self._pod(f"{owner_name}-{number}", namespace, spec, created, running=runs, grouped=grouped)
            self.objects[-1]["metadata"]["ownerReferences"] = [dict(owner)]
            if self.kai:
                self.objects[-1]["spec"]["schedulerName"] = "kai-scheduler"

    def _template(self, spec: Object) -> Object:
        metadata: Object = {"labels": {"tier": self.random.choice("ab")}}
        if self.kai:
            spec = {**spec, "schedulerName": "kai-scheduler"}
            if self.queues:
                metadata["labels"]["kai.scheduler/queue"] = self.random.choice(self.queues)
        return {"metadata": metadata, "spec": spec}

    def _workload(self, name: str, namespace: str, spec: Object, created: str, size: int) -> None:
        template = self._template(spec)
        kind = self.random.choice(("Job", "Deployment", "StatefulSet", "ReplicaSet"))
        if kind == "Job":
            body: Object = {"parallelism": size, "completions": size, "template": template}
            if self.chance(8):
                body["suspend"] = True
            made = self.add("batch/v1", "Job", name, namespace, spec=body)
        else:
            selector = {"matchLabels": template["metadata"]["labels"]}
            made = self.add("apps/v1", kind, name, namespace, spec={"replicas": size, "selector": selector, "template": template})
        made["metadata"]["creationTimestamp"] = created

    def _operator(self, name: str, namespace: str, spec: Object, created: str, size: int) -> None:
        template = self._template(spec)
        kind = self.random.choice(("PyTorchJob", "JobSet", "LeaderWorkerSet", "VolcanoJob"))
        if kind == "PyTorchJob":
            replicas = {"Master": {"replicas": 1, "template": template}, "Worker": {"replicas": size, "template": template}}
            made = self.add("kubeflow.org/v1", kind, name, namespace, spec={"pytorchReplicaSpecs": replicas})
        elif kind == "JobSet":
            job = {
                "name": "workers",
                "replicas": 1,
                "template": {"spec": {"parallelism": size, "completions": size, "template": template}},
            }
            made = self.add("jobset.x-k8s.io/v1alpha2", kind, name, namespace, spec={"replicatedJobs": [job]})
        elif kind == "LeaderWorkerSet":
            body = {"size": size, "workerTemplate": template}
            made = self.add("leaderworkerset.x-k8s.io/v1", kind, name, namespace, spec={"replicas": 1, "leaderWorkerTemplate": body})
        else:
            tasks = [{"name": "head", "replicas": 1, "template": template}, {"name": "worker", "replicas": size, "template": template}]
            body = {"minAvailable": self.random.randint(1, size + 1), "tasks": tasks}
            if queue := self._queue():
                body["queue"] = queue
            if self.classes and self.chance(3):
                body["priorityClassName"] = self.random.choice(self.classes)
            made = self.add("batch.volcano.sh/v1alpha1", "Job", name, namespace, spec=body)
        made["metadata"]["creationTimestamp"] = created


def _without_gpu(spec: Object) -> Object:
    def plain(container: Object) -> Object:
        requests = {key: value for key, value in container["resources"].get("requests", {}).items() if "/" not in key}
        return {**container, "resources": {"requests": requests}}

    return {**spec, "containers": [plain(each) for each in spec["containers"]]}
