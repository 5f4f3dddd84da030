"""The nodes of pods in the view of kube-scheduler's filters: it includes placed and promised pods and excludes evicted ones at once.

There is one object a session, which follows every change. Rules on other pods (ports, affinity, spread, volumes) count the placed
pods when they are first asked, in one pass over columns, and then follow changes: nothing is scanned again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.node_functions import TaskClass
from navarch.engine.points.protocols import Change
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, RowArray
from navarch.model.spec import Shape
from navarch.model.status import ON_NODE, TaskStatus

Listener = Callable[[TaskClass, Sequence[int], Sequence[int], int], None]
"""(class, task rows, node rows, +1 or -1)"""


class Grouped:
    """Rows of a column by their value: one sort, then a slice for each value."""

    def __init__(self, column: RowArray) -> None:
        self._order = np.argsort(column, kind="stable")
        self._values = column[self._order]

    def rows(self, values: Sequence[int]) -> Rows:
        """Rows that have one of these values, which differ from each other."""
        wanted = np.array(values, dtype=self._values.dtype)  # of one type, or the column is converted for each search
        low, high = (np.searchsorted(self._values, wanted, side=side) for side in ("left", "right"))
        parts = [self._order[start:end] for start, end in zip(low.tolist(), high.tolist()) if start < end]
        return np.concatenate(parts) if parts else self._order[:0]


class PlacedPods:
    def __init__(self, session: Session) -> None:
        self.session = session
        tasks = session.snapshot.tasks
        self.where: RowArray = np.where(tasks.alive & ON_NODE[tasks.status], tasks.node, -1)
        """Node row of each task in this view, -1 for none."""
        self.opening: RowArray = self.where.copy()
        self._leaving: BoolArray = tasks.alive & (tasks.status == TaskStatus.RELEASING)
        self._holding: set[int] = set()
        """Victims that hold their node until they are gone."""
        self._listeners: list[Listener] = []
        self._leaving_listeners: list[Listener] = []
        self._journals: list[list[Callable[[], None]]] = []
        self.moved_in_trial: list[tuple[TaskClass, Sequence[int], Sequence[int], int]] = []
        """(class, tasks, nodes, step) of every move of the trials under way, undone ones included."""
        self._by_identity: Grouped | None = None
        self._by_shape: Grouped | None = None

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    @property
    def leaving(self) -> BoolArray:
        """Tasks whose deletion was asked for."""
        return self._leaving

    def of_shapes(self, wanted: Callable[[Shape], object]) -> Iterable[tuple[Shape, Rows]]:
        """For each shape that passes, the rows of its tasks that stand somewhere; one pass over the task column."""
        session = self.session
        numbers = [i for i, shape in enumerate(session.snapshot.shapes) if wanted(shape)]
        if not numbers:
            return
        there = np.flatnonzero(self.where >= 0)
        shapes = session.shape[there]
        flags = np.zeros(len(session.snapshot.shapes), dtype=bool)
        flags[numbers] = True
        there = there[flags[shapes]]
        grouped = Grouped(session.shape[there])
        for number in numbers:
            rows = grouped.rows((number,))
            if len(rows):
                yield session.snapshot.shapes[number], there[rows]

    def rows_of_shapes(self, numbers: Sequence[int]) -> Rows:
        """Tasks of these shapes, wherever they stand."""
        if self._by_shape is None:
            self._by_shape = Grouped(self.session.shape)
        return self._by_shape.rows(numbers)

    def rows_of_identities(self, numbers: Sequence[int]) -> Rows:
        """Tasks with these identities, wherever they stand."""
        if self._by_identity is None:
            self._by_identity = Grouped(self.session.snapshot.tasks.labels)
        return self._by_identity.rows(numbers)

    def pod_evicted(self, task: TaskClass, row: int, node: int) -> None:
        """The pod is being deleted from now on, though it is still on its node."""
        self._leaving[row] = True
        for listener in self._leaving_listeners:
            listener(task, (row,), (node,), -1)

    def listen_to_leaving(self, listener: Listener) -> None:
        self._leaving_listeners.append(listener)

    # trials

    def trial_begins(self) -> None:
        self._journals.append([])

    def trial_ends(self) -> None:
        for undo in reversed(self._journals.pop()):
            undo()
        if not self._journals:
            self.moved_in_trial = []

    @property
    def journal(self) -> list[Callable[[], None]] | None:
        """Where a listener that cannot undo a move by the opposite one notes how to; None: moves are real."""
        return self._journals[-1] if self._journals else None

    # events

    def on_allocate(self, change: Change) -> None:
        if not change.view:
            self._holding.difference_update(change.tasks)
            return
        self.imagined(change.task, change.tasks, change.nodes, 1)

    def on_deallocate(self, change: Change) -> None:
        if not change.view:
            self._holding.update(change.tasks)
            return
        self.imagined(change.task, change.tasks, change.nodes, -1)

    def imagined(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        """Moves of a trial look the same as real ones from here."""
        self.where[list(tasks)] = nodes if step > 0 else self._place_kept(tasks)
        if self._journals:
            self.moved_in_trial.append((task, tasks, nodes, step))
        for listener in self._listeners:
            listener(task, tasks, nodes, step)

    def _place_kept(self, tasks: Sequence[int]) -> RowArray:
        """The node of each task after it left one: a victim that holds its node until it is gone is there again."""
        kept: RowArray = np.array([self.session.node[task] if task in self._holding else -1 for task in tasks], dtype=np.int32)
        return kept


def placed_pods(session: Session) -> PlacedPods:
    """Made when the session opens (`watch_pods`): later, moved pods could not be told from those that were there at the start."""
    return session.shared(PlacedPods)


def watch_pods(session: Session, wanted: Callable[[Shape], object]) -> None:
    """Called by a rule when plugins open: starts the object if any shape in the cluster concerns the rule."""
    if any(wanted(shape) for shape in session.snapshot.shapes):
        placed_pods(session)
