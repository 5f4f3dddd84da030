"""A cluster around the live core, without a server, under a clock that tests move.

A pod that is bound runs at once. A pod that is evicted ends when the test says so. `full` is a cycle over the same state in which
every job is active.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from tests.worlds.live_core.prebind_steps import PrebindSteps

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.engine.cycle import decide
from navarch.engine.policy import Policy, load, preset
from navarch.engine.record import CycleRecord
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.commit import Unsupported
from navarch.live.core import LiveCore
from navarch.live.instructions import BindPod, EvictPod, Instruction, StartCycle
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, ObjectSpec, PriorityClassSpec, QueueShare, QueueSpec, Taint

REGISTRY = installed()
TREE_OF_QUEUES = {
    "compat": "volcano",
    "actions": "enqueue, allocate, backfill, preempt, reclaim",
    "tiers": [
        {"plugins": [{"name": name} for name in ("priority", "gang", "conformance", "pdb")]},
        {"plugins": [{"name": name} for name in ("overcommit", "drf", "predicates", "capacity", "nodeorder", "resourcequota")]},
        {"plugins": [{"name": "network-topology-aware"}]},
    ],
}
"""What Volcano's users add to its default: queues with figures of their own, quotas, HyperNodes, and taking from others."""
POLICIES: Mapping[str, Policy] = {
    **{name: preset(name, REGISTRY.catalogue()) for name in ("navarch", "volcano", "kube-batch", "kai", "kube-scheduler")},
    "capacity": load(TREE_OF_QUEUES, REGISTRY.catalogue(), "capacity"),
}
EPOCH = 1_700_000_000.0
PREEMPTIBLE_BELOW = 100
"""KAI's groups of a lower priority may be preempted."""
CLASSES = {"low": 10, "high": 1000}
FREE = QueueShare(-1.0, -1.0, 1.0)


