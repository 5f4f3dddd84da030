"""Answers about nodes that are kept from one placement to the next change the speed of a cycle, not its decisions."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.small_cluster import add_job, open_session, shape, with_nodes

from navarch.engine.cycle import decide
from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.placement.class_view import ClassView
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change
from navarch.engine.policy import preset
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.resources import CPU, MEMORY, FloatArray, requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Shape, Taint, TaskSpec
from navarch.model.status import TaskStatus

SEEDS = st.integers(0, 2**32 - 1)
POLICIES = {name: preset(name, installed().catalogue()) for name in ("navarch", "volcano", "kube-batch")}


def elastic_world(seed: int) -> Cluster:
    """Few kinds of nodes, most of them empty, some with soft taints; jobs that need little and would take more."""
    draw = Random(seed)
    cluster = Cluster()
    for queue in ("default", "other"):
        cluster.put_queue(QueueSpec(queue, state="Open"))
    nodes = draw.randint(2, 12)
    for i in range(nodes):
        room = requests_from({"cpu": draw.choice((4, 4, 4, 6)), "memory": "16Gi", "pods": draw.choice((5, 110))})
        taints = (Taint("k", "v", "PreferNoSchedule"),) if draw.random() < 0.3 else ()
        labels = {"kubernetes.io/hostname": f"n{i}"}
        cluster.put_node(NodeSpec(f"n{i}", allocatable=room, taints=taints, labels=labels))
    kinds = []
    for cpu, memory in ((500, 1), (700, 1), (300, 2), (1100, 3)):
        requests = requests_from({"cpu": f"{cpu}m", "memory": memory << 30})
        kinds.append(Shape(requests=requests, scoring=(cpu, memory << 30), footprint=(cpu, memory << 30), qos="Burstable"))
    for j in range(draw.randint(2, 8)):
        size = draw.randint(1, 9)
        name, queue = f"j{j}", draw.choice(("default", "default", "other"))
        least, priority = draw.randint(1, size), draw.choice((0, 0, 5))
        spec = JobSpec(f"ns/{name}", queue, min_member=least, namespace="ns", name=name, phase="Inqueue", priority=priority)
        cluster.put_job(spec)
        kind = draw.choice(kinds)
        for i in range(size):
            status = draw.choices((TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.RELEASING), (6, 1, 1))[0]
            where = "" if status == TaskStatus.PENDING else f"n{draw.randrange(nodes)}"
            cluster.put_task(
                TaskSpec(uid=f"{name}-{i}", namespace="ns", name=f"{name}-{i}", shape=draw.choice((kind, kind, kinds[0])),
                         job=spec.key, status=status, node=where, priority=priority, pod_priority=priority)
            )  # fmt: skip
    return cluster


def decided(cluster: Cluster, policy: str, *, plain: bool) -> tuple[list[object], ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClassView, "keeps_answers", not plain)
        record = decide(cluster.snapshot(), POLICIES[policy], installed(), 1e9)
    return list(record.binds), list(record.evictions), list(record.nominations), list(record.jobs)


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.sampled_from(sorted(POLICIES)))
def test_a_cycle_decides_the_same_without_memory(seed: int, policy: str) -> None:
    assert decided(elastic_world(seed), policy, plain=False) == decided(elastic_world(seed), policy, plain=True)


class Fullest(NodeScorer):
    name, scope = "fullest", Scope.ROW

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        score: FloatArray = at.used[CPU] * 100.0 / np.maximum(at.allocatable[CPU], 1) + at.requested[MEMORY] / 3e9
        return score


class OddRows(NodeScorer):
    """Looks at the row itself."""

    name, scope = "odd-rows", Scope.ROW

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        rows = np.arange(at.used.shape[1]) if isinstance(at.rows, slice) else at.rows
        score: FloatArray = (rows % 2) * 20.0 - at.used[CPU] / 100
        return score


class OwnCount(NodeScorer):
    """Counts what it saw placed, by row: figures do not tell what it says."""

    name, scope = "own-count", Scope.ROW

    def __init__(self, size: int) -> None:
        self.seen = np.zeros((2, size))

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        more = 0 if at.added is None else at.added
        score: FloatArray = -np.abs(self.seen[task.number % 2][at.rows] + more - 2.0)
        return score


class Distance(NodeScorer):
    """Rescaled over the nodes that take the task."""

    name, scope, normalises = "distance", Scope.STATIC, True

    def __init__(self, size: int) -> None:
        self.values = np.array([(7 * i) % 5 for i in range(size)], dtype=float)

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        found: FloatArray = self.values[at.rows]
        return found

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        return np.floor(30 * (raw - low) / (high - low)) if high > low else raw * 0


def plugin_of(parts: frozenset[str]) -> type[Plugin]:
    class Test(Plugin):
        name = "test"

        def open(self) -> None:
            size = len(self.session.nodes)
            self.count = OwnCount(size)
            self.made = {"fullest": Fullest(), "odd": OddRows(), "count": self.count, "distance": Distance(size)}

        def node_scorers(self) -> list[NodeScorer]:
            return [scorer for key, scorer in self.made.items() if key in parts]

        def on_allocate(self, change: Change) -> None:
            np.add.at(self.count.seen[change.task.number % 2], list(change.nodes), 1)

        def on_deallocate(self, change: Change) -> None:
            np.add.at(self.count.seen[change.task.number % 2], list(change.nodes), -1)

    return Test


@settings(max_examples=200, deadline=None)
@given(st.frozensets(st.sampled_from(("fullest", "odd", "count", "distance"))), SEEDS)
def test_every_choice_is_that_of_a_fresh_look(parts: frozenset[str], seed: int) -> None:
    """Tasks of several classes are placed in turns, some taken back."""
    draw = Random(seed)
    nodes = [(f"n{i}", {"cpu": draw.choice((2, 2, 3)), "memory": "8Gi"}) for i in range(draw.randint(1, 6))]
    cluster = with_nodes(*nodes)
    shapes = [shape(cpu="300m"), shape(cpu="300m", memory="1"), shape(cpu="200m", memory="1Gi")]
    for number, kind in enumerate(shapes):
        add_job(cluster, f"j{number}", [kind] * 30)
    session = open_session(cluster, plugin_of(parts))
    jobs = {job.spec.name: job for job in session.all_jobs()}
    waiting = {name: list(job.tasks) for name, job in jobs.items()}
    order = [draw.choice(sorted(waiting)) for _ in range(6)]
    for turn in range(60):
        name = order[turn % len(order)] if turn % 20 else draw.choice(sorted(waiting))
        if not waiting[name]:
            continue
        task = session.class_of(waiting[name][-1])
        found = session.view(task).choose(1)
        assert found == ClassView(session, task).choose(1)
        if not found[0]:
            continue
        statement = session.statement()
        statement.allocate(jobs[name], [waiting[name][-1]], found[0], task)
        if draw.random() < 0.1:
            statement.discard()
        else:
            waiting[name].pop()
