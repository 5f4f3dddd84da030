"""ImageLocality: how much of the pod's images the node already has.

An image on many nodes weighs more, so that pods do not pile up on the few nodes that pulled it first.
"""

from __future__ import annotations

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.model.memo import memoised
from navarch.model.resources import FloatArray, IntArray
from navarch.model.snapshot import Snapshot

MEBIBYTE = 1 << 20
LEAST, MOST_EACH = 23 * MEBIBYTE, 1000 * MEBIBYTE


class ImageTable:
    """Image name -> nodes that hold it; its size is the one that the first node reported."""

    def __init__(self, snapshot: Snapshot) -> None:
        rows: dict[str, list[int]] = {}
        sizes: dict[str, int] = {}
        for row, spec in enumerate(snapshot.nodes.specs):
            for names, size in spec.images:
                for name in names:
                    here = rows.setdefault(name, [])
                    if not here or here[-1] != row:
                        here.append(row)
                    sizes.setdefault(name, size)
        total = len(snapshot.nodes)
        self._nodes = {name: np.array(here, dtype=np.intp) for name, here in rows.items()}
        self._worth = {name: int(float(sizes[name]) * (float(len(here)) / float(total))) for name, here in rows.items()}

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def add(self, name: str, sums: IntArray) -> None:
        nodes = self._nodes.get(name)
        if nodes is not None:
            sums[nodes] += self._worth[name]


class ImageLocality(NodeScorer):
    name = "ImageLocality"
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, snapshot: Snapshot, weight: float) -> None:
        self.snapshot = snapshot
        self.weight = weight
        self.table = memoised(snapshot, "image table", snapshot.nodes.version, lambda: ImageTable(snapshot))

    def applies(self, task: TaskClass) -> bool:
        return bool(self.table) and bool(task.shape.images)

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        sums = np.zeros(len(self.snapshot.nodes), dtype=np.int64)
        for name in task.shape.images:
            self.table.add(name, sums)
        most = MOST_EACH * (task.shape.containers or len(task.shape.images))
        np.clip(sums, LEAST, most, out=sums)
        return (100 * (sums - LEAST) // (most - LEAST))[at.rows].astype(float)
