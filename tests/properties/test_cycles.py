"""Random clusters and random histories, several cycles long, under whole policies: what must hold, holds after every cycle."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.worlds.small_cluster import shape

from navarch.engine.cycle import decide
from navarch.engine.policy import load
from navarch.engine.policy.values import Policy
from navarch.engine.record import CycleRecord
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.resources import IntArray, requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, TaskSpec
from navarch.model.status import COUNTS_READY, IS_ALLOCATED, ON_NODE, TaskStatus

S = TaskStatus
POLICIES: dict[str, dict[str, object] | str] = {
    "navarch": "navarch",
    "volcano": {
        "compat": "volcano",
        "actions": "enqueue, allocate, backfill, preempt, reclaim",
        "tiers": [
            {"plugins": [{"name": n} for n in ("priority", "gang", "conformance")]},
            {"plugins": [{"name": n} for n in ("overcommit", "drf", "predicates", "proportion", "nodeorder")]},
        ],
    },
    "capacity": {
        "actions": "enqueue, allocate, backfill, gangreclaim, preempt",
        "tiers": [{"plugins": [{"name": n} for n in ("priority", "gang", "drf", "predicates", "capacity", "nodeorder", "binpack")]}],
    },
}
SHAPES = [shape(cpu="1", memory="1Gi"), shape(cpu="2"), shape(cpu="500m", memory="4Gi"), shape(cpu="1", nvidia_com="1"), shape()]


def policy(name: str) -> Policy:
    from navarch.engine.policy import preset

    given_ = POLICIES[name]
    catalogue = installed().catalogue()
    return preset(given_, catalogue) if isinstance(given_, str) else load(given_, catalogue, name)


class History:
    """A cluster that lives: what cycles decide happens, and jobs, nodes and pods come and go at random."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.queues = [
            QueueSpec("a", state="Open", weight=1, capability=requests_from({"cpu": 9, "memory": "64Gi", "nvidia.com": 4})),
            QueueSpec("b", state="Open", weight=3, created=1.0),
        ]
        self.nodes: dict[str, NodeSpec] = {}
        self.jobs: dict[str, JobSpec] = {}
        self.tasks: dict[str, TaskSpec] = {}
        self.serial = 0
        for _ in range(self.rng.randint(1, 6)):
            self.add_node()
        for _ in range(self.rng.randint(1, 6)):
            self.add_job()

    def add_node(self) -> None:
        self.serial += 1
        rng = self.rng
        amounts = {"cpu": rng.choice((2, 4, 8)), "memory": f"{rng.choice((4, 16))}Gi", "pods": rng.choice((2, 5, 110))}
        if rng.random() < 0.4:
            amounts["nvidia.com"] = rng.choice((1, 2))
        name = f"n{self.serial}"
        self.nodes[name] = NodeSpec(name, allocatable=requests_from(amounts), labels={"kubernetes.io/hostname": name})

    def add_job(self) -> None:
        self.serial += 1
        rng, name = self.rng, f"j{self.serial}"
        size = rng.randint(1, 6)
        kinds = [rng.choice(SHAPES) for _ in range(rng.randint(1, 2))]
        total: dict[str, int] = defaultdict(int)
        shapes = [kinds[i % len(kinds)] for i in range(size)]
        for each in shapes:
            for resource, amount in each.requests:
                total[resource] += amount
        least = tuple(sorted(total.items())) if rng.random() < 0.5 else None
        job = JobSpec(
            f"ns/{name}",
            rng.choice("ab"),
            min_member=rng.randint(1, size),
            namespace="ns",
            name=name,
            priority=rng.choice((0, 0, 10, 100)),
            created=float(self.serial),
            phase="Pending",
            min_resources=least,
        )
        self.jobs[job.key] = job
        for number, each in enumerate(shapes):
            uid = f"{name}-{number}"
            self.tasks[uid] = TaskSpec(
                uid=uid, namespace="ns", name=f"{name}-worker-{number}", shape=each, job=job.key,
                priority=job.priority, pod_priority=job.priority, created=float(self.serial),
            )  # fmt: skip

    def cluster(self, order: random.Random | None = None) -> Cluster:
        cluster = Cluster()
        puts: list[Callable[[], None]] = [
            *(partial(cluster.put_queue, q) for q in self.queues),
            *(partial(cluster.put_node, n) for n in self.nodes.values()),
            *(partial(cluster.put_job, j) for j in self.jobs.values()),
            *(partial(cluster.put_task, t) for t in self.tasks.values()),
        ]
        if order is not None:
            order.shuffle(puts)
        for put in puts:
            put()
        return cluster

    def happen(self, record: CycleRecord) -> None:
        """What was decided comes true, then something else happens."""
        for bind in record.binds:
            self.tasks[bind.uid] = replace(self.tasks[bind.uid], node=bind.node, status=S.RUNNING, nominated_node="", started=1.0)
        for promise in record.nominations:
            self.tasks[promise.uid] = replace(self.tasks[promise.uid], nominated_node=promise.node)
        for eviction in record.evictions:
            gone = self.tasks[eviction.uid]
            if self.rng.random() < 0.5:
                self.tasks[eviction.uid] = replace(gone, status=S.RELEASING, deleting=True)
            else:
                self.tasks[eviction.uid] = replace(gone, node="", status=S.PENDING)
        for decision in record.jobs:
            self.jobs[decision.job] = replace(self.jobs[decision.job], phase=decision.phase, conditions=decision.conditions)
        for uid, task in list(self.tasks.items()):
            if task.status == S.RELEASING and self.rng.random() < 0.6:
                self.tasks[uid] = replace(task, node="", status=S.PENDING, deleting=False)
            elif task.status == S.RUNNING and self.rng.random() < 0.1:
                self.tasks[uid] = replace(task, status=self.rng.choice((S.SUCCEEDED, S.FAILED)))
        if self.rng.random() < 0.5:
            self.add_job()
        if self.rng.random() < 0.2:
            self.add_node()
        if self.rng.random() < 0.15 and len(self.nodes) > 1:
            name = self.rng.choice(sorted(self.nodes))
            del self.nodes[name]
            for uid, task in list(self.tasks.items()):
                if task.node == name and task.status not in (S.SUCCEEDED, S.FAILED):
                    self.tasks[uid] = replace(task, node="", status=S.PENDING, deleting=False)


