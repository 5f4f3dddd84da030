"""Figures of nodes for snapshots, updated by changed rows, in one block: a node is copied with all its figures in one step.

A session writes into the columns that it gets, and logs the rows. So the next snapshot uses the same columns again: it copies the rows
in the log and those that changed in the table, and enters them in the log. A session kept between cycles reads them
there (`engine/kept_session.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import numpy as np

from navarch.model.resources import IntArray, RowArray
from navarch.model.snapshot import NodeColumns, RowNumbers, split_figures
from navarch.model.spec import NodeSpec
from navarch.model.tables.nodes import NodeTable

FEW = 8
"""Up to this many rows are copied one by one."""
MANY = 8
"""When more than one row in this many changed, all rows are copied."""


class NodeCopies:
    def __init__(self) -> None:
        self._figures: IntArray = np.zeros((2, 0), dtype=np.int64)
        """As in the table, in the order of snapshots."""
        self._node_rows: RowArray | None = None
        """That order, as the snapshot's row of each of the table's nodes."""
        self._handed_out: NodeColumns | None = None
        """The columns of the last snapshot."""

    def columns(
        self,
        table: NodeTable,
        order: RowNumbers,
        node_rows: RowArray,
        size: int,
        names: list[str],
        specs: list[NodeSpec],
        version: Hashable,
    ) -> NodeColumns:
        """Nodes in this order, with the first `size` resources. `node_rows`: the snapshot's row of each of the table's nodes, -1 for
        none; the same array means the same order. The last columns are used again while the nodes are the same."""
        rows, nodes = self._follow(table, order, node_rows, size), self._handed_out
        if rows is None or nodes is None or nodes.specs is not specs or nodes.version != version or not self._put_back(nodes, rows):
            nodes = self._handed_out = NodeColumns(names, specs, self._figures.copy(), version)
        nodes.opening, nodes.nothing_leaves = {"figures": self._figures}, not table.leaving
        return nodes

    def _follow(self, table: NodeTable, order: RowNumbers, node_rows: RowArray, size: int) -> list[int] | None:
        """Update the figures from the table. Returns the rows of the snapshot that were updated; None: all."""
        touched = table.touched
        if self._node_rows is not node_rows or len(self._figures) != 5 * size + 2 or len(touched) * MANY > len(order):
            self._figures = np.zeros((5 * size + 2, len(order)), dtype=np.int64)
            for column, source in self._sources(table):
                column[...] = source.take(order, axis=1)
            self._node_rows = node_rows
            touched.clear()
            return None
        rows = [row for row in touched if node_rows[row] >= 0]
        places: list[int] = node_rows[rows].tolist() if rows else []
        for column, source in self._sources(table) if rows else ():
            _copy_rows(column, source, places, rows)
        touched.clear()
        return places

    def _sources(self, table: NodeTable) -> Iterator[tuple[IntArray, IntArray]]:
        """Each column of the figures with the one of the table that it follows. Nothing is pipelined between two cycles."""
        allocatable, used, requested, scoring, releasing, _ = split_figures(self._figures)
        size = len(used)
        yield allocatable, table.allocatable[:size]
        yield used, table.used[:size]
        yield requested, table.used[:size]
        yield releasing, table.releasing[:size]
        yield scoring, table.scoring

    def _put_back(self, nodes: NodeColumns, changed: Iterable[int]) -> bool:
        """Bring columns that a session wrote to the figures of now: the rows of its log, and those that have changed since. All of
        them are the next entry of the log. False: they are too many, or the log does not name all of them."""
        if nodes.written is None:
            return False
        rows = set(changed)
        for part in nodes.written[nodes.read :]:
            rows.update(part.tolist())
        if len(rows) * MANY > len(nodes):
            return False
        listed = sorted(rows)
        _copy_rows(nodes.figures, self._figures, listed, listed)
        nodes.written.append(np.array(listed, dtype=np.intp))
        nodes.read = len(nodes.written)
        return True


def _copy_rows(copy: IntArray, source: IntArray, places: list[int], rows: list[int]) -> None:
    if len(rows) > FEW:
        copy[:, places] = source[:, rows]
        return
    for place, row in zip(places, rows):  # plain views are several times cheaper than gathers
        copy[:, place] = source[:, row]
