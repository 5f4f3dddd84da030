"""The session's node figures, and the log of rows that changed.

Each task class remembers its position in the log and recomputes its masks and scores only for the rows after it. So updates cost
as much as what changed.
"""

from __future__ import annotations

import numpy as np

from navarch.engine.figures import Figures, Rows
from navarch.model.resources import IntArray
from navarch.model.snapshot import NodeColumns


class NodeState(Figures):
    """Owned by the session; written by statements alone."""

    def __init__(self, nodes: NodeColumns) -> None:
        self.allocatable = nodes.allocatable
        self.used = nodes.used
        self.releasing = nodes.releasing
        self.pipelined = np.zeros_like(nodes.used)
        self.requested = nodes.used.copy()
        self.scoring = nodes.scoring
        self.rows = slice(None)
        self.names = nodes.names
        self.specs = nodes.specs
        self.changed: list[Rows] = []

    def __len__(self) -> int:
        return len(self.names)

    def place(self, rows: Rows, counts: IntArray, request: IntArray, footprint: IntArray, sign: int, *, pipelined: bool) -> None:
        """`counts` tasks join (or, with sign -1, leave) each of these distinct rows, in both views."""
        if len(rows) == 1:  # plain views are several times cheaper than gathers
            row, times = rows[0], sign * counts[0]
            added = request * times
            (self.pipelined if pipelined else self.used)[:, row] += added
            self.requested[:, row] += added
            self.scoring[:, row] += footprint * times
            self.changed.append(rows)
            return
        amount = request[:, None] * (sign * counts)
        if pipelined:
            self.pipelined[:, rows] += amount
        else:
            self.used[:, rows] += amount
        self.requested[:, rows] += amount
        self.scoring[:, rows] += footprint[:, None] * (sign * counts)
        self.changed.append(rows)

    def imagine(self, row: int, request: IntArray, footprint: IntArray, sign: int) -> None:
        """A pod joins or leaves only the pods' view (see `victims/what_if.py`)."""
        self.requested[:, row] += sign * request
        self.scoring[:, row] += sign * footprint
        self.changed.append(np.array([row], dtype=np.intp))

    def release(self, row: int, request: IntArray, footprint: IntArray, sign: int, *, view: bool = True) -> None:
        """A task starts to leave its node (sign 1), or that is undone (-1). `view`: the pods' view changes too."""
        self.releasing[:, row] += sign * request
        if view:
            self.requested[:, row] -= sign * request
            self.scoring[:, row] -= sign * footprint
        self.changed.append(np.array([row], dtype=np.intp))
