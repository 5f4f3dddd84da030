"""Gains of all nodes for one kind of pods, kept from cycle to cycle and worked out again only for nodes whose figures changed.

What is kept is the answer to figures, and is used for equal figures only, so it changes no decision.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Rows
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.plugins.fragmentation.type_pressure import GpuTypes

_KINDS: Final = 256
"""Kinds of pods whose gains are kept, those asked for last."""


class _Kept(Struct):
    columns: IntArray
    gains: FloatArray


class GainCache:
    """For one set of nodes with the types that they had: other nodes, or other types, need a new one."""

    def __init__(self, types: GpuTypes) -> None:
        self.types = types
        self._kept: dict[Hashable, _Kept] = {}

    @staticmethod
    def of(memo: dict[Hashable, Any], types: GpuTypes) -> GainCache:
        found = memo.get("fragmentation gains")
        if not isinstance(found, GainCache) or found.types is not types:
            found = memo["fragmentation gains"] = GainCache(types)
        return found

    def gains(
        self,
        kind: Hashable,
        columns: IntArray,
        at: Rows | slice,
        possible: BoolArray,
        work_out: Callable[[Rows], FloatArray],
    ) -> FloatArray:
        """(M,) for the nodes `at`, whose figures are `columns` (C, M). `work_out` is asked for positions among them, and only where
        the pod is `possible`; elsewhere the figure means nothing."""
        size = len(self.types.of_node)
        kept = self._kept.pop(kind, None)
        if kept is None or len(kept.columns) != len(columns):
            kept = _Kept(np.full((len(columns), size), -1, dtype=np.int64), np.zeros(size))
        self._kept[kind] = kept
        if len(self._kept) > _KINDS:
            del self._kept[next(iter(self._kept))]
        changed = possible & (kept.columns[:, at] != columns).any(axis=0)
        rows = np.flatnonzero(changed)
        if len(rows):
            nodes = rows if isinstance(at, slice) else at[rows]
            kept.columns[:, nodes], kept.gains[nodes] = columns[:, rows], work_out(rows)
        out: FloatArray = kept.gains[at].copy()
        return out
