"""Two clusters to which the same happens: snapshots of the first are handed on from cycle to cycle, those of the second are new.

`ChangingClusters` draws what happens between two cycles. Pods and jobs change most of the time; now and then something changes that a
session was opened with: nodes, queues, classes, other objects, shapes, the numbers of label sets.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec.structs import replace
from tests.worlds.small_cluster import shape

from navarch.engine.placement.shards import NODE_SHARD
from navarch.engine.record import CycleRecord
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.snapshot import Snapshot
from navarch.model.spec import (
    DeviceRequest,
    DisruptionBudgetSpec,
    HostPort,
    JobSpec,
    LabelSelector,
    NamespaceSpec,
    NodeSpec,
    PodAffinity,
    PodTerm,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    Requirement,
    Shape,
    SpreadConstraint,
    Taint,
    TaskSpec,
    Toleration,
)
from navarch.model.status import TaskStatus

NODES = 10
OTHER = "Other"
"""A kind of objects that only test plugins read."""
NAMESPACES = ("ns0", "ns1", "ns2")
SHAPES = [
    shape(cpu="1"),
    shape(cpu="2", memory="1Gi"),
    shape(cpu="500m"),
    shape(),
    replace(shape(cpu="3"), node_selector=(("zone", "a"),)),
    replace(shape(cpu="1", memory="2Gi"), tolerations=(Toleration("dedicated", "Exists"),)),
]
_SAME_TIER = LabelSelector((Requirement("tier", "In", ("x",)),))
ODD_SHAPES = {
    "ports": replace(shape(cpu="1"), ports=(HostPort(80),)),
    "anti-affinity": replace(shape(cpu="1"), namespace="ns0", pod_affinity=PodAffinity(anti_required=(PodTerm("zone", _SAME_TIER),))),
    "affinity": replace(shape(cpu="1"), namespace="ns0", pod_affinity=PodAffinity(required=(PodTerm("zone", _SAME_TIER),))),
    "spread": replace(shape(cpu="1"), namespace="ns0", spread=(SpreadConstraint(1, "zone", True, _SAME_TIER),)),
    "shared device": replace(shape(cpu="1"), devices=DeviceRequest(fraction=500)),
    "unsupported": replace(shape(cpu="1"), unsupported=("a feature",)),
    "another resource": shape(cpu="1", **{"example.com/odd": 1}),
}
"""With any of these among its shapes, a cluster has rules that follow pods, shared devices, or a further resource."""


RARE = (
    *("edit_node", "replace_node", "edit_queue", "put_odd_pod", "put_new_shape", "edit_priority_class", "edit_budget", "edit_quota"),
    *("edit_namespace", "edit_object"),
)
"""What happens now and then: something changes that a session was opened with."""


class ChangingClusters:
    def __init__(self, rng: Random, *, calm: bool = False, often: str = "", odd: str = "") -> None:
        """`calm`: almost only pods and jobs change. `often`: the one of `RARE` that is not rare here. `odd`: the one of `ODD_SHAPES`
        that many pods have."""
        self.rng = rng
        self.both = (Cluster(), Cluster())
        self.jobs: dict[str, JobSpec] = {}
        self.pods: dict[str, dict[str, TaskSpec]] = {}
        """Key of a job -> its pods by UID."""
        self.count = 0
        self.last: Snapshot | None = None
        self._rare = 0.01 if calm else 0.1
        self._often = often or rng.choice(RARE)
        self._shapes = [*SHAPES, *[ODD_SHAPES[odd]] * 4] if odd else SHAPES
        """Of the pods of most jobs."""
        for name in "ab":
            self._put_queue(QueueSpec(name, state="Open", weight=1 + (name == "b")))
        for number in range(NODES):
            self._put_node(number)
        for number, each in enumerate(self._shapes):  # shapes that stay, so that the list of shapes does
            self._put(TaskSpec(f"stays-{number}", "ns", "stays", each, node=f"n{number}", status=TaskStatus.RUNNING))

    # what happens

    def change(self) -> None:
        """Something happens."""
        rng = self.rng
        drawn = rng.random()
        if drawn < self._rare:
            getattr(self, rng.choice(RARE))()
        elif drawn < 0.1:
            getattr(self, self._often)()
        else:
            rng.choices(*zip(*self._frequent_changes()))[0]()

    def apply(self, record: CycleRecord) -> None:
        """Most of what was decided is carried out. A binding may fail, and a victim takes some time to end."""
        rng = self.rng
        for bind in record.binds:
            task = self.pods.get(bind.job, {}).get(bind.uid)
            if task is not None:
                self._put(replace(task, node=bind.node, status=TaskStatus.BINDING, nominated_node=""))
                if rng.random() < 0.1:
                    self._put(task)
                else:
                    self._restate(bind.job, replace(task, node=bind.node, status=TaskStatus.RUNNING, started=1.0, nominated_node=""))
        for eviction in record.evictions:
            task = self.pods.get(eviction.job, {}).get(eviction.uid)
            if task is not None and task.node:
                self._restate(eviction.job, replace(task, status=TaskStatus.RELEASING, deleting=True, deleted=1.0, phase="Running"))
        for promise in record.nominations:
            task = self.pods.get(promise.job, {}).get(promise.uid)
            if task is not None and not task.node:
                self._restate(promise.job, replace(task, nominated_node=promise.node))

    def _frequent_changes(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self._arrive, 20),
            (self._end_job, 12),
            (self._end_pod, 3),
            (self._leave, 4),
            (self._edit_pod, 3),
            (self._edit_job, 3),
            (self._hold, 2),
            (self._strange_pod, 2),
        ]

    # pods and jobs

    def _arrive(self) -> None:
        rng, name = self.rng, f"j{self.count}"
        self.count += 1
        size, namespace = rng.choice((1, 1, 2, 5)), rng.choice(NAMESPACES)
        key, priority = f"{namespace}/{name}", rng.choice((0, 0, 5))
        spec = JobSpec(
            *(key, rng.choice("aab"), rng.randint(1, size), namespace, name),
            created=float(self.count),
            expected_duration=rng.choice((None, 5.0, 50.0)),
            uid=key,
            priority=priority,
            preemptable=rng.random() < 0.5,
            phase=rng.choice(("Inqueue", "Inqueue", "Pending")),
            min_resources=rng.choice((None, None, requests_from({"cpu": size}))),
        )
        self.pods[key] = {}
        self._put_job(spec)
        first, second = self._shape(), rng.choice(self._shapes)
        labels = {"tier": rng.choice("xy"), "job": name}
        for number in range(size):
            task = TaskSpec(
                *(f"{name}-{number}", namespace, f"{name}-w-{number}", first if number else second),
                job=key,
                priority=priority,
                pod_priority=priority,
                created=float(self.count),
                labels=labels,
                gates=("gate",) if rng.random() < 0.05 else (),
            )
            self._restate(key, task)

    def _shape(self) -> Shape:
        rng = self.rng
        if rng.random() > self._rare:
            return rng.choice(self._shapes)
        return rng.choice((*ODD_SHAPES.values(), shape(cpu=f"{self.count}m"), shape(cpu=f"{self.count}m")))

    def _end_job(self) -> None:
        if not self.jobs:
            return
        key = self.rng.choice(sorted(self.jobs))
        for uid in self.pods.pop(key):
            for cluster in self.both:
                cluster.remove_task(uid)
        for cluster in self.both:
            cluster.remove_job(key)
        del self.jobs[key]

    def _some_pod(self, *, placed: bool | None = None) -> tuple[str, TaskSpec] | None:
        found = [
            (key, task)
            for key, pods in sorted(self.pods.items())
            for task in pods.values()
            if placed is None or bool(task.node) is placed
        ]
        return self.rng.choice(found) if found else None

    def _end_pod(self) -> None:
        """A pod that runs has finished, or is gone."""
        if found := self._some_pod(placed=True):
            key, task = found
            if self.rng.random() < 0.5:
                self._restate(key, replace(task, status=self.rng.choice((TaskStatus.SUCCEEDED, TaskStatus.FAILED))))
                return
            del self.pods[key][task.uid]
            for cluster in self.both:
                cluster.remove_task(task.uid)

    def _leave(self) -> None:
        """A pod that runs is told to end, and holds its node meanwhile."""
        if found := self._some_pod(placed=True):
            self._restate(found[0], replace(found[1], status=TaskStatus.RELEASING, deleting=True, deleted=1.0))

    def _edit_pod(self) -> None:
        if found := self._some_pod(placed=False):
            rng, (key, task) = self.rng, found
            fields: dict[str, Any] = rng.choice(
                (
                    {"labels": {"tier": rng.choice("xyz")}},
                    {"priority": rng.choice((0, 7)), "pod_priority": rng.choice((0, 7))},
                    {"gates": () if task.gates else ("gate",)},
                    {"nominated_node": f"n{rng.randrange(NODES)}"},
                    {"shape": rng.choice(SHAPES)},
                    {"role": rng.choice(("", "worker"))},
                    {"preemptable": not task.preemptable},
                )
            )
            self._restate(key, replace(task, **fields))

    def _edit_job(self) -> None:
        if self.jobs:
            rng = self.rng
            spec = self.jobs[rng.choice(sorted(self.jobs))]
            fields: dict[str, Any] = rng.choice(
                (
                    {"min_member": rng.randint(1, 5)},
                    {"queue": rng.choice("abc")},
                    {"priority": rng.choice((0, 9))},
                    {"phase": rng.choice(("Pending", "Inqueue", "Running"))},
                    {"last_started": float(rng.randint(0, 9)), "attained_service": float(rng.randint(0, 9000))},
                    {"last_evicted": float(rng.randint(0, 9)), "expected_duration": rng.choice((None, 1.0))},
                )
            )
            self._put_job(replace(spec, **fields))

    def _hold(self) -> None:
        """A job is held back from cycles, or released."""
        if self.jobs:
            key, held = self.rng.choice(sorted(self.jobs)), self.rng.random() < 0.4
            for cluster in self.both:
                cluster.jobs.hold(key, held)

    def _strange_pod(self) -> None:
        """A pod of no job comes onto a node, maybe onto one that is not known yet, or a former one goes."""
        uid, node = f"strange-{self.rng.randrange(4)}", f"n{self.rng.randrange(NODES + 1)}"
        if self.rng.random() < 0.5:
            self._put(TaskSpec(uid, "ns", uid, self.rng.choice(SHAPES), node=node, status=TaskStatus.RUNNING))
        else:
            for cluster in self.both:
                cluster.remove_task(uid)

    # what a session is opened with

    def edit_node(self) -> None:
        self._put_node(self.rng.randrange(NODES))

    def _put_node(self, number: int) -> None:
        rng = self.rng
        amounts = {"cpu": rng.choice((2, 4)), "memory": "8Gi", "pods": rng.choice((3, 9))}
        if rng.random() < 0.5:
            amounts["nvidia.com/gpu"] = 1
        spec = NodeSpec(
            f"n{number}",
            allocatable=requests_from(amounts),
            labels={"zone": rng.choice("ab") if rng.random() < 0.2 else "ab"[number % 2]},
            taints=(Taint("dedicated", effect=rng.choice(("NoSchedule", "PreferNoSchedule"))),) if rng.random() < 0.15 else (),
            unschedulable=rng.random() < 0.1,
            ready=rng.random() > 0.1,
        )
        for cluster in self.both:
            cluster.put_node(spec)

    def replace_node(self) -> None:
        """A node goes. It comes back, or its row is another node's."""
        number = self.rng.randrange(NODES)
        for cluster in self.both:
            cluster.remove_node(f"n{number}")
        if self.rng.random() < 0.7:
            self._put_node(self.rng.choice((number, NODES)))

    def _put_queue(self, spec: QueueSpec) -> None:
        for cluster in self.both:
            cluster.put_queue(spec)

    def edit_queue(self) -> None:
        rng, name = self.rng, self.rng.choice("abc")
        if name == "c" and rng.random() < 0.4:
            for cluster in self.both:
                cluster.remove_queue(name)
            return
        capability = requests_from({"cpu": rng.randint(2, 20)}) if rng.random() < 0.3 else None
        state, parent = rng.choice(("Open", "Open", "Closed")), rng.choice(("", "", "a"))
        self._put_queue(QueueSpec(name, state=state, weight=rng.randint(1, 3), capability=capability, parent=parent))

    def put_odd_pod(self) -> None:
        """A pod with a rare shape comes, and is deleted some time later."""
        uid = f"odd-{self.rng.randrange(3)}"
        for cluster in self.both:
            cluster.remove_task(uid)
        if self.rng.random() < 0.6:
            node = self.rng.choice(("", "n0", "n5"))
            status = TaskStatus.RUNNING if node else TaskStatus.PENDING
            self._put(TaskSpec(uid, "ns", uid, self.rng.choice(list(ODD_SHAPES.values())), node=node, status=status))

    def put_new_shape(self) -> None:
        """A shape that was never there, in a row that another shape may have had."""
        self._put(TaskSpec(f"new-{self.rng.randrange(3)}", "ns", "new", shape(cpu=f"{self.count + 1}m")))

    def edit_priority_class(self) -> None:
        for cluster in self.both:
            cluster.put_priority_class(PriorityClassSpec("high", self.count, global_default=True))

    def edit_budget(self) -> None:
        spec = DisruptionBudgetSpec("ns0", "budget", LabelSelector(), self.rng.randint(0, 1))
        for cluster in self.both:
            cluster.put_budget(spec)

    def edit_quota(self) -> None:
        spec = QuotaSpec("ns0", "quota", requests_from({"cpu": self.rng.randint(1, 9)}))
        for cluster in self.both:
            cluster.put_quota(spec)

    def edit_namespace(self) -> None:
        spec = NamespaceSpec(self.rng.choice(NAMESPACES), {"team": self.rng.choice("xy")})
        for cluster in self.both:
            cluster.put_namespace(spec)

    def edit_object(self) -> None:
        """An object that only some plugins read comes, changes or goes."""
        kind, name, goes = self.rng.choice((NODE_SHARD, OTHER)), self.rng.choice(("x", "navarch")), self.rng.random() < 0.3
        wanted = [f"n{number}" for number in range(NODES) if self.rng.random() < 0.5]
        for cluster in self.both:
            if goes:
                cluster.remove_object(kind, "", name)
            else:
                cluster.put_object(kind, "", name, {"spec": {"nodesDesired": wanted}})

    # both clusters

    def _put(self, task: TaskSpec) -> None:
        for cluster in self.both:
            cluster.put_task(task)

    def _restate(self, job: str, task: TaskSpec) -> None:
        self.pods[job][task.uid] = task
        self._put(task)

    def _put_job(self, spec: JobSpec) -> None:
        self.jobs[spec.key] = spec
        for cluster in self.both:
            cluster.put_job(spec)
