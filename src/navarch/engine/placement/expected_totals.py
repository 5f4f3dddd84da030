"""What the mixed runs of a session have shown about the totals of nodes, and what a later run may expect from it.

The total of a node is its score for a class of tasks, or minus infinity where the task does not fit. Nodes of the same size with the
same amounts left are in one state, which has a number. A table keeps the totals of states that some class was asked about. For other
states the last change of a total with a task of each class is kept. Both are expectations: a run checks what it took from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.placement.node_state import NodeState
from navarch.model.resources import FloatArray, IntArray

_KEPT = 1 << 14
"""States that are kept; then all are forgotten."""


class ExpectedTotals:
    def __init__(self) -> None:
        self._moves: dict[tuple[int, int], float] = {}
        """(class that is asked, class of the task) -> by how much the total of a node moved with the task."""
        self._columns: dict[int, int] = {}
        """Class -> its column in the table."""
        self._read = 0
        """How much of the nodes' change log is known."""
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[bytes, int] = {}
        """Figures of a node -> its state."""
        self._figures: list[tuple[bytes, IntArray]] = []
        """State -> the size of the node, and what is left of it."""
        self._after: dict[tuple[int, int], int] = {}
        """(state, class) -> the state with one more task of the class."""
        self._table: FloatArray = np.full((64, max(len(self._columns), 1)), np.nan)
        """(states, columns): totals; not a number: not asked."""
        self._of_row: Rows = np.full(0, -1, dtype=np.intp)
        """Node -> its state, -1 where it is not known."""

    def begin(self, nodes: NodeState) -> None:
        """A run begins. The states of earlier runs are forgotten where there are too many."""
        if len(self._figures) > _KEPT:
            self._forget()
        if len(self._of_row) != len(nodes):
            self._of_row = np.full(len(nodes), -1, dtype=np.intp)
            self._read = len(nodes.changed)
        self._read_changes(nodes)

    def _read_changes(self, nodes: NodeState) -> None:
        for rows in nodes.changed[self._read :]:
            self._of_row[rows] = -1
        self._read = len(nodes.changed)

    def placed(self, nodes: NodeState, states: Mapping[int, int]) -> None:
        """A run has changed nodes: these are in these states now."""
        self._read_changes(nodes)
        self._of_row[list(states)] = list(states.values())

    def state_of(self, nodes: NodeState, row: int) -> int:
        """The state of a node."""
        state: int = self._of_row.item(row)
        if state < 0:
            size = nodes.allocatable[:, row]
            self._of_row[row] = state = self.state(size.tobytes(), size - nodes.used[:, row])
        return state

    def states_of(self, nodes: NodeState, rows: Rows) -> dict[int, int]:
        """The states of these nodes, each with one of the nodes in it."""
        for row in rows[self._of_row[rows] < 0].tolist():
            self.state_of(nodes, row)
        return dict(zip(self._of_row[rows].tolist(), rows.tolist()))

    def moves(self, numbers: Sequence[int], kind: int) -> FloatArray:
        """By how much totals are expected to move with a task of this class."""
        return np.array([self._moves.get((asked, kind), 0.0) for asked in numbers])

    def columns(self, numbers: Sequence[int]) -> Rows:
        """The columns of these classes in the table, which has them afterwards."""
        found = [self._columns.setdefault(number, len(self._columns)) for number in numbers]
        self._grow(len(self._figures), len(self._columns))
        return np.array(found, dtype=np.intp)

    def state(self, size: bytes, left: IntArray) -> int:
        """The state of a node of this size with so much left."""
        figures = size + left.tobytes()
        found = self._numbers.get(figures)
        if found is None:
            found = self._numbers[figures] = len(self._figures)
            self._figures.append((size, left))
            self._grow(len(self._figures), len(self._columns))
        return found

    def after(self, state: int, kind: int, request: IntArray) -> int:
        """The state of a node with one more task of the class."""
        found = self._after.get((state, kind))
        if found is None:
            size, left = self._figures[state]
            found = self._after[state, kind] = self.state(size, left - request)
        return found

    def left(self, state: int) -> IntArray:
        return self._figures[state][1]

    def totals(self, state: int, columns: Rows) -> FloatArray | None:
        """Totals of a node in this state for the classes of these columns; None unless all are known."""
        known: FloatArray = self._table[state, columns]
        return None if math.isnan(known.max()) else known

    def keep(self, states: Sequence[int], columns: Rows, totals: FloatArray) -> None:
        """`totals`: (classes, states)."""
        self._table[np.array(states, dtype=np.intp)[:, None], columns] = totals.T

    def learn(self, asked: int, changes: FloatArray, at_kind: Mapping[int, Rows]) -> None:
        """Keep the last change of the totals of a class with a task of each class."""
        for kind, at in at_kind.items():
            moved = at[np.isfinite(changes[at])]
            if len(moved):
                self._moves[asked, kind] = float(changes[moved[-1]])

    def _grow(self, states: int, columns: int) -> None:
        height, width = self._table.shape
        if states > height or columns > width:
            table = np.full((max(2 * height, states) if states > height else height, max(columns, width)), np.nan)
            table[:height, :width] = self._table
            self._table = table
