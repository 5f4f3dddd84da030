"""Usage: keeps pods off nodes that are loaded, and prefers those with the least load.

The load of a node is what a metrics server measured as the average of ten minutes (`metrics:` in the policy file, or `--metrics`),
plus an estimate for pods that were placed since (`unmeasured_load`). The filter looks at the measured load alone. Figures that are
older than five minutes do not count: such a node passes the filter and scores 0.

    score = 100 * usage.weight * (cpu.weight * (1 - cpu load) + memory.weight * (1 - memory load)) / (cpu.weight + memory.weight)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from navarch.engine.arguments import Argument, WrongKind
from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change
from navarch.engine.reasons import Event
from navarch.model.node_facts import node_capacities
from navarch.model.node_load import load_columns
from navarch.model.quantity import QuantityError, nano_to_milli, nano_to_value, parse_nano
from navarch.model.resources import CPU, MEMORY, BoolArray, FloatArray
from navarch.model.status import TaskStatus
from navarch.plugins.volcano.usage.unmeasured_load import Estimator, Expected, UnmeasuredLoad

PERIOD = "10m"
"""The period whose average counts."""
FRESH = 300.0
"""Seconds for which figures count."""
DELAY = 30.0
"""Seconds for which a running pod counts as not measured yet, unless `metrics.interval` says otherwise."""
CPU_LOAD = "the CPU load of the node exceeds the upper limit."
MEMORY_LOAD = "the memory load of the node exceeds the upper limit."


def _amount(value: object) -> None:
    """A whole number that is not negative, or a quantity as text."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return
    try:
        if isinstance(value, str) and parse_nano(value) >= 0:
            return
    except QuantityError:
        pass
    raise WrongKind(f'found {value!r}, expected a whole number or a quantity such as "250m" or "200Mi"')


class Usage(Plugin):
    """Prefers nodes with little load, and refuses nodes above a threshold"""

    name = "usage"
    arguments = (
        Argument("usage.weight", "int", 5, "weight of the whole score", minimum=0),
        Argument("cpu.weight", "int", 1, "weight of cpu in the load of a node", minimum=0),
        Argument("memory.weight", "int", 1, "weight of memory in the load of a node", minimum=0),
        Argument(
            "thresholds",
            "mapping",
            None,
            "a node above one of these is refused",
            fields=(
                Argument("cpu", "int", 80, "percent of the cpu", minimum=0, maximum=100),
                Argument("mem", "int", 80, "percent of the memory", minimum=0, maximum=100),
            ),
        ),
        Argument(
            "estimator",
            "mapping",
            None,
            "how much a pod that is not measured yet is expected to use",
            fields=(
                Argument("request_ratio", "float", 0.7, "part of its requests", minimum=0, maximum=1),
                Argument("burst_ratio", "float", 0.0, "part of what its limits allow beyond its requests", minimum=0, maximum=1),
                Argument("risk_threshold", "float", 0.6, "a node with at least this load counts as risky", minimum=0, maximum=1),
                Argument("risk_factor", "float", 1.2, "factor on a risky node", minimum=1),
                Argument("be_cpu", "any", "250m", "cpu of a pod without requests; a number is in millicores", check=_amount),
                Argument("be_mem", "any", "200Mi", "memory of a pod without requests; a number is in MiB", check=_amount),
            ),
        ),
    )

    def open(self) -> None:
        session, given = self.session, self.given
        columns = load_columns(session.snapshot, PERIOD)
        self.measured = columns.percent
        self.fresh: BoolArray = session.now - columns.at <= FRESH
        weights = given.integer("cpu.weight"), given.integer("memory.weight")
        self.unmeasured = UnmeasuredLoad(
            self._estimator(weights), columns.percent, node_capacities(session.snapshot), len(session.status)
        )
        self._was_counted: set[int] = set()
        """Evicted tasks whose estimate was taken away."""
        self._count_young_pods()

    def _estimator(self, weights: tuple[int, int]) -> Estimator:
        given = self.given.section("estimator")
        return Estimator(
            request_ratio=given.number("request_ratio"),
            burst_ratio=given.number("burst_ratio"),
            risk_threshold=given.number("risk_threshold"),
            risk_factor=given.number("risk_factor"),
            without_requests=(_millicores(given["be_cpu"]), _bytes(given["be_mem"])),
            weights=weights,
        )

    def _count_young_pods(self) -> None:
        """Pods on nodes that are bound or on their way, and running ones that started a moment ago."""
        session, tasks = self.session, self.session.snapshot.tasks
        status = session.status
        placed = (status == TaskStatus.ALLOCATED) | (status == TaskStatus.BINDING) | (status == TaskStatus.BOUND)
        delay = session.policy.metrics.get("interval")
        window = float(delay) if isinstance(delay, int | float) and delay > 0 else DELAY
        running = status == TaskStatus.RUNNING
        young = running & (np.isnan(tasks.started) | (session.now - tasks.started < window))
        rows = np.flatnonzero(tasks.alive & (session.node >= 0) & (placed | young))
        shapes, shape_of = np.unique(session.shape[rows], return_inverse=True)
        snapshot, numbers = session.snapshot, shapes.tolist()
        expected = self.unmeasured.estimator.plain(
            snapshot.shape_request[[CPU, MEMORY]][:, shapes].astype(float),
            np.array([snapshot.shapes[number].limits for number in numbers], dtype=float).reshape(-1, 2).T,
            np.array([snapshot.shape_best_effort[number] for number in numbers], dtype=bool),
        )
        if len(rows):
            self.unmeasured.add(
                rows.tolist(), session.node[rows].tolist(), Expected(expected.usual[:, shape_of], expected.most[:, shape_of])
            )

    # answers

    def node_filters(self) -> list[NodeFilter]:
        return [LoadBelowThresholds(self)]

    def node_scorers(self) -> list[NodeScorer]:
        return [LeastLoad(self)] if self.given.integer("usage.weight") and sum(self.unmeasured.estimator.weights) else []

    def undo_leaves_trace(self, task: TaskClass) -> bool:
        """Estimates are sums of fractions: what is added and taken off again may leave another sum."""
        return True

    def on_allocate(self, change: Change) -> None:
        tasks, nodes = change.tasks, change.nodes
        if change.undone:
            kept = [(task, node) for task, node in zip(tasks, nodes) if task in self._was_counted]
            self._was_counted.difference_update(tasks)
            tasks, nodes = [task for task, _ in kept], [node for _, node in kept]
        if tasks:
            self.unmeasured.add(tasks, nodes, self.unmeasured.estimator.of_class(change.task))

    def on_deallocate(self, change: Change) -> None:
        known = self.unmeasured.forget(change.tasks)
        if not change.undone:
            self._was_counted.update(known)


