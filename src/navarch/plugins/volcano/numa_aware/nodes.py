"""The NUMA state of all nodes as columns: for each node the number of a state, which is a kind of node with certain CPUs free.

Nodes of one kind with the same free CPUs share a state, and each state is answered once for a pod. States and answers stay in the
memo of the cluster, so a cycle computes answers only for states that no earlier cycle had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from navarch.model.objects.numa import CpuTopologySpec
from navarch.model.resources import BoolArray, IntArray
from navarch.model.snapshot import Snapshot
from navarch.plugins.volcano.numa_aware.alignment import Answer, Containers, NumaNode, numa_node
from navarch.plugins.volcano.numa_aware.cpu_choice import CpuLayout

STATIC = "static"
_MOST_STATES = 1 << 16


class Tables(Struct):
    """The answers for one pod, by the number of the state."""

    answers: list[Answer | None] = []
    """None: not asked yet."""
    refused: BoolArray = np.empty(0, dtype=bool)
    zones: IntArray = np.empty(0, dtype=np.int64)
    """How many zones its CPUs span."""
    after: IntArray = np.empty(0, dtype=np.int64)
    """The state after the pod; the state itself where it is refused."""

    def put(self, state: int, answer: Answer, after: int) -> None:
        if state >= len(self.answers):
            more = max(2 * state, 16) - len(self.answers)
            self.answers += [None] * more
            self.refused = np.concatenate((self.refused, np.zeros(more, dtype=bool)))
            self.zones = np.concatenate((self.zones, np.zeros(more, dtype=np.int64)))
            self.after = np.concatenate((self.after, np.zeros(more, dtype=np.int64)))
        self.answers[state] = answer
        self.refused[state], self.zones[state], self.after[state] = bool(answer.refused), answer.zones, after


class States:
    """All states that were seen, and the answers about them."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[object, ...], CpuLayout] = {}
        self._kinds: dict[tuple[object, ...], int] = {}
        self.kinds: list[NumaNode] = []
        self._numbers: dict[tuple[int, int | None], int] = {}
        self.states: list[tuple[int, int | None]] = []
        self._tables: dict[Containers, Tables] = {}
        self._any_free: BoolArray = np.empty(0, dtype=bool)

    def kind_of(self, spec: CpuTopologySpec) -> int:
        key = (spec.cpus, spec.topology_manager, spec.reserved)
        found = self._kinds.get(key)
        if found is None:
            layout = self._layouts.get(spec.cpus)
            if layout is None:
                layout = self._layouts[spec.cpus] = CpuLayout(spec.cpus)
            found = self._kinds[key] = len(self.kinds)
            self.kinds.append(numa_node(spec, layout))
        return found

    def number(self, kind: int, free: int | None) -> int:
        found = self._numbers.get((kind, free))
        if found is None:
            found = self._numbers[kind, free] = len(self.states)
            self.states.append((kind, free))
        return found

    def answered(self, containers: Containers, wanted: IntArray) -> Tables:
        """The answers for these states, at least."""
        tables = self._tables.get(containers)
        if tables is None:
            tables = self._tables[containers] = Tables()
        for state in np.unique(wanted).tolist():
            if state >= len(tables.answers) or tables.answers[state] is None:
                self._answer(tables, containers, state)
        return tables

    def _answer(self, tables: Tables, containers: Containers, state: int) -> None:
        kind, free = self.states[state]
        answer = self.kinds[kind].answer(free, containers)
        after = state if answer.refused or free is None else self.number(kind, free & ~answer.cpus)
        tables.put(state, answer, after)

    @property
    def any_free(self) -> BoolArray:
        """By the number of the state: whether any CPU is free."""
        if len(self._any_free) != len(self.states):
            self._any_free = np.array([bool(free) for _, free in self.states], dtype=bool)
        return self._any_free


class NumaColumns(Struct, frozen=True):
    """One value a node. `state` is 0 where the node reports nothing, which is state 0 too: look at `known` first."""

    specs: tuple[CpuTopologySpec | None, ...]
    state: IntArray
    known: BoolArray
    static: BoolArray
    policy: IntArray
    policies: Mapping[str, int]
    states: States


def numa_columns(snapshot: Snapshot) -> NumaColumns:
    """Kept while nodes and their Numatopology objects stay as they are."""
    key = "numa-aware"
    version = (snapshot.versions.get("Numatopology", 0), snapshot.nodes.version)
    held: tuple[Any, NumaColumns] | None = snapshot.memo.get(key)
    if held is None or held[0] != version:
        states = None if held is None else held[1].states
        if states is None or len(states.states) > _MOST_STATES:
            states = States()
        held = version, _columns(snapshot, states)
        snapshot.memo[key] = held
    return held[1]


def _columns(snapshot: Snapshot, states: States) -> NumaColumns:
    objects = snapshot.objects.get("Numatopology", {})
    found = [objects.get(("", name)) for name in snapshot.nodes.names]
    specs = tuple(spec if isinstance(spec, CpuTopologySpec) else None for spec in found)
    policies: dict[str, int] = {}
    return NumaColumns(
        specs,
        np.array([0 if s is None else states.number(states.kind_of(s), s.free) for s in specs], dtype=np.int64),
        np.array([s is not None for s in specs], dtype=bool),
        np.array([s is not None and s.cpu_manager == STATIC for s in specs], dtype=bool),
        np.array([-1 if s is None else policies.setdefault(s.topology_manager, len(policies)) for s in specs], dtype=np.int64),
        policies,
        states,
    )
