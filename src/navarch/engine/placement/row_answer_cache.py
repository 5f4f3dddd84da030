"""A cache of answers about rows, keyed by the rows' figures, that also computes answers for likely next figures.

When single tasks of several classes take turns, each class finds one or two changed rows at each update. An answer takes about
sixty array operations, independent of the number of columns (bench/decide, "elastic"). So one computation also covers the likely
next states: more tasks of the same class on the row, and more of the change since the last update, because the same jobs take
turns again. Equal nodes pass through the same figures. So an answer that depends on nothing but figures holds for every row with
equal figures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence

import numpy as np

from navarch.engine.figures import Figures, Rows, SelectedFigures
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.node_state import NodeState
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.model.snapshot import FIGURES

Answer = tuple[bool, bool, bool, float]
"""Of a row: passes filters, fits what is idle, fits what will be idle, plain score."""
Judge = Callable[[Figures, Rows], tuple[BoolArray, BoolArray, BoolArray, FloatArray]]

FEW = 24
"""More rows than this are computed together, without next states."""
_STEPS = 16
_KEPT = 1 << 14
"""The cache holds this many answers, and the figures of this many rows; then it is cleared."""


class TracedFigures(SelectedFigures):
    """Figures that detect whether a function reads more than the columns."""

    def __init__(self, table: Figures, rows: Rows, extra: dict[str, IntArray], added: IntArray) -> None:
        self._table = table
        self._rows = rows
        self._extra = extra
        self.nothing_leaves = table.nothing_leaves and "pipelined" not in extra and "releasing" not in extra
        self._added = added
        self.row_was_read = False
        self.added_was_read = False

    @property
    def rows(self) -> Rows:  # type: ignore[override]
        self.row_was_read = True
        return self._rows

    @property
    def added(self) -> IntArray:  # type: ignore[override]
        self.added_was_read = True
        return self._added


class RowAnswerCache:
    def __init__(self, nodes: NodeState, task: TaskClass, judge: Judge, static: BoolArray, base: FloatArray) -> None:
        """`static` and `base`: the static mask and the static score of each row."""
        self._nodes = nodes
        self._judge = judge
        self._static = static
        self._base = base
        nothing = np.zeros_like(task.request)
        parts = (nothing, task.request, task.request, task.footprint, nothing, nothing)
        ends = np.cumsum([len(part) for part in parts]).tolist()
        self._parts = {name: slice(end - len(part), end) for name, part, end in zip(FIGURES, parts, ends, strict=True)}
        self._own = np.concatenate(parts)
        self._climb = np.arange(_STEPS)
        self._own_steps: IntArray = self._climb[:, None] * self._own
        self._answers: dict[tuple[Hashable, bytes], Answer] = {}
        self._seen: dict[int, IntArray] = {}
        """Row -> the figures it had when it was last asked about."""
        self._any_row = True
        """True: every function reads nothing but figures."""

    def of(self, rows: Collection[int]) -> list[Answer] | None:
        """Answers about these few rows. None: some function keeps counts of its own, so that figures do not determine its answer."""
        block = self._nodes.columns.figures
        figures = [block[:, row].copy() for row in rows]
        if len(figures) == 1:
            (row,), now = rows, figures[0]
            answer = self._answers.get((self._kind(row), now.tobytes()))
            if answer is not None:
                self._seen[row] = now
                return [answer]
        while True:
            answers = [self._answers.get((self._kind(row), now.tobytes())) for row, now in zip(rows, figures)]
            unknown = [(row, now) for row, now, answer in zip(rows, figures, answers) if answer is None]
            if not unknown:
                self._seen.update(zip(rows, figures))
                return [answer for answer in answers if answer is not None]
            if not self._look_ahead(unknown):
                return None

    def _kind(self, row: int) -> Hashable:
        """What rows must share besides figures for their answers to be equal."""
        return (bool(self._static[row]), float(self._base[row])) if self._any_row else row

    def _look_ahead(self, unknown: Sequence[tuple[int, IntArray]]) -> bool:
        """Compute the answers for the current figures of these rows and for their next states together."""
        steps: list[IntArray] = []
        added: list[IntArray] = []
        for row, now in unknown:
            steps.append(self._own_steps)
            added.append(self._climb)
            before = self._seen.get(row)
            if before is not None:
                came = now - before
                if came.min() >= 0 and not np.array_equal(came, self._own):
                    steps[-1] = np.concatenate((self._own_steps, self._climb[1:, None] * came))
                    added[-1] = np.concatenate((self._climb, np.zeros(_STEPS - 1, dtype=np.int64)))
        wide = np.array([row for row, _ in unknown]).repeat([len(each) for each in steps])
        more = np.concatenate(steps)
        kept = ("allocatable", "releasing", "pipelined") if self._nodes.nothing_leaves else ("allocatable",)
        extra = {name: more[:, part].T for name, part in self._parts.items() if name not in kept}
        at = TracedFigures(self._nodes, wide, extra, np.concatenate(added))
        answers: list[Answer] = list(zip(*(column.tolist() for column in self._judge(at, wide))))
        if at.added_was_read:
            return False
        if len(self._answers) >= _KEPT or len(self._seen) >= _KEPT or (at.row_was_read and self._any_row):
            self._answers.clear()
            self._seen.clear()
        self._any_row &= not at.row_was_read
        first = 0
        for (row, now), each in zip(unknown, steps):
            kind, flat, size = self._kind(row), (now + each).tobytes(), now.nbytes
            self._answers.update(((kind, flat[i * size : (i + 1) * size]), answers[first + i]) for i in range(len(each)))
            first += len(each)
        return True
