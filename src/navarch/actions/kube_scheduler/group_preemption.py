"""Preemption for a whole group, as kube-scheduler's workload-aware preemption finds its victims.

All less important units of the cluster are removed in a trial. If the group finds its nodes then, the units come back one by one as
long as every pod of the group still fits on the node that it found: first those whose eviction would break a disruption budget, and
more important ones before others. What could not come back is evicted, and the pods are nominated for their nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from navarch.actions.kube_scheduler.group_placement import GroupPlacement, Pair, TrialBoard
from navarch.actions.kube_scheduler.group_tree import GroupNode
from navarch.actions.kube_scheduler.preemption import NEVER
from navarch.actions.kube_scheduler.victim_units import VictimUnit, VictimUnits, split_by_budget
from navarch.engine.node_functions import Scope
from navarch.engine.session import Session
from navarch.engine.victims.protected import ProtectedPods
from navarch.engine.victims.what_if import WhatIf
from navarch.model.status import ON_NODE

if TYPE_CHECKING:
    from navarch.actions.kube_scheduler.schedule import Schedule

NO_VICTIMS = "No preemption victims found for incoming preemptor"
UNDER_WAY = "ongoing preemption on nominated nodes"


@dataclass(frozen=True, slots=True)
class GroupVictims:
    """Pods to evict, in order of importance, and the node that each pod of the group is promised."""

    victims: tuple[int, ...]
    pairs: tuple[Pair, ...]


class GroupPreemption:
    def __init__(self, action: Schedule, units: VictimUnits, waiting: Callable[[GroupNode], list[int]]) -> None:
        self.action = action
        self.session: Session = action.session
        self._units = units
        self._waiting = waiting

    def find(self, root: GroupNode, rows: Sequence[int]) -> GroupVictims | str:
        """The victims, or why nothing is evicted for the group. `rows`: its pending pods."""
        priority = root.priority if root.priority is not None else max(self.session.task(row).pod_priority for row in rows)
        if root.preemption_policy == "Never" or (
            not root.preemption_policy and any(self.session.task(row).preemption_policy == "Never" for row in rows)
        ):
            return NEVER
        if self._is_under_way(rows, priority):
            return UNDER_WAY
        lesser = self._lesser(priority)
        if not lesser:
            return NO_VICTIMS
        with WhatIf(self.session) as trial:
            for unit in lesser:
                self._move(trial, unit, back=False)
            self.action.changed()
            board = TrialBoard(self.action, trial)
            found = GroupPlacement(self.action, board, self._waiting).place_root(root)
            victims = () if found.message else self._needed(trial, lesser, found.pairs)
            board.take_back(0)
        self.action.changed()
        if found.message:
            return f"not helpful for the group: {found.message}"
        rows_of = tuple(row for unit in sorted(victims, key=lambda each: each.importance) for row in unit.rows)
        return GroupVictims(rows_of, tuple(found.pairs)) if rows_of else "the group fits without any eviction"

    def _is_under_way(self, rows: Sequence[int], priority: int) -> bool:
        session = self.session
        nodes = {node for row in rows if (node := self.action.nominations.node_of(row)) is not None}
        for node in sorted(nodes):
            for other in session.residents.on(node):
                spec = session.task(other)
                if spec.deleting and spec.disruption_target and self._units.of(other).priority < priority:
                    return True
        return False

    def _lesser(self, priority: int) -> list[VictimUnit]:
        """Units of pods on nodes below the priority, the most important first. A unit with a protected pod is left out."""
        session, tasks = self.session, self.session.snapshot.tasks
        there = tasks.alive & (session.node >= 0) & ON_NODE[session.status]
        if not self._units.any_group:
            there &= tasks.pod_priority < priority
        protected = session.shared(ProtectedPods)
        units = dict.fromkeys(self._units.of(row) for row in np.flatnonzero(there).tolist())
        found = [unit for unit in units if unit.priority < priority]
        if protected.rows is not None:
            found = [unit for unit in found if not any(protected.has(row) for row in unit.rows)]
        return sorted(found, key=lambda unit: unit.importance)

    def _needed(self, trial: WhatIf, lesser: Sequence[VictimUnit], pairs: Sequence[Pair]) -> list[VictimUnit]:
        """The units that cannot come back. The pods of the group are on their nodes in the trial. A unit on other nodes comes back
        in any case, unless a rule of the group's pods counts pods elsewhere."""
        session = self.session
        needed: list[VictimUnit] = []
        nodes = {node for _, node in pairs}
        far = any(f.scope is Scope.GLOBAL for row, _ in pairs for f in session.filters_for(session.class_of(row)))
        violating, others = split_by_budget(session, lesser, lambda unit: unit.rows)
        for unit in (*violating, *others):
            if not far and not any(int(session.node[row]) in nodes for row in unit.rows):
                continue
            self._move(trial, unit, back=True)
            if not self._still_fit(trial, unit, pairs):
                self._move(trial, unit, back=False)
                needed.append(unit)
        return needed

    def _still_fit(self, trial: WhatIf, unit: VictimUnit, pairs: Sequence[Pair]) -> bool:
        """Whether each pod of the group still passes the filters of its node. Pods on other nodes than the unit's are looked at only
        if a rule of theirs counts pods elsewhere."""
        session = self.session
        nodes = {int(session.node[row]) for row in unit.rows}
        for row, node in pairs:
            task = session.class_of(row)
            if node not in nodes and not any(f.scope is Scope.GLOBAL for f in session.filters_for(task)):
                continue
            trial.remove(row, node)
            fits = self.action.nominations.admits(session.view(task), row, node)
            trial.add(row, node)
            if not fits:
                return False
        return True

    def _move(self, trial: WhatIf, unit: VictimUnit, *, back: bool) -> None:
        for row in unit.rows:
            node = int(self.session.node[row])
            if back:
                trial.add(row, node)
            else:
                trial.remove(row, node)
