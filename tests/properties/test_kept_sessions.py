"""A cycle that goes on with the session of the last one decides as a cycle with a new session does."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.worlds.small_cluster import shape

from navarch.engine.cycle import decide
from navarch.engine.policy import Policy, preset
from navarch.engine.policy.load import load
from navarch.engine.record import CycleRecord
from navarch.engine.session import Session
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, TaskSpec
from navarch.model.status import TaskStatus
from navarch.model.tables import node_copies
from navarch.offline.replay import decisions

REGISTRY = installed()
SHAPES = [
    shape(cpu="1"),
    shape(cpu="2", memory="1Gi"),
    shape(cpu="500m"),
    shape(),
    replace(shape(cpu="3"), node_selector=(("zone", "a"),)),
]
NODES = 10
ORDERS = {
    "actions": "allocate, backfill",
    "tiers": [
        {
            "plugins": [
                {"name": name}
                for name in ("ageing", "namespace-turns", "least-attained-service", "gang", "strict-order", "predicates", "best-fit")
            ]
        }
    ],
}
POLICIES: dict[str, Policy] = {
    **{name: preset(name, REGISTRY.catalogue()) for name in ("fifo", "fifo-skip", "sjf")},
    "orders": load(ORDERS, REGISTRY.catalogue(), "orders"),
}


class Worlds:
    """Two clusters to which the same happens: snapshots of the first are handed on, those of the second are new."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.both = (Cluster(), Cluster())
        self.running: list[str] = []
        self.jobs: dict[str, list[TaskSpec]] = {}
        self.count = 0
        self.last: Snapshot | None = None
        for cluster in self.both:
            cluster.put_queue(QueueSpec("a", state="Open"))
            cluster.put_queue(QueueSpec("b", state="Open", weight=2))
        for number in range(NODES):
            self.put_node(number)
        for each in SHAPES:  # shapes that stay, so that the list of shapes does
            self.put(TaskSpec(f"stays-{SHAPES.index(each)}", "ns", "stays", each, node="n0", status=TaskStatus.RUNNING))

    def put(self, task: TaskSpec) -> None:
        for cluster in self.both:
            cluster.put_task(task)

    def put_node(self, number: int) -> None:
        allocatable = requests_from({"cpu": self.rng.choice((2, 4)), "memory": "8Gi", "pods": self.rng.choice((3, 9))})
        for cluster in self.both:
            cluster.put_node(NodeSpec(f"n{number}", allocatable=allocatable, labels={"zone": "ab"[number % 2]}))

    def arrive(self) -> None:
        rng, name = self.rng, f"j{self.count}"
        self.count += 1
        size, queue = rng.choice((1, 1, 2, 5)), rng.choice("ab")
        key, seconds = f"ns{self.count % 3}/{name}", rng.choice((None, 5.0, 50.0))
        namespace = key.partition("/")[0]
        spec = JobSpec(
            *(key, queue, rng.randint(1, size), namespace, name), created=float(self.count), expected_duration=seconds, uid=key
        )
        first, second = rng.choice(SHAPES), rng.choice(SHAPES)
        self.jobs[key] = []
        for cluster in self.both:
            cluster.put_job(spec)
        for number in range(size):
            uid = f"{name}-{number}"
            task = TaskSpec(uid, namespace, f"{name}-w-{number}", first if number else second, job=key, created=float(self.count))
            self.jobs[key].append(task)
            self.put(task)

    def end(self) -> None:
        if self.jobs:
            key = self.rng.choice(sorted(self.jobs))
            for cluster in self.both:
                for task in self.jobs[key]:
                    cluster.remove_task(task.uid)
                cluster.remove_job(key)
            del self.jobs[key]

    def leave(self) -> None:
        """A pod that runs is told to end, and holds its node meanwhile."""
        placed = [(key, i) for key, tasks in sorted(self.jobs.items()) for i, task in enumerate(tasks) if task.node]
        if placed:
            key, i = self.rng.choice(placed)
            self.jobs[key][i] = replace(self.jobs[key][i], status=TaskStatus.RELEASING, deleted=1.0)
            self.put(self.jobs[key][i])

    def happen(self) -> None:
        match self.rng.randrange(40):
            case 0:
                self.put_node(self.rng.randrange(NODES))
            case 1:
                self.put(TaskSpec(f"odd-{self.count}", "ns", "odd", shape(cpu=f"{self.count + 1}m")))
            case 2:
                queue = QueueSpec(self.rng.choice("abc"), state="Open", weight=self.rng.randint(1, 3))
                for cluster in self.both:
                    cluster.put_queue(queue)
            case 3 | 4 | 5:
                self.leave()
            case number if number < 20:
                self.end()
            case _:
                self.arrive()

    def take(self, policy: Policy) -> Snapshot:
        """The next snapshot of the first cluster. Only rows that have changed are copied, however many these are."""
        with patch.object(node_copies, "MANY", 0):
            self.last = self.both[0].snapshot(policy.semantics.node_order, instead_of=self.last)
        return self.last

    def apply(self, record: CycleRecord) -> None:
        for bind in record.binds:
            if bind.job in self.jobs:
                tasks = self.jobs[bind.job]
                place = next(i for i, task in enumerate(tasks) if task.uid == bind.uid)
                tasks[place] = replace(tasks[place], node=bind.node, status=TaskStatus.RUNNING, started=1.0)
                self.put(tasks[place])


def _cycles(seed: int, policy: Policy, steps: int, *, other_sessions: bool) -> int:
    """Run cycles in both worlds and compare. Returns how many of the first had to open a session. `other_sessions`: now and then
    another session is opened over a snapshot of the first world, before or instead of its cycle."""
    world, opened = Worlds(Random(seed)), 0
    opening = Session.open_plugins

    def counting(self: Session, *words: object) -> None:
        nonlocal opened
        opened += 1
        opening(self, *words)  # type: ignore[arg-type]

    for step in range(steps):
        for _ in range(world.rng.choice((0, 1, 1, 2, 3))):
            world.happen()
        last = world.take(policy)
        if other_sessions and world.rng.randrange(3) == 0:
            Session(last, policy, REGISTRY, float(step)).dissolve()
            if world.rng.randrange(2):
                world.happen()
                last = world.take(policy)
        fresh = world.both[1].snapshot(policy.semantics.node_order)
        with patch.object(Session, "open_plugins", counting):
            kept = decide(last, policy, REGISTRY, float(step), f"c{step}", report_all=step % 3 == 0)
        expected = decide(fresh, policy, REGISTRY, float(step), f"c{step}", report_all=step % 3 == 0)
        assert decisions(kept) == decisions(expected)
        assert kept.tried == expected.tried
        world.apply(kept)
    return opened


@pytest.mark.parametrize("name", POLICIES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=12, deadline=None)
def test_a_kept_session_decides_as_a_new_one(name: str, seed: int) -> None:
    _cycles(seed, POLICIES[name], 25, other_sessions=False)


@pytest.mark.parametrize("name", POLICIES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=12, deadline=None)
def test_a_kept_session_goes_on_only_while_no_other_session_was_opened(name: str, seed: int) -> None:
    _cycles(seed, POLICIES[name], 25, other_sessions=True)


@pytest.mark.parametrize("name", POLICIES)
def test_most_cycles_go_on_with_the_session_of_the_last_one(name: str) -> None:
    assert _cycles(1, POLICIES[name], 60, other_sessions=False) < 20
