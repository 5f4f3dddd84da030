"""The session's node figures, and the log of rows that changed.

Each task class remembers its position in the log and recomputes its masks and scores only for the rows after it. So updates cost
as much as what changed.
"""

from __future__ import annotations

import numpy as np

from navarch.engine.figures import Figures, Rows
from navarch.model.resources import IntArray
from navarch.model.snapshot import NodeColumns

_FEW = 3
"""Rows that are moved one by one."""


class NodeState(Figures):
    """Owned by the session; written by statements, through the methods below. The columns that others see are read-only views, so that
    a plugin cannot change the accounts of the cycle by mistake."""

    def __init__(self, nodes: NodeColumns) -> None:
        self.columns = nodes
        is_first = nodes.written is not None and nodes.read == len(nodes.written)
        if not is_first:  # another session wrote into the same columns
            nodes.requested[...], nodes.pipelined[...] = nodes.used, 0
        self._allocatable = nodes.allocatable
        self._used = nodes.used
        self._releasing = nodes.releasing
        self._pipelined = nodes.pipelined
        self._requested = nodes.requested
        self._scoring = nodes.scoring
        self.allocatable = _read_only(self._allocatable)
        self.used = _read_only(self._used)
        self.releasing = _read_only(self._releasing)
        self.pipelined = _read_only(self._pipelined)
        self.requested = _read_only(self._requested)
        self.scoring = _read_only(self._scoring)
        self.rows = slice(None)
        self.names = nodes.names
        self.specs = nodes.specs
        self.changed: list[Rows] = []
        """The log: the rows of each change."""
        nodes.written, nodes.read = self.changed if is_first else None, 0
        self.nothing_leaves = is_first and nodes.nothing_leaves
        self._extents: dict[int, tuple[int, int]] = {}

    def next_cycle(self) -> None:
        """The snapshot has brought the rows that the log names to the figures of now."""
        self.nothing_leaves = self.columns.nothing_leaves

    def extent(self, dim: int) -> tuple[int, int]:
        """The least and the most of a resource that a node has."""
        found = self._extents.get(dim)
        if found is None:
            column = self._allocatable[dim]
            found = self._extents[dim] = (int(column.min()), int(column.max())) if len(self) else (0, 0)
        return found

    def __len__(self) -> int:
        return len(self.names)

    def place(self, rows: Rows, counts: IntArray, request: IntArray, footprint: IntArray, sign: int, *, pipelined: bool) -> None:
        """`counts` tasks join (or, with sign -1, leave) each of these distinct rows, in both views."""
        if pipelined:
            self.nothing_leaves = False
        if len(rows) <= _FEW:  # plain views are several times cheaper than gathers
            taken = self._pipelined if pipelined else self._used
            for row, count in zip(rows.tolist(), counts.tolist()):
                added = request * (sign * count)
                taken[:, row] += added
                self._requested[:, row] += added
                self._scoring[:, row] += footprint * (sign * count)
            self.changed.append(rows)
            return
        amount = request[:, None] * (sign * counts)
        if pipelined:
            self._pipelined[:, rows] += amount
        else:
            self._used[:, rows] += amount
        self._requested[:, rows] += amount
        self._scoring[:, rows] += footprint[:, None] * (sign * counts)
        self.changed.append(rows)

    def place_each(self, where: Rows, requests: IntArray, footprints: IntArray, sign: int) -> None:
        """One task joins (or, with sign -1, leaves) each of these rows, which may repeat. `requests`: (tasks, R)."""
        order = np.argsort(where, kind="stable")
        ordered = where[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        rows = ordered[starts]
        amounts = sign * np.add.reduceat(requests[order], starts, axis=0).T
        self._used[:, rows] += amounts
        self._requested[:, rows] += amounts
        self._scoring[:, rows] += sign * np.add.reduceat(footprints[order], starts, axis=0).T
        self.changed.append(rows)

    def imagine(self, row: int, request: IntArray, footprint: IntArray, sign: int) -> None:
        """A pod joins or leaves only the pods' view (see `victims/what_if.py`)."""
        self.nothing_leaves = False
        self._requested[:, row] += sign * request
        self._scoring[:, row] += sign * footprint
        self.changed.append(np.array([row], dtype=np.intp))

    def release(self, row: int, request: IntArray, footprint: IntArray, sign: int, *, view: bool = True) -> None:
        """A task starts to leave its node (sign 1), or that is undone (-1). `view`: the pods' view changes too."""
        self.nothing_leaves = False
        self._releasing[:, row] += sign * request
        if view:
            self._requested[:, row] -= sign * request
            self._scoring[:, row] -= sign * footprint
        self.changed.append(np.array([row], dtype=np.intp))

    def stop_releasing(self, row: int, request: IntArray) -> None:
        """What a task that is leaving holds is not counted on."""
        self.columns.written = None
        self._releasing[:, row] -= request

    def count_devices(self, dim: int, row: int, *, used: int = 0, releasing: int = 0, pipelined: int = 0) -> None:
        """Whole devices of a node that pods share now, or that become whole again."""
        self.columns.written = None
        self.nothing_leaves = False
        self._used[dim, row] += used
        self._releasing[dim, row] += releasing
        self._pipelined[dim, row] += pipelined


def _read_only(column: IntArray) -> IntArray:
    view = column.view()
    view.flags.writeable = False
    return view
