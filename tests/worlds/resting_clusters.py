"""Random small clusters whose jobs compete: flat queues, trees of queues, racks, and what happens to them over many cycles.

`Life` lets cycles follow one another. Bound pods run, and evicted pods come back pending: at once, or after some cycles in which they
hold their node. Nothing arrives and nothing ends unless `ends` says so, so a policy that settles stops evicting.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from navarch.engine.cycle import decide
from navarch.engine.policy import Policy
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.model.objects.topologies import HyperNodeSpec, MemberSpec
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Shape, TaskSpec, TopologyDemand
from navarch.model.status import TaskStatus
from navarch.offline.cycles import lasting_promises

GPU = "nvidia.com/gpu"
PATIENCE = 8
"""Cycles. Evicted pods leave within four."""
PRIORITIES = (10, 100, 1000)
_TIERS: list[dict[str, Any]] = [
    {"plugins": [{"name": name} for name in ("priority", "gang", "conformance")]},
    {"plugins": [{"name": name} for name in ("drf", "predicates", "proportion", "nodeorder", "binpack")]},
]
_TREE: list[dict[str, Any]] = [
    {"plugins": [{"name": "priority"}, {"name": "gang", "enableJobStarving": False}, {"name": "conformance"}]},
    {"plugins": [{"name": "predicates"}, {"name": "capacity", "enableHierarchy": True}, {"name": "nodeorder"}]},
]
_PODS = {"actions": "enqueue, allocate, backfill, preempt, reclaim", "tiers": _TIERS}
_GANGS = {"actions": "enqueue, allocate, backfill, gangpreempt, gangreclaim", "tiers": _TIERS}
POLICIES: Mapping[str, str | Mapping[str, object]] = {
    "navarch": "navarch",
    "kai": "kai",
    "kube-scheduler": "kube-scheduler",
    "volcano-evicts": {**_PODS, "compat": "volcano"},
    "volcano-gangs": {**_GANGS, "compat": "volcano"},
    "strict": _PODS,
    "strict-gangs": _GANGS,
    "gangs-first": {"actions": "gangreclaim, gangpreempt, allocate, backfill", "tiers": _TIERS},
    "volcano-first": {**_PODS, "actions": "enqueue, reclaim, preempt, allocate, backfill", "compat": "volcano"},
    "tree": {"actions": "allocate, backfill, gangreclaim, gangpreempt", "tiers": _TREE},
    "tree-pods": {"actions": "allocate, backfill, reclaim, preempt", "tiers": _TREE},
}


def competing(seed: int, *, tree: bool = False, racks: bool = False) -> Cluster:
    """A cluster of up to six nodes in which up to ten jobs compete; some of them run. `tree`: queues have parents. `racks`: nodes
    stand in racks, and some gangs must stay in one."""
    rng, cluster = random.Random(seed), Cluster()
    kinds = rng.randint(1, 2)
    free: dict[str, list[int]] = {}
    kind_of: dict[str, str] = {}
    for number in range(rng.randint(2, 6)):
        name, gpus, cpus = f"n{number}", rng.choice([2, 4, 8]), rng.choice([8, 16, 32])
        kind_of[name], free[name] = rng.choice("ab"[:kinds]), [gpus, cpus]
        amounts = requests_from({"cpu": cpus, "memory": "500Gi", "pods": 110, GPU: gpus})
        cluster.put_node(NodeSpec(name, allocatable=amounts, labels={"kind": kind_of[name]}))
    total = sum(gpus for gpus, _ in free.values())
    leaves = _tree_of_queues(rng, cluster, total) if tree else _flat_queues(rng, cluster, total)
    if racks:
        _racks(cluster, list(free))
    for number in range(rng.randint(2, 10)):
        _job(rng, cluster, f"g{number}", rng.choice(leaves), free, kind_of, racks=racks, created=float(number // 2))
    return cluster


def _flat_queues(rng: random.Random, cluster: Cluster, total: int) -> list[str]:
    names = [f"q{number}" for number in range(rng.randint(1, 4))]
    for name in names:
        capability = requests_from({GPU: rng.randint(1, total)}) if rng.random() < 0.2 else None
        guarantee = requests_from({GPU: rng.randint(0, max(total // (2 * len(names)), 1))}) if rng.random() < 0.2 else None
        cluster.put_queue(QueueSpec(name, weight=rng.choice([1, 1, 2, 5]), capability=capability, guarantee=guarantee, state="Open"))
    return names


def _tree_of_queues(rng: random.Random, cluster: Cluster, total: int) -> list[str]:
    cluster.put_queue(QueueSpec("root", state="Open"))
    leaves: list[str] = []
    for number in range(rng.randint(1, 3)):
        parent, below = f"p{number}", [f"p{number}-{child}" for child in range(rng.randint(1, 3))]
        owed = [rng.randint(0, max(total // (2 * len(below)), 1)) for _ in below]
        deserved = requests_from({GPU: sum(owed) + rng.choice([0, 0, 2]), "cpu": 8})
        cluster.put_queue(QueueSpec(parent, parent="root", deserved=deserved, state="Open"))
        for name, gpus in zip(below, owed):
            capability = requests_from({GPU: rng.randint(1, total)}) if rng.random() < 0.2 else None
            cluster.put_queue(
                QueueSpec(name, parent=parent, deserved=requests_from({GPU: gpus, "cpu": 2}), capability=capability, state="Open")
            )
        leaves += below
    return leaves


def _racks(cluster: Cluster, nodes: list[str]) -> None:
    for number, members in enumerate((nodes[::2], nodes[1::2])):
        spec = HyperNodeSpec(f"rack-{number}", 1, "rack", tuple(MemberSpec(True, name) for name in members))
        cluster.put_object("HyperNode", "", spec.name, spec)


def _job(
    rng: random.Random,
    cluster: Cluster,
    name: str,
    queue: str,
    free: dict[str, list[int]],
    kind_of: dict[str, str],
    *,
    racks: bool,
    created: float,
) -> None:
    count, priority = rng.randint(1, 8), rng.choice(PRIORITIES)
    least = rng.choice([count, count, max(1, count // 2), 1])
    gpus, cpus = rng.choice([0, 1, 1, 2, 4]), rng.choice([1, 2, 4])
    kind = rng.choice("ab") if rng.random() < 0.3 else ""
    together = TopologyDemand(highest_tier=1) if racks and rng.random() < 0.4 else None
    runs = rng.random() < 0.6 and together is None
    shape = Shape(
        requests=requests_from({"cpu": cpus, **({GPU: gpus} if gpus else {})}), node_selector=(("kind", kind),) if kind else ()
    )
    key, placed = f"a/{name}", 0
    tasks = []
    for number in range(count):
        fits = [n for n, (g, c) in free.items() if g >= gpus and c >= cpus and kind in ("", kind_of[n])] if runs else []
        node = rng.choice(fits) if fits else ""
        if node:
            free[node][0] -= gpus
            free[node][1] -= cpus
            placed += 1
        tasks.append(
            TaskSpec(
                f"{name}-{number}", "a", f"{name}-{number}", shape, key, node,
                TaskStatus.RUNNING if node else TaskStatus.PENDING, priority=priority, pod_priority=priority, created=created,
                started=0.0 if node else None,
            )
        )  # fmt: skip
    phase = "Running" if placed >= least else "Pending"
    spec = JobSpec(key, queue, least, "a", name, name, "volcano", priority=priority, preemptable=True, created=created, phase=phase)
    cluster.put_job(replace(spec, topology=together))
    for task in tasks:
        cluster.put_task(task)


class Life:
    """Cycles over a cluster. `uneven`: evicted pods leave after 0 to 3 cycles each instead of at once."""

    def __init__(self, cluster: Cluster, policy: Policy, registry: Registry, *, uneven: bool = False, seed: int = 0) -> None:
        self.cluster = cluster
        self.cycle = 0
        self.evictions: list[tuple[int, str, str, str]] = []
        """Cycle, pod, action, job for which it went."""
        self.starts: dict[str, list[int]] = {}
        """Job -> the cycles in which pods of it were bound, and not evicted at once."""
        self.promised: dict[str, str] = {}
        """Pods to which the last cycle promised a node, also those for which nothing was evicted."""
        self._policy, self._registry = policy, registry
        self._uneven = uneven
        self._rng = random.Random(seed)
        self._leaving: dict[str, int] = {}

    def step(self) -> CycleRecord:
        semantics = self._policy.semantics
        record = decide(self.cluster.snapshot(semantics.node_order), self._policy, self._registry, 1.0 * self.cycle)
        self.evictions += [(self.cycle, each.uid, each.action, each.for_) for each in record.evictions]
        self.cycle += 1
        self._move(record)
        self._write_statuses(record)
        return record

    def _move(self, record: CycleRecord) -> None:
        evicted = {each.uid for each in record.evictions}
        self.promised = {each.uid: each.node for each in record.nominations if each.uid not in evicted}
        for bind in record.binds:
            if bind.uid not in evicted:
                self.starts.setdefault(bind.job, []).append(self.cycle)
                fields = {"node": bind.node, "status": TaskStatus.RUNNING, "nominated_node": "", "gpu_groups": bind.gpu_groups}
                self._change(bind.uid, started=1.0 * self.cycle, **fields)
        for uid in sorted(evicted):
            self._leaving[uid] = self._rng.randint(0, 3) if self._uneven else 0
            self._change(uid, status=TaskStatus.RELEASING, deleting=True)
        for uid, cycles in sorted(self._leaving.items()):
            if cycles:
                self._leaving[uid] = cycles - 1
                continue
            del self._leaving[uid]
            fields = {"node": "", "status": TaskStatus.PENDING, "started": None, "deleting": False, "nominated_node": ""}
            self._change(uid, gpu_groups=(), **fields)
        for uid, node in lasting_promises(record).items():
            task = self.cluster.task(uid)
            if task is not None and not task.node and task.nominated_node != node:
                self._change(uid, nominated_node=node)

    def _change(self, uid: str, **fields: Any) -> None:
        task = self.cluster.task(uid)
        assert task is not None
        self.cluster.put_task(replace(task, **fields))

    def _write_statuses(self, record: CycleRecord) -> None:
        jobs = self.cluster.jobs
        for decision in record.jobs:
            spec = jobs.specs[jobs.rows.of[decision.job]]
            if spec is not None and decision.changed:
                times = {name: getattr(decision, name) for name in ("last_started", "last_evicted", "stale_since")}
                self.cluster.put_job(replace(spec, phase=decision.phase, conditions=decision.conditions, **times))

    def runs(self, most: int) -> bool:
        """Let cycles follow until nothing moves any more, at most so many. False: it still evicts."""
        calm = 0
        while self.cycle < most:
            record = self.step()
            calm = 0 if record.binds or record.evictions or self._leaving else calm + 1
            if calm == 2:
                return True
        return not any(cycle >= most - 15 for cycle, *_ in self.evictions)

    def in_vain(self) -> list[tuple[int, str, str, str]]:
        """Evictions after which the job for which they were got nothing for `PATIENCE` cycles."""

        def starts(cycle: int, job: str) -> bool:
            return any(cycle <= start <= cycle + PATIENCE for start in self.starts.get(job, ()))

        return [each for each in self.evictions if each[3] and not starts(each[0], each[3])]

    def waiting_promises(self) -> list[str]:
        """Pods for which others were evicted and that hold no node."""
        specs = self.cluster.tasks.specs
        return sorted(task.uid for task in specs if task is not None and task.nominated_node and not task.node)

    def late(self) -> Counter[str]:
        """What was evicted for whom in the last 15 cycles."""
        job_of = {task.uid: task.job for task in self.cluster.tasks.specs if task is not None}
        found = (f"{job_of[uid]} by {action} for {for_}" for cycle, uid, action, for_ in self.evictions if cycle >= self.cycle - 15)
        return Counter(found)
