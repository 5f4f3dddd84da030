"""Node figures as columns, for all nodes, for some, or for imagined ones.

A `row` node function is a vectorised expression over Figures. It is called with every node (M = N), with the few rows
that changed, and with a *ladder*: the same row several times, each a step fuller, which answers "what will this node
score after j more such tasks" without placing them. So the function must read nothing but what stands here (and what
never changes within a cycle, through `rows`).

There are two views of what is taken. `used`, `releasing` and `pipelined` are the scheduler's own accounts. `requested` and
`scoring` are the node as its pods will be: placed and promised pods are in, evicted ones are out at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from navarch.model.resources import IntArray

Rows = npt.NDArray[np.intp]


@dataclass(slots=True)
class Figures:
    allocatable: IntArray
    used: IntArray
    releasing: IntArray
    pipelined: IntArray
    requested: IntArray
    scoring: IntArray
    rows: Rows | slice
    """Which node rows the columns stand for; index static per-node arrays with it."""
    added: IntArray | None = None
    """In a ladder: how many further tasks of the class each column imagines on its node. None: none."""

    @property
    def idle(self) -> IntArray:
        return self.allocatable - self.used

    @property
    def future_idle(self) -> IntArray:
        return self.allocatable - self.used + self.releasing - self.pipelined

    def at(self, rows: Rows) -> Figures:
        """The same figures for these rows of a full table."""
        return Figures(
            self.allocatable[:, rows],
            self.used[:, rows],
            self.releasing[:, rows],
            self.pipelined[:, rows],
            self.requested[:, rows],
            self.scoring[:, rows],
            rows,
        )

    def ladder(self, rows: Rows, start: IntArray, steps: int, request: IntArray, scoring: IntArray, *, pipelined: bool) -> Figures:
        """For each row, `steps` columns with start+1 .. start+steps more tasks on it, row after row."""
        wide = np.repeat(rows, steps)
        more = np.repeat(start, steps) + np.tile(np.arange(1, steps + 1), len(rows))
        out = self.at(wide)
        extra = request[:, None] * more
        if pipelined:
            out.pipelined += extra
        else:
            out.used += extra
        out.requested += extra
        out.scoring += scoring[:, None] * more
        out.added = more
        return out
