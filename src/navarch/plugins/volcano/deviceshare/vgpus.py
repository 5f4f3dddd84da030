"""vGPUs: which cards pods hold, which nodes have cards for a pod, and the cards that a placed pod gets.

The account follows every placement and eviction of the cycle. A pod that leaves holds its cards until it is gone: others may be
promised them, and are not bound to them yet. What a pod gets is in the annotations that the device plugin on its node reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import TaskClass
from navarch.engine.points.protocols import Change
from navarch.model.registered_cards import VGPU_IDS, HeldCard, read_vgpu_ids, write_vgpu_ids
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.model.spec import TaskSpec, VgpuRequest
from navarch.model.status import ON_NODE, TaskStatus
from navarch.plugins.volcano.deviceshare.vgpu_choice import Choice, Use, choose
from navarch.plugins.volcano.deviceshare.vgpu_columns import HAMI, MIG, VgpuColumns, vgpu_columns

if TYPE_CHECKING:
    from navarch.engine.session import Session

GROUP_POLICY = "volcano.sh/vgpu-podgroup-policy"
GROUP_NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
ANNOTATIONS = ("volcano.sh/vgpu-node", "volcano.sh/vgpu-time", VGPU_IDS, "volcano.sh/devices-to-allocate")
_RELEASING, _PENDING = int(TaskStatus.RELEASING), int(TaskStatus.PENDING)


class Held(Struct, frozen=True):
    """The cards of one pod: (card, memory, cores) each, and the annotations that say so if this cycle chose them."""

    row: int
    cards: tuple[tuple[int, int, int], ...]
    keys: tuple[object, ...]
    """The group and the rules by which other pods may not use the same cards."""
    annotations: Mapping[str, str] | None = None


class Vgpus:
    """`rules`: label values each; pods that match the same rule share no card."""

    def __init__(self, session: Session, policy: str, rules: Sequence[Mapping[str, str]]) -> None:
        self.session = session
        self.policy = policy
        self.rules = rules
        self.columns: VgpuColumns = vgpu_columns(session.snapshot)
        shape = self.columns.size.shape
        self.use = Use(*(np.zeros(shape, dtype=np.int64) for _ in range(3)))
        """Of all pods but those that leave."""
        self.leaving = Use(*(np.zeros(shape, dtype=np.int64) for _ in range(3)))
        self._any_leaving = False
        self.held: dict[int, Held] = {}
        self._evicted: dict[int, tuple[Held, bool]] = {}
        """Task -> what it held before this cycle evicted it, and whether it still leaves."""
        self._kept_by: dict[object, dict[tuple[int, int], int]] = {}
        """Group or rule -> (node, card) -> how many of its pods are there."""
        self._allowed: dict[int, BoolArray] = {}
        self._last: tuple[int, Figures, int, bool, Choice] | None = None
        self._version = 0
        self._read_holders()

    def _read_holders(self) -> None:
        session, shapes = self.session, self.session.snapshot.shapes
        asking = np.array([s.cards is not None and bool(s.cards.vgpus) for s in shapes], dtype=bool)
        if not asking.any():
            return
        there = session.snapshot.tasks.alive & ON_NODE[session.status] & (session.node >= 0) & asking[session.shape]
        for task in np.flatnonzero(there).tolist():
            spec, row = session.task(task), int(session.node[task])
            held = Held(row, tuple(self._recorded(spec, row)), self._keys(spec))
            if session.status[task] != _RELEASING:
                self.held[task] = held
                self._account(held, 1)
            else:
                self._leave(held, 1)

    def _recorded(self, spec: TaskSpec, row: int) -> Iterable[tuple[int, int, int]]:
        """The cards that the annotation of a pod on a node names."""
        for container in read_vgpu_ids(spec.annotations.get(VGPU_IDS, "")):
            for card in container:
                number = self.columns.number_of(row, card.uuid)
                if number is not None:
                    yield number, card.memory, card.cores

    def _keys(self, spec: TaskSpec) -> tuple[object, ...]:
        group = group_of(spec)
        return ((("group", group),) if group else ()) + self.matched(spec)

    def matched(self, spec: TaskSpec) -> tuple[int, ...]:
        """Numbers of the rules that the pod's labels match."""
        return tuple(
            number for number, rule in enumerate(self.rules) if all(spec.labels.get(key) == value for key, value in rule.items())
        )

    # questions

    def fits(self, task: TaskClass, at: Figures, *, now: bool = False) -> BoolArray:
        """Nodes with cards for the pod. `now`: beside the pods that are leaving."""
        return self.chosen(task, at, now=now).fits & self.columns.known[at.rows]

    def score(self, task: TaskClass, at: Figures) -> FloatArray:
        """The sum over the pod's cards, rounded; 0 where cards are not known."""
        return np.where(self.columns.known[at.rows], np.floor(self.chosen(task, at).score + 0.5), 0.0)

    @property
    def tells_leaving(self) -> bool:
        return self._any_leaving

    def chosen(self, task: TaskClass, at: Figures, *, now: bool = False) -> Choice:
        now = now and self._any_leaving
        last = self._last
        if last is not None and last[0] == task.number and last[1] is at and last[2] == self._version and last[3] == now:
            return last[4]
        choice = self._choose(task, at.rows, at.added, now)
        self._last = task.number, at, self._version, now, choice
        return choice

    def _choose(self, task: TaskClass, rows: Rows | slice, added: IntArray | None, now: bool) -> Choice:
        asked, columns = self._asked(task), self.columns
        use = self.use.at(rows).plus(self.leaving.at(rows)) if now else self.use.at(rows)
        size, most = columns.size[rows], columns.most[rows]
        allowed = (self._allowed_for(task) & ~self._kept_from(task))[rows]
        alone = self._is_alone(task)
        fits: BoolArray = np.ones(len(size), dtype=bool)
        for step in range(int(added.max(initial=0)) if added is not None else 0):
            # The columns of a ladder assume further pods of the class on their nodes: each takes its cards before the next.
            assert added is not None
            climbing = added > step
            after = use.at(slice(None))
            one = choose(asked, size, most, allowed, after, self.policy)
            fits &= one.fits | ~climbing
            wide = climbing[:, None]
            use = use.where(wide, after)
            if alone:
                allowed = allowed & ~(wide & np.logical_or.reduce(one.cards))
        choice = choose(asked, size, most, allowed, use, self.policy)
        choice.fits &= fits
        return choice

    def _asked(self, task: TaskClass) -> tuple[VgpuRequest, ...]:
        """What each container asks for."""
        assert task.shape.cards is not None
        return task.shape.cards.vgpus

    def _allowed_for(self, task: TaskClass) -> BoolArray:
        found = self._allowed.get(task.shape_number)
        if found is None:
            hints = dict(task.shape.hints)
            found = self.columns.allowed(hints) & self.columns.right_mode(hints)[:, None]
            self._allowed[task.shape_number] = found
        return found

    def _is_alone(self, task: TaskClass) -> bool:
        """Whether two pods of the class may not use the same card."""
        return self.spreads(task) or bool(self.rules and self.matched(self.session.task(task.task)))

    def spreads(self, task: TaskClass) -> bool:
        return (GROUP_POLICY, "spread") in task.shape.hints

    def _kept_from(self, task: TaskClass) -> BoolArray:
        """Cards that pods of the same group, or pods that match the same rule, use already."""
        mask: BoolArray = np.zeros(self.columns.size.shape, dtype=bool)
        spec = self.session.task(task.task)
        keys: list[object] = [("group", group_of(spec))] if self.spreads(task) else []
        ruled = self.matched(spec) if self.rules else ()
        for key in (*keys, *ruled):
            for place in self._kept_by.get(key, ()):
                if key in keys or self._shares_by_hami(place[0]):
                    mask[place] = True
        return mask

    def _shares_by_hami(self, row: int) -> bool:
        cards = self.columns.of_node[row]
        return cards is not None and cards.mode == HAMI

    def wrong_mode(self, task: TaskClass) -> BoolArray:
        """Nodes that share their cards in another way than the pod wants, or in a way that is not supported."""
        columns = self.columns
        wrong: BoolArray = columns.known & (~columns.right_mode(dict(task.shape.hints)) | (columns.mode == columns.modes.get(MIG, -1)))
        return wrong

    def unwanted(self, task: TaskClass) -> BoolArray:
        """Nodes with fewer cards of the types and UUIDs that the pod may use than one of its containers asks for."""
        most = max(one.count for one in self._asked(task))
        few: BoolArray = self.columns.known & (self._allowed_for(task).sum(axis=1) < most)
        return few

    # changes

    def placed(self, change: Change) -> None:
        for task, row in zip(change.tasks, change.nodes):
            if change.undone:
                self._evicted_back(task)
            else:
                self._place(change, task, row)

    def _place(self, change: Change, task: int, row: int) -> None:
        if not self.columns.known[row]:
            return
        choice = self._choose(change.task, np.array([row]), None, self._any_leaving and not change.pipelined)
        if not choice.fits[0]:
            choice = self._choose(change.task, np.array([row]), None, False)
        if not choice.fits[0]:
            return
        cards = self.columns.of_node[row]
        assert cards is not None
        given: list[tuple[HeldCard, ...]] = []
        taken: list[tuple[int, int, int]] = []
        for container, (one, memory) in enumerate(zip(self._asked(change.task), choice.memory)):
            numbers = choice.numbers(container, 0)
            given.append(tuple(HeldCard(cards.cards[n].uuid, int(memory[0, n]), one.cores) for n in numbers))
            taken += [(n, int(memory[0, n]), one.cores) for n in numbers]
        marks = assignment(self.session.nodes.names[row], write_vgpu_ids(tuple(given)), self.session.now)
        held = Held(row, tuple(taken), self._keys(self.session.task(task)), marks)
        self.held[task] = held
        self.session.bind_annotations[task] = dict(marks)
        self._account(held, 1)

    def removed(self, change: Change) -> None:
        for task in change.tasks:
            held = self.held.pop(task, None)
            if held is None:
                continue
            self.session.bind_annotations.pop(task, None)
            self._account(held, -1)
            if change.undone:
                continue
            leaves = bool(self.session.status[task] != _PENDING)
            if leaves:
                self._leave(held, 1)
            self._evicted[task] = held, leaves

    def _evicted_back(self, task: int) -> None:
        """An eviction is taken back: the pod has its cards again."""
        found = self._evicted.pop(task, None)
        if found is None:
            return
        held, leaves = found
        if leaves:
            self._leave(held, -1)
        self.held[task] = held
        if held.annotations is not None:
            self.session.bind_annotations[task] = dict(held.annotations)
        self._account(held, 1)

    def _account(self, held: Held, sign: int) -> None:
        self._version += 1
        _add(self.use, held, sign)
        self._keep(held, sign)

    def _keep(self, held: Held, sign: int) -> None:
        for key in held.keys:
            places = self._kept_by.setdefault(key, {})
            for card, memory, cores in held.cards:
                if memory or cores or not isinstance(key, tuple):
                    left = places.get((held.row, card), 0) + sign
                    places[held.row, card] = left
                    if not left:
                        del places[held.row, card]

    def _leave(self, held: Held, sign: int) -> None:
        self._version += 1
        self._any_leaving = True
        _add(self.leaving, held, sign)


def group_of(spec: TaskSpec) -> str:
    """The pod group that the pod names; empty if it names none."""
    name = next((found for key in GROUP_NAMES if (found := spec.annotations.get(key))), "")
    return f"{spec.namespace}/{name}" if name else ""


def _add(use: Use, held: Held, sign: int) -> None:
    for card, memory, cores in held.cards:
        use.pods[held.row, card] += sign
        use.memory[held.row, card] += sign * memory
        use.cores[held.row, card] += sign * cores


def assignment(node: str, ids: str, now: float) -> dict[str, str]:
    """What the device plugin on the node reads."""
    moment = str(int(now))
    named = dict(zip(ANNOTATIONS, (node, moment, ids, ids), strict=True))
    return {**named, "volcano.sh/bind-phase": "allocating", "volcano.sh/bind-time": moment}
