"""Takes nodes out of a snapshot as if they did not exist, and restores the snapshot.

Node rows are dense, so the rows behind a node that is left out move up. Pods on such a node have no node, as pods whose node the API
server does not show. The columns are copies: a cycle without a faulty node pays nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.model.snapshot import NodeColumns, Snapshot


class LeftOutNodes:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._nodes, self._node_of = snapshot.nodes, snapshot.tasks.node
        self.names: list[str] = []

    def add(self, names: Sequence[str]) -> None:
        """The figures must be those of the cycle's opening."""
        rows = {row for name in names if (row := self._snapshot.nodes.row(name)) is not None}
        if not rows:
            return
        before, tasks = self._snapshot.nodes, self._snapshot.tasks
        self.names += [before.names[row] for row in sorted(rows)]
        kept = np.array([row for row in range(len(before)) if row not in rows], dtype=np.intp)
        self._snapshot.nodes = NodeColumns(
            names=[before.names[row] for row in kept.tolist()],
            specs=[before.specs[row] for row in kept.tolist()],
            figures=before.figures[:, kept],
            version=(self._nodes.version, "without", tuple(self.names)),
        )
        moved = np.full(len(before) + 1, -1, dtype=tasks.node.dtype)  # the last entry is for tasks without a node, whose row is -1
        moved[kept] = np.arange(len(kept))
        tasks.node, tasks.opening = moved[tasks.node], None

    def restore(self) -> None:
        if self.names:
            self._snapshot.nodes, self._snapshot.tasks.node = self._nodes, self._node_of
