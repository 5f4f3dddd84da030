"""Cards that are shared by memory (`volcano.sh/gpu-memory`) or given out whole (`volcano.sh/gpu-number`).

A node has equal cards: its total memory divided by their number. A pod that asks for memory gets the first card with so much free. A
pod that asks for cards gets the first ones that no pod uses. An annotation that the device plugin reads has the numbers of the cards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import TaskClass
from navarch.engine.points.protocols import Change
from navarch.model.node_facts import node_fact
from navarch.model.registered_cards import GPU_INDEX, gpu_cards, read_gpu_index
from navarch.model.resources import BoolArray, IntArray
from navarch.model.snapshot import Snapshot
from navarch.model.spec import CardRequest, TaskSpec
from navarch.model.status import ON_NODE, TaskStatus

if TYPE_CHECKING:
    from navarch.engine.session import Session

TIME = "volcano.sh/predicate-time"
_RELEASING, _PENDING = int(TaskStatus.RELEASING), int(TaskStatus.PENDING)


class GpuColumns(Struct, frozen=True):
    """(nodes, cards): the memory of each card, and whether there is such a card; (nodes,): whether the node has any."""

    size: IntArray
    exists: BoolArray
    known: BoolArray


class HeldGpus(Struct, frozen=True):
    row: int
    cards: tuple[int, ...]
    memory: int
    """What the pod uses of each of them; 0 if it has them whole."""
    chosen: bool = False


def gpu_columns(snapshot: Snapshot) -> GpuColumns:
    return node_fact(snapshot, "gpu cards", lambda specs: _stack([gpu_cards(spec) for spec in specs]))


def _stack(found: list[tuple[int, tuple[int, ...]] | None]) -> GpuColumns:
    width = max((max(cards, default=-1) + 1 for each in found if each is not None for cards in (each[1],)), default=0)
    size: IntArray = np.zeros((len(found), width), dtype=np.int64)
    exists: BoolArray = np.zeros(size.shape, dtype=bool)
    for row, each in enumerate(found):
        if each is not None:
            size[row], exists[row, list(each[1])] = each[0], True
    return GpuColumns(size, exists, np.array([each is not None for each in found], dtype=bool))


class GpuCards:
    """`by_memory` and `whole`: which of the two requests the policy serves."""

    def __init__(self, session: Session, *, by_memory: bool, whole: bool) -> None:
        self.session = session
        self.by_memory = by_memory
        self.whole = whole
        self.columns = gpu_columns(session.snapshot)
        shape = self.columns.size.shape
        self.memory: IntArray = np.zeros(shape, dtype=np.int64)
        self.pods: IntArray = np.zeros(shape, dtype=np.int64)
        self.leaving_memory: IntArray = np.zeros(shape, dtype=np.int64)
        self.leaving_pods: IntArray = np.zeros(shape, dtype=np.int64)
        self.tells_leaving = False
        self.held: dict[int, HeldGpus] = {}
        self._evicted: dict[int, tuple[HeldGpus, bool]] = {}
        self._read_holders()

    def serves(self, asked: CardRequest | None) -> bool:
        return asked is not None and bool((self.by_memory and asked.memory) or (self.whole and asked.number))

    def _read_holders(self) -> None:
        session, shapes = self.session, self.session.snapshot.shapes
        asking = np.array([s.cards is not None and bool(s.cards.memory or s.cards.number) for s in shapes], dtype=bool)
        if not asking.any():
            return
        there = session.snapshot.tasks.alive & ON_NODE[session.status] & (session.node >= 0) & asking[session.shape]
        for task in np.flatnonzero(there).tolist():
            spec, row = session.task(task), int(session.node[task])
            assert spec.shape.cards is not None
            held = HeldGpus(row, self._named(spec, row), spec.shape.cards.memory)
            if session.status[task] != _RELEASING:
                self.held[task] = held
                self._add(held, 1)
            else:
                self._leave(held, 1)

    def _named(self, spec: TaskSpec, row: int) -> tuple[int, ...]:
        """The cards of the node that the pod's annotation names."""
        numbers = dict.fromkeys(read_gpu_index(spec.annotations.get(GPU_INDEX, "")))
        return tuple(n for n in numbers if n < self.columns.size.shape[1] and self.columns.exists[row, n])

    # questions

    def fits(self, task: TaskClass, at: Figures, *, now: bool = False) -> BoolArray:
        return self._room(task, at, now=now) & self.columns.known[at.rows]

    def lacks_memory(self, task: TaskClass, at: Figures) -> BoolArray:
        """Nodes where no card has enough memory; the others, if any, lack idle cards."""
        asked = task.shape.cards
        assert asked is not None
        if not (self.by_memory and asked.memory):
            return np.zeros(len(self.columns.known[at.rows]), dtype=bool)
        lacking: BoolArray = ~np.any(self._free(at.rows, now=False, memory=asked.memory), axis=1)
        return lacking

    def _free(self, rows: Rows | slice, *, now: bool, memory: int) -> BoolArray:
        """(nodes, cards): cards with so much memory free."""
        used = self.memory + self.leaving_memory if now else self.memory
        free = np.maximum(self.columns.size - used, 0)
        mask: BoolArray = (self.columns.exists & (free >= memory))[rows]
        return mask

    def _idle(self, rows: Rows | slice, *, now: bool) -> BoolArray:
        used = self.pods + self.leaving_pods if now else self.pods
        mask: BoolArray = (self.columns.exists & (used == 0))[rows]
        return mask

    def _room(self, task: TaskClass, at: Figures, *, now: bool) -> BoolArray:
        asked = task.shape.cards
        assert asked is not None
        added = 0 if at.added is None else at.added
        out: BoolArray = np.ones(len(self.columns.known[at.rows]), dtype=bool)
        if self.by_memory and asked.memory:
            used = self.memory + self.leaving_memory if now else self.memory
            free = np.maximum(self.columns.size - used, 0)[at.rows]
            out &= np.where(self.columns.exists[at.rows], free // asked.memory, 0).sum(axis=1) > added
        if self.whole and asked.number:
            out &= self._idle(at.rows, now=now).sum(axis=1) >= asked.number * (added + 1)
        return out

    # changes

    def placed(self, change: Change) -> None:
        for task, row in zip(change.tasks, change.nodes):
            if change.undone:
                self._evicted_back(task)
            elif self.columns.known[row]:
                self._place(change, task, row)

    def _place(self, change: Change, task: int, row: int) -> None:
        asked = change.task.shape.cards
        assert asked is not None
        now = self.tells_leaving and not change.pipelined
        cards = self._first(asked, row, now=now) or self._first(asked, row, now=False)
        if not cards:
            return
        held = self.held[task] = HeldGpus(row, cards, asked.memory, chosen=True)
        self._mark(task, held)
        self._add(held, 1)

    def _first(self, asked: CardRequest, row: int, *, now: bool) -> tuple[int, ...]:
        """The cards that the pod gets on a node; none if there are too few. Memory is asked for first, whatever else the pod asks."""
        if asked.memory:
            return tuple(np.flatnonzero(self._free(np.array([row]), now=now, memory=asked.memory)[0])[:1].tolist())
        idle = np.flatnonzero(self._idle(np.array([row]), now=now)[0]).tolist()
        return tuple(idle[: asked.number]) if len(idle) >= asked.number else ()

    def _mark(self, task: int, held: HeldGpus) -> None:
        if held.chosen:
            index = ",".join(str(card) for card in held.cards)
            self.session.bind_annotations[task] = {TIME: str(int(self.session.now * 1e9)), GPU_INDEX: index}

    def removed(self, change: Change) -> None:
        for task in change.tasks:
            held = self.held.pop(task, None)
            if held is None:
                continue
            self.session.bind_annotations.pop(task, None)
            self._add(held, -1)
            if not change.undone:
                leaves = bool(self.session.status[task] != _PENDING)
                if leaves:
                    self._leave(held, 1)
                self._evicted[task] = held, leaves

    def _evicted_back(self, task: int) -> None:
        found = self._evicted.pop(task, None)
        if found is not None:
            held, leaves = found
            if leaves:
                self._leave(held, -1)
            self.held[task] = held
            self._mark(task, held)
            self._add(held, 1)

    def _add(self, held: HeldGpus, sign: int) -> None:
        cards = list(held.cards)
        self.pods[held.row, cards] += sign
        self.memory[held.row, cards] += sign * held.memory

    def _leave(self, held: HeldGpus, sign: int) -> None:
        cards = list(held.cards)
        self.tells_leaving = True
        self.leaving_pods[held.row, cards] += sign
        self.leaving_memory[held.row, cards] += sign * held.memory