def check_accounts(cluster: Cluster) -> None:
    """Kept figures equal figures counted afresh."""
    size = len(cluster.space)
    used: dict[str, IntArray] = defaultdict(lambda: np.zeros(size, np.int64))
    allocated: dict[str, IntArray] = defaultdict(lambda: np.zeros(size, np.int64))
    counts: dict[tuple[str, int], int] = defaultdict(int)
    for row, spec in enumerate(cluster.tasks.specs):
        if spec is None:
            continue
        request = cluster.space.vector(spec.shape.requests, pods=1)
        if spec.node and ON_NODE[spec.status]:
            used[spec.node] += request
        counts[spec.job, int(spec.status)] += 1
        if IS_ALLOCATED[spec.status]:
            allocated[spec.job] += request
        assert cluster.tasks.status[row] == spec.status
    for name, row in cluster.nodes.rows.of.items():
        assert (cluster.nodes.used[:size, row] == used[name]).all(), name
    for key, row in cluster.jobs.rows.of.items():
        assert cluster.jobs.counts[row].tolist() == [counts[key, int(s)] for s in S], key
        assert (cluster.jobs.allocated[:size, row] == allocated[key]).all(), key


def check_decision(history: History, cluster: Cluster, record: CycleRecord, *, gangs: bool, limits: bool) -> None:
    bound = {bind.uid: bind.node for bind in record.binds}
    assert len(bound) == len(record.binds), "a pod was bound twice"
    assert not bound.keys() & {e.uid for e in record.evictions}, "bound and evicted in one cycle"
    space = cluster.space
    for name, node in history.nodes.items():
        there = [t for t in history.tasks.values() if (t.node == name and ON_NODE[t.status]) or bound.get(t.uid) == name]
        total = sum((space.vector(t.shape.requests, pods=1) for t in there), np.zeros(len(space), np.int64))
        assert (total <= space.vector(node.allocatable)).all(), f"{name} is over-committed"
    for uid in bound:
        assert history.tasks[uid].status == S.PENDING
    if gangs:
        for key, job in history.jobs.items():
            mine = [t for t in history.tasks.values() if t.job == key]
            if any(t.uid in bound for t in mine):
                ready = sum(1 for t in mine if COUNTS_READY[t.status] or t.uid in bound)
                waiting = sum(1 for t in mine if t.status == S.PENDING and t.uid not in bound and not t.shape.requests)
                assert ready + waiting >= job.min_member, f"{key} was started below its minimum"
    if limits:
        limit = space.vector(history.queues[0].capability or ())
        mine = [t for t in history.tasks.values() if history.jobs[t.job].queue == "a" and (IS_ALLOCATED[t.status] or t.uid in bound)]
        new = [t for t in mine if t.uid in bound]
        total = sum((space.vector(t.shape.requests) for t in mine), np.zeros(len(space), np.int64))
        for t in new:
            asked = space.vector(t.shape.requests) > 0
            assert (total[asked] <= limit[asked]).all(), "queue a is above its capability"


def picture(record: CycleRecord) -> tuple[object, ...]:
    return record.binds, record.evictions, record.nominations, record.jobs, record.queues


@pytest.mark.parametrize("name", sorted(POLICIES))
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_history_keeps_its_promises(name: str, seed: int) -> None:
    history, chosen = History(seed), policy(name)
    for number in range(4):
        cluster = history.cluster()
        check_accounts(cluster)
        record = decide(cluster.snapshot(chosen.semantics.node_order), chosen, installed(), float(number), uid=str(number))
        check_decision(history, cluster, record, gangs=True, limits=name == "capacity")
        history.happen(record)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_equal_input_in_any_order_gives_equal_output(seed: int) -> None:
    history, chosen = History(seed), policy("navarch")
    records = [decide(history.cluster(random.Random(order)).snapshot(), chosen, installed(), 5.0, uid="x") for order in (None, 1, 2)]
    assert picture(records[0]) == picture(records[1]) == picture(records[2])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_one_change_at_a_time_ends_where_a_fresh_start_does(seed: int) -> None:
    """A cluster fed change by change equals one built afresh, in every figure and every decision."""
    history, chosen = History(seed), policy("navarch")
    live = history.cluster()
    for number in range(3):
        record = decide(live.snapshot(), chosen, installed(), float(number), uid=str(number))
        before = (dict(history.nodes), dict(history.jobs), dict(history.tasks))
        history.happen(record)
        for name in before[0].keys() - history.nodes.keys():
            live.remove_node(name)
        for name, node in history.nodes.items():
            if before[0].get(name) != node:
                live.put_node(node)
        for key, job in history.jobs.items():
            if before[1].get(key) != job:
                live.put_job(job)
        for uid, task in history.tasks.items():
            if before[2].get(uid) != task:
                live.put_task(task)
        check_accounts(live)
        fresh = decide(history.cluster().snapshot(), chosen, installed(), 9.0, uid="x")
        assert picture(decide(live.snapshot(), chosen, installed(), 9.0, uid="x")) == picture(fresh)
