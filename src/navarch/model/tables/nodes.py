"""The node table: what nodes have, what is used of it, and what is being released, as columns.

`used` and `releasing` are kept per change: placing or removing one task touches one column of one node. Pods may arrive
before their node does (watches are not ordered across kinds); such figures wait in a placeholder row that is not alive.
"""

from __future__ import annotations

import numpy as np

from navarch.model.resources import BOUND, BoolArray, IntArray, ResourceSpace, RowArray
from navarch.model.spec import NodeSpec
from navarch.model.tables.columns import Rows, grown, sums_by_group


class NodeTable:
    def __init__(self, space: ResourceSpace) -> None:
        self.space = space
        self.rows = Rows()
        self.names: list[str] = []
        self.specs: list[NodeSpec | None] = []
        self.serial: list[int] = []
        """Order of first appearance, for policies that keep the order in which nodes were listed."""
        self.alive: BoolArray = np.zeros(8, dtype=bool)
        size = (len(space), 8)
        self.allocatable: IntArray = np.zeros(size, dtype=np.int64)
        self.used: IntArray = np.zeros(size, dtype=np.int64)
        self.releasing: IntArray = np.zeros(size, dtype=np.int64)
        self.scoring: IntArray = np.zeros((2, 8), dtype=np.int64)
        """cpu and memory with defaults for containers that ask for none: what scores read."""
        self.tasks: list[int] = []
        """How many tasks refer to the row; a dead row without any is free."""
        self.leaving = 0
        """How many of them are being released."""
        self.version = 0
        """Changes when a node comes, goes, or changes anything but its figures: static answers hold while it stays."""
        self.changes = 0
        """Changes whenever a node's spec does."""
        self.touched: set[int] = set()
        """Rows whose figures were written since the last snapshot (see `incremental_copy`)."""
        self._serial = 0

    def put(self, spec: NodeSpec) -> int:
        self.space.learn(spec.allocatable, trusted=True)
        row = self.row_for(spec.name)
        before = self.specs[row]
        self.fit_space()
        if before is None or before.allocatable != spec.allocatable:
            self.allocatable[: len(self.space), row] = self.space.bounded_vector(spec.allocatable, most=BOUND // 2)
        if before is None or not _same_apart_from_amounts(before, spec):
            self.version += 1
        self.specs[row] = spec
        self.changes += 1
        self.alive[row] = True
        self.touched.add(row)
        return row

    def remove(self, name: str) -> None:
        row = self.rows.of.get(name)
        if row is None or not self.alive[row]:
            return
        self.version += 1
        self.changes += 1
        self.alive[row] = False
        self.specs[row] = None
        self.allocatable[:, row] = 0
        self.touched.add(row)
        self.drop_if_unused(row)

    def row_for(self, name: str) -> int:
        """The node's row, a placeholder one if it is not known yet."""
        row = self.rows.of.get(name)
        if row is not None:
            return row
        row = self.rows.assign(name)
        self._serial += 1
        if row == len(self.names):
            self.names.append(name)
            self.specs.append(None)
            self.tasks.append(0)
            self.serial.append(self._serial)
            if row >= self.alive.shape[0]:
                self.alive = grown(self.alive, row + 1)
                self.scoring = grown(self.scoring, row + 1)
                self.allocatable = grown(self.allocatable, row + 1)
                self.used = grown(self.used, row + 1)
                self.releasing = grown(self.releasing, row + 1)
        else:
            self.names[row], self.serial[row] = name, self._serial
        self.alive[row] = False
        return row

    def occupy(self, row: int, request: IntArray, footprint: tuple[int, int], sign: int, *, releasing: bool) -> None:
        """Add (sign 1) or take away (-1) one task's figures."""
        self.fit_space()
        count = request.shape[0]
        self.used[:count, row] += sign * request
        if releasing:
            self.releasing[:count, row] += sign * request
            self.leaving += sign
        self.scoring[0, row] += sign * footprint[0]
        self.scoring[1, row] += sign * footprint[1]
        self.tasks[row] += sign
        self.touched.add(row)
        if sign < 0:
            self.drop_if_unused(row)

    def occupy_all(self, rows: RowArray, requests: IntArray, footprints: IntArray, releasing: BoolArray, sign: int = 1) -> None:
        """Add (sign 1) or take away (-1) many tasks: column i of `requests` (R, tasks) and `footprints` (2, tasks) is placed on row
        i."""
        self.fit_space()
        count, top = requests.shape[0], self.rows.top
        self.used[:count, :top] += sign * sums_by_group(requests, rows, top)
        if releasing.any():
            self.releasing[:count, :top] += sign * sums_by_group(requests[:, releasing], rows[releasing], top)
            self.leaving += sign * int(np.count_nonzero(releasing))
        self.scoring[:, :top] += sign * sums_by_group(footprints, rows, top)
        for row, tasks in zip(*(each.tolist() for each in np.unique(rows, return_counts=True))):
            self.tasks[row] += sign * tasks
            self.touched.add(row)
            if sign < 0:
                self.drop_if_unused(row)

    def drop_if_unused(self, row: int) -> None:
        if not self.alive[row] and not self.tasks[row]:
            self.rows.give_back(self.names[row])

    def fit_space(self) -> None:
        """Grow the columns to every known resource."""
        if self.used.shape[0] < len(self.space):
            self.allocatable = grown(self.allocatable, len(self.space), axis=0)
            self.used = grown(self.used, len(self.space), axis=0)
            self.releasing = grown(self.releasing, len(self.space), axis=0)


def _same_apart_from_amounts(a: NodeSpec, b: NodeSpec) -> bool:
    return (
        a.labels == b.labels
        and a.taints == b.taints
        and a.unschedulable == b.unschedulable
        and a.ready == b.ready
        and a.conditions == b.conditions
        and a.annotations == b.annotations
        and a.images == b.images
        and a.declared_features == b.declared_features
    )
