"""Rescheduling: moves running pods from loaded nodes to nodes with little load, by evicting them.

Every `interval` the action `shuffle` evicts the victims that this plugin names. The load of nodes is what a metrics server measured
(`metrics:` in the policy file, or `--metrics`). Strategy `lowNodeUtilization`: pods leave the most loaded node first, by priority and
quality of service, until the node is below its target, or until the nodes with room have taken as much as they can. Strategy
`offlineOnly`: only pods that say `volcano.sh/preemptable: "true"` leave.

The load of a node is lowered by what its victims request, in percent of its capacity. The room of the others is what is left up to
their targets, in percent of what they can allocate. Where all nodes have room, or none has, nothing happens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.plugin import Plugin
from navarch.model.node_facts import node_capacities, node_column
from navarch.model.node_load import load_columns
from navarch.model.objects.last_runs import LAST_RUN
from navarch.model.resources import CPU, MEMORY, BoolArray, FloatArray, IntArray
from navarch.model.spec import TaskSpec
from navarch.plugins.volcano.rescheduling.strategies import (
    LOW_NODE_UTILIZATION,
    OFFLINE_ONLY,
    Strategies,
    check_strategy,
    read_strategies,
)

FRESH = 300.0
"""Seconds for which figures count."""
CRITICAL = 2_000_000_000
"""The least priority of pods that the system cannot do without."""
PREEMPTABLE = "volcano.sh/preemptable"
_UNITS = np.array([1e-3, 1.0])
"""Cores of a millicore, and bytes."""
_QUALITY = {"BestEffort": 0, "Burstable": 1}


class Rescheduling(Plugin):
    """Moves running pods away from loaded nodes"""

    name = "rescheduling"
    arguments = (
        Argument("interval", "duration", 300.0, "how often pods are moved"),
        Argument("metricsPeriod", "str", "5m", "the period whose average load counts"),
        Argument(
            "strategies",
            "list",
            None,
            "`{name: lowNodeUtilization, params: {thresholds: {cpu, memory}, targetThresholds: {cpu, memory}}}`, in whole percent, "
            "and `{name: offlineOnly}`",
            check_entry=check_strategy,
        ),
        Argument("queueSelector", "any", None, "only Volcano's design has it; its code does not read it", has_effect=False),
        Argument("labelSelector", "any", None, "only Volcano's design has it; its code does not read it", has_effect=False),
    )

    def victim_tasks(self, candidates: Sequence[int]) -> list[int] | None:
        session = self.session
        last = session.snapshot.objects.get(LAST_RUN, {}).get(("", self.name))
        interval = self.given.number("interval")
        if isinstance(last, int | float) and last + interval >= session.now:
            return None
        session.record.last_runs[self.name] = session.now
        strategies = read_strategies(self.given["strategies"])
        if LOW_NODE_UTILIZATION not in strategies.names:
            return None
        search = VictimSearch(self, strategies, self.given.text("metricsPeriod") or "5m")
        return search.victims(candidates)


class VictimSearch:
    """One search for victims."""

    def __init__(self, plugin: Rescheduling, strategies: Strategies, period: str) -> None:
        self.session = session = plugin.session
        self.strategies = strategies
        self.semantics = session.semantics
        columns = load_columns(session.snapshot, period)
        self.load: FloatArray = columns.percent.copy()
        self.target = np.array(strategies.target)
        measured: BoolArray = session.now - columns.at <= FRESH
        low = (self.load < np.array(strategies.low)[:, None]).all(axis=0)
        cordoned: BoolArray = node_column(session.snapshot, "unschedulable", lambda spec: spec.unschedulable, np.bool_)
        self.low: BoolArray = measured & low & ~cordoned
        self.high: BoolArray = measured & ~self.low & (self.load > self.target[:, None]).any(axis=0)
        self.capacity = node_capacities(session.snapshot)
        self.taken: dict[int, int] = {}
        """Job row -> how many of its pods are victims."""

    def victims(self, candidates: Sequence[int]) -> list[int]:
        if self.low.all() or not self.low.any() or not self.high.any():
            return []
        room = self._room()
        may_leave, pods = set(candidates), self._pods_by_node()
        victims: list[int] = []
        for node in self._most_loaded_first():
            for victim in pods.get(node, ()):
                if not self._goes_on(node, room):
                    break
                if victim not in may_leave or not self._may_leave(victim):
                    continue
                request = self.session.class_of(victim).request[[CPU, MEMORY]]
                room -= request
                self.load[:, node] -= _percent(request, self.capacity[:, node])
                victims.append(victim)
        return victims

    def _room(self) -> IntArray:
        """(2,): millicores and bytes that the nodes with room take before they reach the target."""
        allocatable = self.session.snapshot.nodes.allocatable[[CPU, MEMORY]][:, self.low].astype(float)
        most = (self.target[:, None] * allocatable * 0.01).astype(np.int64)
        room: IntArray = (most - (self.load[:, self.low] * allocatable * 0.01).astype(np.int64)).sum(axis=1)
        return room

    def _goes_on(self, node: int, room: IntArray) -> bool:
        if not (self.load[:, node] >= self.target).any():
            return False
        return not bool(((room == 0) if self.semantics.relief_exceeds_room else (room <= 0)).any())

    def _most_loaded_first(self) -> list[int]:
        rows = np.flatnonzero(self.high)
        load = self.load[:, rows].sum(axis=0)
        return [int(row) for row in rows[np.argsort(-load, kind="stable")]]

    def _pods_by_node(self) -> dict[int, list[int]]:
        """The pods on loaded nodes, those that leave first in front."""
        session = self.session
        placed = np.flatnonzero(session.snapshot.tasks.alive & (session.node >= 0))
        found: dict[int, list[int]] = {}
        for row in sorted(placed[self.high[session.node[placed]]].tolist(), key=self._order):
            found.setdefault(int(session.node[row]), []).append(row)
        return found

    def _order(self, row: int) -> tuple[bool, int, int, str]:
        spec = self.session.task(row)
        priority = spec.pod_priority if spec.has_priority else 0
        return spec.has_priority, priority, _QUALITY.get(spec.shape.qos, 2), spec.key

    # which pods may leave

    def _may_leave(self, victim: int) -> bool:
        spec, job = self.session.task(victim), self.session.job_of(victim)
        if job is None or (OFFLINE_ONLY in self.strategies.names and not _is_offline(spec)):
            return False
        if not spec.preemptable or spec.pod_priority >= CRITICAL:
            return False
        taken = self.taken.get(job.row, 0)
        if job.min_member > 1 and job.ready_count - taken <= job.min_member:
            return False
        self.taken[job.row] = taken + 1
        return True


def _percent(request: IntArray, capacity: FloatArray) -> FloatArray:
    """Cores and bytes of a pod in percent of the capacity of its node. Everything, if the node has none."""
    of = capacity * _UNITS
    percent: FloatArray = np.divide(request * _UNITS * 100, of, out=np.full(2, np.inf), where=of > 0)
    return percent


def _is_offline(spec: TaskSpec) -> bool:
    said = spec.annotations.get(PREEMPTABLE) or spec.labels.get(PREEMPTABLE) or ""
    return said.lower() == "true"
