"""Copies of a table's columns, brought up to date by the rows that were written since.

A cycle needs columns that do not move under it. To copy fifty thousand rows for one pod that changed would cost more than to
decide about it, so a snapshot that is no longer needed gives its copies back: only rows in the table's `touched` are copied
again (bench/decide, "snapshot"). Nobody but a twin writes into its arrays; they are handed out read-only.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from navarch.model.tables.columns import Array

FEW = 8
"""So many rows are copied one by one."""
MANY = 8
"""When more than one row in so many was touched, everything is copied."""


class Table(Protocol):
    touched: set[int]
    """Rows written since a twin last looked. A set, because a mirror that nobody takes snapshots of is written to all the same."""


class IncrementalCopy:
    def __init__(self, columns: tuple[str, ...], lists: tuple[str, ...], *, rows_first: tuple[str, ...] = ()) -> None:
        """`columns` have rows last, `rows_first` first; `lists` have one element a row."""
        self._axes = {**dict.fromkeys(columns, -1), **dict.fromkeys(rows_first, 0)}
        self._arrays: dict[str, Array] = {}
        self._lists: dict[str, list[Any]] = {name: [] for name in lists}
        self._top = 0

    def follow(self, table: Table, top: int) -> np.ndarray[Any, np.dtype[np.intp]] | None:
        """Become what the table is, of which `top` rows have been used. Returns the rows that were copied; None: all."""
        rows: np.ndarray[Any, np.dtype[np.intp]] | None = None
        if self._arrays and len(table.touched) * MANY <= top:
            rows = np.fromiter(table.touched, dtype=np.intp, count=len(table.touched))
        for name, axis in self._axes.items():
            self._copy(name, getattr(table, name), rows, axis, top)
        for name, copy in self._lists.items():
            source: list[Any] = getattr(table, name)
            if rows is None:
                copy[:] = source
                continue
            copy += source[len(copy) :]
            for row in table.touched:
                copy[row] = source[row]
        table.touched.clear()
        self._top = top
        return rows

    def _copy(self, name: str, source: Array, rows: np.ndarray[Any, np.dtype[np.intp]] | None, axis: int, top: int) -> None:
        copy = self._arrays.get(name)
        if rows is None or copy is None or copy.shape != source.shape:
            used = (slice(top),) if axis == 0 else (..., slice(top))
            copy = self._arrays[name] = np.empty_like(source)
            copy[used] = source[used]
        elif len(rows) > FEW:
            if axis:
                copy[..., rows] = source[..., rows]
            else:
                copy[rows] = source[rows]
        else:  # plain views are several times cheaper than gathers
            for row in rows.tolist():
                if axis and copy.ndim > 1:
                    copy[:, row] = source[:, row]
                else:
                    copy[row] = source[row]

    def columns(self, resources: int = 0) -> dict[str, Any]:
        """The used rows of every column and every list by name, to be read only; of the first so many resources."""
        out: dict[str, Any] = dict(self._lists)
        for name, array in self._arrays.items():
            if self._axes[name] == 0 or array.ndim == 1:
                view = array[: self._top]
            else:
                view = array[:resources, : self._top]
            view.flags.writeable = False
            out[name] = view
        return out