class LoadBelowThresholds(NodeFilter):
    """Refuses a node whose measured load exceeds a threshold. A load that equals the threshold passes."""

    name = "usage"
    scope = Scope.ROW
    undone_by = (Event.NODE_LOAD_CHANGED, Event.NODE_ADDED)

    def __init__(self, plugin: Usage) -> None:
        given = plugin.given.section("thresholds")
        plain = plugin.session.semantics.refusals_tell_all
        self._cpu_text = f"the CPU load exceeds {given.integer('cpu')} %" if plain else CPU_LOAD
        self._memory_text = f"the memory load exceeds {given.integer('mem')} %" if plain else MEMORY_LOAD
        self.over_cpu: BoolArray = plugin.fresh & (plugin.measured[0] > given.integer("cpu"))
        self.over_memory: BoolArray = plugin.fresh & (plugin.measured[1] > given.integer("mem")) & ~self.over_cpu

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        mask: BoolArray = ~(self.over_cpu[at.rows] | self.over_memory[at.rows])
        return mask

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        yield Refusal(self._cpu_text, self.over_cpu[at.rows], True, "NodeLoad")
        yield Refusal(self._memory_text, self.over_memory[at.rows], True, "NodeLoad")


class LeastLoad(NodeScorer):
    name = "usage"
    scope = Scope.ROW

    def __init__(self, plugin: Usage) -> None:
        self.unmeasured = plugin.unmeasured
        self.fresh = plugin.fresh
        self.factor = float(plugin.given.integer("usage.weight"))

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        rows, added = at.rows, at.added
        amount = None if added is None or isinstance(rows, slice) else self.unmeasured.after(task, rows, added)
        free = 1.0 - self.unmeasured.load(rows, amount)
        scores = self.unmeasured.estimator.weighted(free) * 100.0 * self.factor
        return np.where(self.fresh[rows], scores, 0.0)


def _millicores(value: object) -> float:
    return float(value) if isinstance(value, int) else float(nano_to_milli(parse_nano(str(value))))


def _bytes(value: object) -> float:
    return float(value * (1 << 20)) if isinstance(value, int) else float(nano_to_value(parse_nano(str(value))))
