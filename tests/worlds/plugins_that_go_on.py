"""Plugins from outside of Navarch that go on in a further cycle, each with something that a kept session must not confuse."""

from __future__ import annotations

from collections import Counter
from typing import Any
from zlib import crc32

import numpy as np
from tests.worlds.changing_clusters import OTHER

from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey
from navarch.engine.points.protocols import Change
from navarch.engine.reasons import Reason
from navarch.model.resources import CPU, BoolArray, FloatArray


class ByLabels(Plugin):
    """Tells pods apart by a label and by their queue, and scores nodes for them by what is left and what they have"""

    name = "by-labels"

    def open(self) -> None:
        self.session.distinguish_labels(["tier"])
        self.session.distinguish_queues()

    def next_cycle(self) -> bool:
        return True

    def node_scorers(self) -> list[NodeScorer]:
        return [OfTier(self), Number(self.session.nodes.names), Left()]

    def node_filters(self) -> list[NodeFilter]:
        return [Crowded()]


class OfTier(NodeScorer):
    name, scope = "of-tier", Scope.ROW

    def __init__(self, plugin: Plugin) -> None:
        self._session = plugin.session

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        tier = self._session.task(task.task).labels.get("tier", "")
        sign = {"x": 1.0, "y": -1.0}.get(tier, 0.0) * (2 if task.queue == "b" else 1)
        found: FloatArray = sign * at.used[CPU] / 1000 + 0.0
        return found


class Number(NodeScorer):
    """Its score depends on the extremes over the feasible nodes."""

    name, scope, normalises = "number", Scope.STATIC, True

    def __init__(self, nodes: list[str]) -> None:
        self._numbers = np.array([float(name.strip("n")) for name in nodes])

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        return self._numbers[at.rows]

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        return (raw - low) / (high - low) if high > low else raw * 0.0


class Left(NodeScorer):
    """As `Number`, of a column that moves."""

    name, scope, normalises = "left", Scope.ROW, True

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        found: FloatArray = (at.allocatable[CPU] - at.requested[CPU]) * 1.0
        return found

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        return (raw - low) / (high - low) if high > low else raw * 0.0


class Crowded(NodeFilter):
    """What is leaving a node counts for it."""

    name, scope = "crowded", Scope.ROW

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        found: BoolArray = at.scoring[0] - at.releasing[CPU] + at.pipelined[CPU] < 3500
        return found

    def explain(self, task: TaskClass, at: Figures) -> list[Refusal]:
        return [Refusal("node(s) were crowded", ~self.mask(task, at))]


class ReadsAtOpen(Plugin):
    """Reads everything that a session is opened with once, and decides by it"""

    name = "reads-at-open"

    def open(self) -> None:
        snapshot, session = self.session.snapshot, self.session
        self._queues = {name: (queue.spec.weight, queue.parent and queue.parent.name) for name, queue in session.queues.items()}
        self._allowed = sum(budget.allowed for budget in snapshot.budgets.values())
        self._value = sum(each.value for each in snapshot.priority_classes.values())
        self._quota = sum(amount for quota in snapshot.quotas.values() for _, amount in quota.hard)
        self._teams = {name: each.labels.get("team", "") for name, each in snapshot.namespaces.items()}
        found: dict[Any, Any] = snapshot.objects.get(OTHER, {})
        self._unwanted = {node for each in found.values() for node in each["spec"]["nodesDesired"][:2]}
        self._total = session.total.tolist()
        self._shapes = len(snapshot.shapes)

    def next_cycle(self) -> bool:
        return True

    def job_order(self, job: Job) -> OrderKey:
        read = self._value, self._quota, self._allowed, self._teams, self._shapes, self._total, self._queues[job.queue.name]
        return crc32(repr((read, job.key)).encode())

    def job_valid(self, job: Job) -> Reason | None:
        weight, parent = self._queues[job.queue.name]
        return Reason("Heavy", f"the queue is heavy, and below {parent}") if weight == 3 else None

    def node_filters(self) -> list[NodeFilter]:
        return [Unwanted(frozenset(self._unwanted), self.session.nodes.names)]


class Unwanted(NodeFilter):
    name, scope = "unwanted", Scope.ROW

    def __init__(self, names: frozenset[str], nodes: list[str]) -> None:
        self._wanted = np.array([name not in names for name in nodes], dtype=bool)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        found: BoolArray = self._wanted[at.rows]
        return found


class CountsPods(Plugin):
    """Counts what the cycle placed, by node and by queue, and spreads pods by it"""

    name = "counts-pods"

    def open(self) -> None:
        self._on_node: Counter[int] = Counter()
        self._of_queue: Counter[str] = Counter()

    def next_cycle(self) -> bool:
        self._on_node.clear()
        self._of_queue.clear()
        return True

    def on_allocate(self, change: Change) -> None:
        self._on_node.update(change.nodes)
        self._of_queue[change.job.queue.name] += len(change.tasks)

    def on_deallocate(self, change: Change) -> None:
        self._on_node.subtract(change.nodes)
        self._of_queue[change.job.queue.name] -= len(change.tasks)

    def job_order(self, job: Job) -> OrderKey:
        return self._of_queue[job.queue.name] // 4

    def node_scorers(self) -> list[NodeScorer]:
        return [Spread(self)]

    def placed_on(self, rows: Any) -> FloatArray:
        return np.array([-float(self._on_node[row]) for row in rows])


class Spread(NodeScorer):
    name, scope = "spread", Scope.GLOBAL

    def __init__(self, plugin: CountsPods) -> None:
        self._plugin = plugin

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        rows = range(at.used.shape[1]) if isinstance(at.rows, slice) else at.rows.tolist()
        return self._plugin.placed_on(rows)


class Fails(Plugin):
    """Raises on some jobs, before anything is placed or while it is, and on one kind of nodes"""

    name = "fails"

    def next_cycle(self) -> bool:
        if self.session.now % 11 == 5:
            raise ValueError("now and then it does not go on")
        return self.session.now % 13 != 4

    def job_valid(self, job: Job) -> Reason | None:
        if job.spec.name.endswith("7"):
            raise ValueError(f"what is job {job.spec.name}?")
        return None

    def on_allocate(self, change: Change) -> None:
        if change.job.spec.name.endswith("3"):
            raise ValueError(f"what is {change.job.spec.name}?")

    def on_deallocate(self, change: Change) -> None:
        pass

    def close(self) -> None:
        if self.session.now % 17 == 3:
            raise ValueError("it fails when it closes")


GOING_ON: list[type[Plugin]] = [ByLabels, ReadsAtOpen, CountsPods, Fails]