class CoreCluster:
    def __init__(self, policy: str, unsupported: Unsupported = lambda bind, task: "") -> None:
        self.policy = POLICIES[policy] if policy in POLICIES else preset(policy, REGISTRY.catalogue())
        self.now = 100.0
        self.number = 0
        self.bound: list[str] = []
        """Pods in the order in which they were bound."""
        self.records: list[CycleRecord] = []
        self.come = False
        """Pods were added since a test last reset this."""
        self.codes: dict[str, frozenset[str]] = {}
        """Job -> codes of what refused it last."""
        self.leaving: dict[str, None] = {}
        """uid of pods whose eviction was decided."""
        self.manifests: dict[str, dict[str, Any]] = {}
        self._again = False
        """The core asked for a cycle since the last one was decided."""
        self.core = LiveCore(settings_for(self.policy, ("navarch",), False), self._carry_out, unsupported=unsupported)
        self.scheduling_queue, self.cache = self.core.queue, self.core.cache
        self._prebind = PrebindSteps(self.cache)
        self._fresh: list[AssumedBind] = []
        for name, value in CLASSES.items():
            self.cache.put(PriorityClassSpec(name, value))

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case StartCycle():
                self._again = True
            case BindPod(bind=bind):
                self.bound.append(bind.name)
                self._fresh.append(bind)
            case EvictPod(task=task):
                self.leaving[task.uid] = None

    # the cluster

    def node(self, name: str, *, zone: str = "a", taint: str = "", **amounts: str | int) -> None:
        labels = {"kubernetes.io/hostname": name, "zone": zone, "nvidia.com/gpu.memory": "40000"}
        allocatable = requests_from({"pods": 20, **{key.replace("gpu", "nvidia.com/gpu"): value for key, value in amounts.items()}})
        taints = (Taint(taint, "", "NoSchedule"),) if taint else ()
        self.cache.put(NodeSpec(name, labels=labels, allocatable=allocatable, taints=taints))

    def lose_node(self, spec: NodeSpec, *, first: bool) -> None:
        """The node is deleted, and its pods with it, before or after it."""
        if first:
            self.cache.remove(spec)
        for name in [name for name in self.running if self.manifests[name]["spec"]["nodeName"] == spec.name]:
            self.end(name)
        if not first:
            self.cache.remove(spec)

    def put(self, kind: str, manifest: Mapping[str, Any]) -> None:
        """An object that only some plugins read."""
        meta = manifest["metadata"]
        self.cache.put(ObjectSpec(kind, meta.get("namespace", ""), meta["name"], {"kind": kind, **manifest}))

    def queue(self, name: str, *, parent: str = "", shares: Mapping[str, QueueShare] | None = None, **more: Any) -> None:
        whole = {"cpu": FREE, "memory": FREE, "gpu": FREE} | dict(shares or {})
        self.cache.put(QueueSpec(name, uid=name, parent=parent, state="Open", shares=whole, **more))

    def gang(self, name: str, queue: str, minimum: int, **more: Any) -> None:
        if self.policy.compat == "kai":
            more["preemptible_below"] = PREEMPTIBLE_BELOW
        dialect, created = "kai" if self.policy.compat == "kai" else "volcano", EPOCH + int(self.now)
        self.cache.put(JobSpec(f"ns/{name}", queue, minimum, "ns", name, name, dialect, created=created, **more))

    def pod(
        self, name: str, requests: Mapping[str, str], *, group: str = "", queue: str = "", priority: str = "", **more: Any
    ) -> None:
        """`labels`, `annotations` and fields of the pod's spec as `more`."""
        labels, annotations = {"name": name, **more.pop("labels", {})}, dict(more.pop("annotations", {}))
        if queue:
            labels["kai.scheduler/queue"] = queue
            annotations["scheduling.volcano.sh/queue-name"] = queue
        if group:
            annotations |= {"scheduling.k8s.io/group-name": group, "pod-group-name": group}
        created = EPOCH + int(self.now)
        container = {"name": "c", "resources": {"requests": dict(requests), "limits": dict(requests)}, "ports": more.pop("ports", [])}
        self.manifests[name] = {
            "metadata": {
                **{"namespace": "ns", "name": name, "uid": name, "labels": labels, "annotations": annotations},
                "creationTimestamp": _rfc3339(created),
            },
            "spec": {
                **{"schedulerName": "navarch", "priorityClassName": priority, "priority": CLASSES.get(priority, 0)},
                "containers": [container],
                **more,
            },
            "status": {"phase": "Pending"},
        }
        self.come = True
        self._show(name)

    def _show(self, name: str) -> None:
        self.cache.put_pod(from_manifest(self.manifests[name], Pod))

    def change(self, name: str, **spec: Any) -> None:
        self.manifests[name]["spec"] |= spec
        self._show(name)

    def label(self, name: str, **labels: str) -> None:
        """Change labels of the pod."""
        self.manifests[name]["metadata"]["labels"] |= labels
        self._show(name)

    def resize(self, name: str, cpu: str) -> None:
        """Change the CPU request of a running pod; its kubelet has applied it."""
        manifest = self.manifests[name]
        container = manifest["spec"]["containers"][0]
        resources = copy.deepcopy(container["resources"])
        for each in resources.values():
            each["cpu"] = cpu
        container["resources"] = resources
        manifest["status"]["containerStatuses"] = [{"name": "c", "resources": resources, "allocatedResources": resources["requests"]}]
        self._show(name)

    def end(self, name: str) -> None:
        """The pod is gone."""
        self.manifests.pop(name)
        self.leaving.pop(name, None)
        self.cache.remove_pod(name)
        self._prebind.end(name)

    def terminate(self, name: str) -> None:
        """Delete the pod. It ends with the next `go`."""
        self.manifests[name]["metadata"]["deletionTimestamp"] = _rfc3339(EPOCH + int(self.now))
        self.leaving[name] = None
        self._show(name)

    def go(self) -> bool:
        """End all pods that are terminating. True if there were any."""
        gone = list(self.leaving)
        for name in gone:
            self.end(name)
        return bool(gone)

    @property
    def running(self) -> list[str]:
        return [name for name, each in self.manifests.items() if each["spec"].get("nodeName")]

    @property
    def pending(self) -> list[str]:
        return [name for name, each in self.manifests.items() if not each["spec"].get("nodeName")]

    # cycles

    def cycle(self) -> bool:
        """Run one cycle. True if the core asks for another at once."""
        self.number += 1
        cycle = self.core.decide(self.policy, REGISTRY, EPOCH + self.now, in_parts=True)
        self.records.append(cycle.record)
        self.codes.update((each.job, frozenset(reason.code for reason in each.reasons)) for each in cycle.record.jobs)
        self._again = False
        self._prebind.plan(cycle)
        self.core.commit(cycle.record, self.now)
        fresh, self._fresh = self._fresh, []
        self._prebind.keep({bind.uid for bind in fresh}, cycle)
        for bind in fresh:
            self.core.bind_succeeded(bind)
            manifest = self.manifests[bind.name]
            manifest["spec"]["nodeName"] = bind.node
            manifest["status"]["phase"] = "Running"
            if bind.gpu_groups:
                manifest["metadata"]["labels"]["runai-gpu-group"] = bind.gpu_groups[0]
            self._show(bind.name)
        return self._again or bool(cycle.record.binds or cycle.record.evictions)

    def settle(self) -> None:
        """Run cycles until the core asks for no other. The clock stands still."""
        for _ in range(60):
            if not self.cycle():
                return
        raise AssertionError("cycles without end")

    def wait(self, seconds: float) -> None:
        """Let time pass: back-offs end, and terminating pods end."""
        until = self.now + seconds
        while self.now < until:
            due = self.scheduling_queue.next_retry
            self.now = min(until, max(self.now + 0.001, due) if due is not None else until)
            self.scheduling_queue.flush_backoff(self.now)
            self.settle()
            while self.go():
                self.settle()

    def full(self) -> CycleRecord:
        """What a cycle in which every job is active would decide now. Nothing is committed."""
        cluster, inactive = self.cache.cluster, self.scheduling_queue.inactive()
        told = {key: bool(cluster.jobs.held[row]) for key, row in cluster.jobs.rows.of.items()}
        for key in told:
            cluster.jobs.hold(key, False)
        record = decide(cluster.snapshot(self.policy.semantics.node_order), self.policy, REGISTRY, EPOCH + self.now)
        for key, held in told.items():
            cluster.jobs.hold(key, held)
        self.core.keep_snapshot()
        assert inactive == self.scheduling_queue.inactive()
        return record

    def job_of(self, pod: str) -> str:
        task = self.cache.cluster.task(pod)
        return task.job if task is not None else ""


def _rfc3339(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
