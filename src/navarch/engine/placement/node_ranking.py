"""Total scores of nodes for a class whose tasks are placed one at a time, updated by changed rows.

A ready job that may grow places one task a turn, so the same class asks for its best node repeatedly, and only a few rows change
in between. The totals over all nodes are computed once and updated in those rows; each question then is one argmax. They are
computed again when the extremes of a normalised score may have changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.engine.figures import Rows
from navarch.model.resources import BoolArray, FloatArray

WORST = -np.inf


class NodeRanking:
    def __init__(
        self, group: BoolArray, score: FloatArray, extra: FloatArray | None, normalised: Sequence[tuple[FloatArray, float, float]]
    ) -> None:
        """`group`: the nodes that take the task. `extra`: normalised scores, each with its raw column and the extremes of
        that column over the group."""
        self.extra = extra
        self._normalised = normalised
        self.total: FloatArray = np.where(group, score if extra is None else score + extra, WORST)

    def best(self) -> int | None:
        """The node with the highest total, the first among equals."""
        row = int(self.total.argmax())
        return row if self.total[row] > WORST else None

    def may_lose(self, row: int) -> bool:
        """Whether the totals of the other nodes stay when this node takes no more tasks."""
        return all(_harmless(float(raw[row]), low, high, False) for raw, low, high in self._normalised)

    def may_lose_each(self, rows: Rows) -> BoolArray:
        """`may_lose` of each of these nodes."""
        harmless: BoolArray = np.ones(len(rows), dtype=bool)
        for raw, low, high in self._normalised if len(rows) else ():
            if low != high:
                harmless &= (low < raw[rows]) & (raw[rows] < high)
        return harmless

    def repair_row(self, row: int, takes: bool, score: float) -> bool:
        """Update one node. False: all totals must be computed again."""
        total = self.total
        if self._normalised and (total[row] > WORST) != takes:
            for raw, low, high in self._normalised:
                if not _harmless(float(raw[row]), low, high, takes):
                    return False
        total[row] = WORST if not takes else score if self.extra is None else score + self.extra[row]
        return True

    def repair(self, rows: Rows, takes: BoolArray, score: FloatArray) -> bool:
        """Update several nodes. False: all totals must be computed again."""
        if self._normalised:
            moved = np.flatnonzero((self.total[rows] > WORST) != takes)
            for raw, low, high in self._normalised if len(moved) else ():
                values, join = raw[rows[moved]], takes[moved]
                stay = np.where(join, (low <= values) & (values <= high), (low < values) & (values < high) | (low == high))
                if not stay.all():
                    return False
        self.total[rows] = np.where(takes, score if self.extra is None else score + self.extra[rows], WORST)
        return True


def _harmless(value: float, low: float, high: float, joins: bool) -> bool:
    """Whether the extremes stay what they are when a node with this value joins the group or leaves it."""
    return low <= value <= high if joins else low == high or low < value < high


def best_rows(total: FloatArray, count: int) -> Rows:
    """Rows of the `count` best finite scores, best first; among equals the first rows first."""
    best = total.max(initial=WORST)
    equal = np.flatnonzero(total == best) if best > WORST else np.zeros(0, dtype=np.intp)
    if len(equal) >= count:  # a node order that spreads pods has many equals at the top, and finding them is cheap
        return equal[:count]
    rows = np.flatnonzero(total > WORST)
    scores = total[rows]
    if len(rows) > 2 * count:
        # Of as many parts as rows are wanted, each has a score at least as good as the worst of their maximums. Most rows have not.
        parts = np.maximum.reduceat(scores, np.arange(count) * len(rows) // count)
        some = np.flatnonzero(scores >= parts.min())
        rows, scores = rows[some], scores[some]
    return rows[np.argsort(-scores, kind="stable")[:count]]
