"""Numa-aware: keeps pods off nodes whose kubelet would refuse to align their CPUs, and prefers nodes where they span few NUMA zones.

Reads Numatopology objects. It concerns Guaranteed pods: a static CPU manager gives their containers CPUs of their own. A pod may ask
for a policy by the annotation `volcano.sh/numa-topology-policy`. Then only nodes with that policy take it, and a node scores the
higher the fewer zones its CPUs span. Other pods are checked on nodes that enforce a policy. The predicted CPUs are part of the
decision.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change
from navarch.engine.reasons import Event
from navarch.model.cpu_sets import write_cpu_list
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.model.status import IS_TERMINAL
from navarch.plugins.numa_policies import NONE
from navarch.plugins.volcano.numa_aware.nodes import NumaColumns, Tables, numa_columns

POLICY = "volcano.sh/numa-topology-policy"
SCORE = 100
_PREDICTED = "numa-aware predictions"
"""Memo: UID of a pod -> its CPUs, until the node reports them."""


class Predicted(Struct, frozen=True):
    """`task`: row of the pod, which stays while the pod does. `cpus`: bits."""

    task: int
    node: str
    cpus: int


class NumaAware(Plugin):
    """Predicts the CPUs of Guaranteed pods, and keeps pods off nodes whose kubelet would refuse them"""

    name = "numa-aware"
    arguments = (Argument("weight", "int", 1, "weight of the score by NUMA zones"),)

    def open(self) -> None:
        self.columns: NumaColumns = numa_columns(self.session.snapshot)
        self.any_known = bool(self.columns.known.any())
        self.state: IntArray = self.columns.state.copy()
        self.taken: dict[int, tuple[int, int]] = {}
        """Task -> (node, bits of the CPUs that it would get)."""
        self._evicted: dict[int, tuple[int, int]] = {}
        if self.any_known:
            self._occupy_predicted()

    def _occupy_predicted(self) -> None:
        """CPUs predicted for pods of earlier cycles, until their node reports them: the report comes after the pod has started."""
        session, memo = self.session, self.session.snapshot.memo
        predicted: dict[str, Predicted] = memo.get(_PREDICTED, {})
        if not predicted:
            return
        specs, there, waiting = session.snapshot.tasks.specs, dict[str, tuple[int, Predicted]](), set[int]()
        for uid, found in sorted(predicted.items()):
            spec = specs[found.task] if found.task < len(specs) else None
            at = session.snapshot.nodes.row(found.node)
            if spec is None or spec.uid != uid or at is None or session.node[found.task] != at or IS_TERMINAL[spec.status]:
                continue
            there[uid] = at, found
            here = self.columns.specs[at]
            if here is not None and uid not in here.assigned and spec.key not in here.assigned:
                waiting.add(at)
        # The kubelet may choose other CPUs than predicted: predictions count until the node has reported all of these pods.
        memo[_PREDICTED] = {uid: found for uid, (at, found) in there.items() if at in waiting}
        for at, found in there.values():
            if at in waiting:
                self._occupy(at, found.cpus)

    def close(self) -> None:
        """Remember the CPUs of the pods that are bound."""
        if self.taken:
            tasks = {self.session.task(task).uid: task for task in self.taken}
            memo = self.session.snapshot.memo
            predicted = dict(memo.get(_PREDICTED, {}))
            for bind in self.session.record.binds:
                task = tasks.get(bind.uid)
                if task is not None and self.taken[task][1]:
                    predicted[bind.uid] = Predicted(task, bind.node, self.taken[task][1])
            memo[_PREDICTED] = predicted

    def node_filters(self) -> list[NodeFilter]:
        return [Alignable(self)]

    def node_scorers(self) -> list[NodeScorer]:
        weight = self.given.integer("weight")
        return [FewestZones(self, weight)] if weight and self.any_known else []

    # questions

    def checked(self, task: TaskClass, rows: Rows | slice) -> BoolArray:
        """Nodes that decide by their CPUs: those that enforce a policy, or the one that the pod wants."""
        columns = self.columns
        enforced = columns.known & columns.static
        if not wanted_policy(task):
            for name in (NONE, ""):
                enforced = enforced & (columns.policy != columns.policies.get(name, -1))
        found: BoolArray = enforced[rows]
        return found

    def answered(self, task: TaskClass, at: Figures) -> tuple[Tables, IntArray, BoolArray]:
        """The answers, the state of each column, and whether it admits the pod; only columns that are `checked` have a meaning."""
        containers, states = task.shape.exclusive_cpus, self.state[at.rows]
        tables = self.columns.states.answered(containers, states)
        admitted = self._admitted(task, tables, states)
        for step in range(int(at.added.max(initial=0)) if at.added is not None else 0):
            # The columns of a ladder assume further pods of the class on their nodes: each takes its CPUs before the next.
            assert at.added is not None
            states = np.where(at.added > step, tables.after[states], states)
            tables = self.columns.states.answered(containers, states)
            admitted &= self._admitted(task, tables, states)
        return tables, states, admitted

    def _admitted(self, task: TaskClass, tables: Tables, states: IntArray) -> BoolArray:
        """A pod that asks for a policy needs a node with some free CPU, also if it asks for a part of one."""
        admitted: BoolArray = ~tables.refused[states]
        return admitted & self.columns.states.any_free[states] if wanted_policy(task) else admitted

    # changes

    def on_allocate(self, change: Change) -> None:
        if not self.any_known or not change.task.shape.exclusive_cpus:
            return
        for task, row in zip(change.tasks, change.nodes):
            if change.undone:
                found = self._evicted.pop(task, None)
                if found is not None:
                    self._take(task, *found)
            elif self.checked(change.task, np.array([row]))[0]:
                state = int(self.state[row])
                answer = self.columns.states.answered(change.task.shape.exclusive_cpus, np.array([state])).answers[state]
                if answer is not None and not answer.refused:
                    self._take(task, row, answer.cpus)

    def _take(self, task: int, row: int, bits: int) -> None:
        self.taken[task] = row, bits
        self.session.cpus[task] = write_cpu_list(bits)
        self._occupy(row, bits)

    def on_deallocate(self, change: Change) -> None:
        for task in change.tasks:
            found = self.taken.pop(task, None)
            if found is not None:
                self.session.cpus.pop(task, None)
                if not change.undone:
                    self._evicted[task] = found
                kind, free = self.columns.states.states[int(self.state[found[0]])]
                if free is not None:
                    self.state[found[0]] = self.columns.states.number(kind, free | found[1])

    def _occupy(self, row: int, bits: int) -> None:
        if self.columns.known[row]:
            kind, free = self.columns.states.states[int(self.state[row])]
            if free is not None:
                self.state[row] = self.columns.states.number(kind, free & ~bits)


def wanted_policy(task: TaskClass) -> str:
    """The policy that the pod asks for; empty if it asks for none."""
    found = dict(task.shape.hints).get(POLICY, "")
    return "" if found == NONE else found


class Alignable(NodeFilter):
    name = "numa-aware"
    scope = Scope.ROW
    undone_by = (Event.NODE_ADDED, Event.NODE_CHANGED)

    def __init__(self, plugin: NumaAware) -> None:
        self.plugin = plugin

    def applies(self, task: TaskClass) -> bool:
        return bool(task.shape.exclusive_cpus) and (self.plugin.any_known or bool(wanted_policy(task)))

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        ok = ~self._unmatched(task, at)
        if self.plugin.any_known:
            _, _, admitted = self.plugin.answered(task, at)
            ok &= admitted | ~self.plugin.checked(task, at.rows)
        return ok

    def _unmatched(self, task: TaskClass, at: Figures) -> BoolArray:
        """Nodes that do not have the policy that the pod asks for."""
        columns, policy = self.plugin.columns, wanted_policy(task)
        if not policy:
            return np.zeros(len(columns.known[at.rows]), dtype=bool)
        same = columns.known & columns.static & (columns.policy == columns.policies.get(policy, -2))
        unmatched: BoolArray = ~same[at.rows]
        return unmatched

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        columns, policy, rows = self.plugin.columns, wanted_policy(task), at.rows
        left = self._unmatched(task, at)
        if policy:
            for text, lacking in (("numa info is empty", ~columns.known), ("cpu manager policy isn't static", ~columns.static)):
                yield Refusal(text, left & lacking[rows], True, "NumaPolicy")
                left = left & ~lacking[rows]
            for name, number in columns.policies.items():
                if name != policy:
                    text = f"task topology policy[{policy}] is different with node[{name}]"
                    yield Refusal(text, left & (columns.policy == number)[rows], True, "NumaPolicy")
                    left = left & (columns.policy != number)[rows]
        if not self.plugin.any_known:
            return
        tables, states, admitted = self.plugin.answered(task, at)
        refused = ~admitted & self.plugin.checked(task, rows) & ~self._unmatched(task, at)
        if policy:
            empty = refused & ~self.plugin.columns.states.any_free[states]
            yield Refusal("cpu allocatable map is empty", empty, True, "NumaPolicy")
            refused = refused & ~empty
        for state in np.unique(states[refused]).tolist():
            answer = tables.answers[state]
            assert answer is not None
            text = f"container {answer.refused} cannot be assigned by numa"
            if answer.lacks:
                text = f"node(s) have too few free CPUs for container {answer.refused}"
            yield Refusal(text, refused & (states == state), True, "Numa")


class FewestZones(NodeScorer):
    """100 for a node where the pod gets no CPU of its own, less the more zones it spans; 0 for the nodes where it spans most."""

    name = "numa-aware"
    scope = Scope.ROW
    normalises = True

    def __init__(self, plugin: NumaAware, weight: int) -> None:
        self.plugin = plugin
        self.weight = float(weight)

    def applies(self, task: TaskClass) -> bool:
        return bool(task.shape.exclusive_cpus) and bool(wanted_policy(task))

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        tables, states, _ = self.plugin.answered(task, at)
        zones: FloatArray = np.where(self.plugin.checked(task, at.rows), tables.zones[states], 0).astype(np.float64)
        return zones

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        if not high:
            return np.full_like(raw, SCORE)
        scores: FloatArray = SCORE - np.floor(SCORE * raw / high)
        return scores
