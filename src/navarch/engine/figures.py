"""Node figures as columns: for all nodes, for some rows, or for hypothetical states of a row.

A `row` node function is a vectorised expression over Figures. It is called with every node (M = N), with the few rows
that changed, and with a *ladder*: the same row several times, each with one more task, which answers "what will this node
score after j more such tasks" without placing them. So the function must read nothing but the columns here (and values that
never change within a cycle, through `rows`).

There are two views of used resources. `used`, `releasing` and `pipelined` are the scheduler's own accounts. `requested` and
`scoring` describe the node with its future pods: they include placed and promised pods and exclude evicted ones at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from navarch.model.resources import IntArray

Rows = npt.NDArray[np.intp]


class Figures:
    """(R, M) columns; `scoring` is (2, M)."""

    allocatable: IntArray
    used: IntArray
    releasing: IntArray
    pipelined: IntArray
    requested: IntArray
    scoring: IntArray
    rows: Rows | slice
    """Which node rows the columns stand for; index static per-node arrays with it."""
    nothing_leaves: bool = False
    """True: `releasing` and `pipelined` are all zeros, and `requested` equals `used`. False: they may be."""
    added: IntArray | None = None
    """In a ladder: how many further tasks of the class each column assumes on its node. None: no ladder."""

    @property
    def idle(self) -> IntArray:
        return self.allocatable - self.used

    @property
    def future_idle(self) -> IntArray:
        return self.allocatable - self.used + self.releasing - self.pipelined

    def at(self, rows: Rows) -> Figures:
        """The same figures for these rows of a full table."""
        return SelectedFigures(self, rows, {}, None)

    def ladder(self, rows: Rows, start: IntArray, steps: int, request: IntArray, scoring: IntArray, *, pipelined: bool) -> Figures:
        """For each row, `steps` columns with start+1 .. start+steps more tasks on it, row after row."""
        climb = np.arange(1, steps + 1)
        if len(rows) == 1:
            wide, more = rows.repeat(steps), climb + start[0]
        else:
            wide, more = rows.repeat(steps), (start[:, None] + climb).ravel()
        extra = request[:, None] * more
        grown = "pipelined" if pipelined else "used"
        return SelectedFigures(self, wide, {grown: extra, "requested": extra, "scoring": scoring[:, None] * more}, more)


class ReadOnlyFigures(Figures):
    """Figures whose columns cannot be written to. Plugins from outside get these: a write would change the accounts of the cycle."""

    def __init__(self, figures: Figures) -> None:
        self.rows = figures.rows
        self.added = figures.added
        self._figures = figures

    def __len__(self) -> int:
        return int(self.used.shape[1])

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._figures, name)
        if isinstance(found, np.ndarray):
            found = found.view()
            found.flags.writeable = False
            setattr(self, name, found)
        return found


class SelectedFigures(Figures):
    """Columns of a full table picked by row, each when it is first read: most functions read one or two of them."""

    def __init__(self, table: Figures, rows: Rows, extra: dict[str, IntArray], added: IntArray | None) -> None:
        self.rows = self._rows = rows
        self.added = added
        self._table = table
        self._extra = extra
        self.nothing_leaves = table.nothing_leaves and "pipelined" not in extra and "releasing" not in extra

    def __getattr__(self, name: str) -> Any:
        if name == "requested" and self.nothing_leaves and self._extra.get("requested") is self._extra.get("used"):
            self.requested = self.used
            return self.used
        column = getattr(self._table, name).take(
            self._rows, axis=1, mode="clip"
        )  # every row exists; the mode saves a check and a copy
        more = self._extra.get(name)
        if more is not None:
            column += more
        setattr(self, name, column)
        return column
