"""A usage history for clusters without Prometheus: how much each queue held, from when until when, in an SQLite file.

A row is a *run*: a queue held these amounts from `begin` until `finish`. While nothing changes, the last run grows and no row is
added. Changes within one resolution are averaged, so a busy cluster adds a row a minute. The cluster's capacity is the run of the
queue without a name. While the scheduler is down, neither queues nor cluster have a run, so the fractions stay right. Runs older
than a day are merged to hours. Runs that no window reaches are deleted.

The decay is integrated over each run exactly, so one file serves any half-life and any window. Recording only changes memory. The
file is written when it is read, once in a fetch interval, so a crash loses at most one interval.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import threading
from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from navarch.job_history import open_file
from navarch.live.usage.params import WEEK, UsageParams, UsageWindow
from navarch.live.usage.source import RESOURCES, Usage, UsageError, ratio

CLUSTER: Final = ""
FINE: Final = 24 * 3600.0
"""How long runs keep their own lengths."""
COARSE: Final = 3600.0
_LONGEST_SILENCE: Final = 5
"""After this many resolutions without a record the usage is unknown."""
_LONGEST_CRON: Final = 366 * 24 * 3600.0

_AMOUNTS: Final = ", ".join(RESOURCES)
_SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS run (
    queue TEXT NOT NULL, begin REAL NOT NULL, finish REAL NOT NULL, {", ".join(f"{r} REAL NOT NULL" for r in RESOURCES)},
    PRIMARY KEY (queue, begin)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS run_finish ON run (finish);
"""
_WRITE: Final = f"REPLACE INTO run (queue, begin, finish, {_AMOUNTS}) VALUES (?, ?, ?, {', '.join('?' * len(RESOURCES))})"
_MERGE: Final = f"""
INSERT INTO merged SELECT queue, MIN(begin), MIN(begin) + SUM(finish - begin),
    {", ".join(f"SUM({r} * (finish - begin)) / SUM(finish - begin)" for r in RESOURCES)}
FROM run WHERE finish <= :before AND begin >= :since GROUP BY queue, CAST(begin / {COARSE} AS INTEGER)
"""


class _Run(Struct):
    """One that still grows: what was held so far, times seconds, and what is held now."""

    begin: float
    finish: float
    held: list[float]
    now: tuple[float, ...]
    mixed: bool = False

    def reach(self, now: float) -> None:
        self.held = [so_far + amount * (now - self.finish) for so_far, amount in zip(self.held, self.now, strict=True)]
        self.finish = now

    def row(self, queue: str) -> tuple[object, ...]:
        length = self.finish - self.begin
        return queue, self.begin, self.finish, *(amount / length for amount in self.held)


class HistorySource:
    """`path` is a file, or `:memory:`. `record` is called after cycles; `fetch` by the feed."""

    def __init__(self, path: str, params: UsageParams) -> None:
        self.path = path
        self.params = params
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._ended: list[tuple[object, ...]] = []
        self._merged = 0.0
        """Until when runs have been merged to hours."""
        try:
            self._file = open_file(path, _SCHEMA)
            self._file.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error as error:
            raise UsageError(f"usage history {path}: {error}") from error

    def record(self, now: float, held: Mapping[str, Mapping[str, float]], capacity: Mapping[str, float]) -> None:
        """What each queue holds from now on, and what the cluster has, by resource."""
        figures = {**held, CLUSTER: capacity}
        present = {queue: tuple(float(a.get(r, 0.0)) for r in RESOURCES) for queue, a in figures.items()}
        nothing = (0.0,) * len(RESOURCES)
        with self._lock:
            for queue in sorted(present.keys() | self._runs.keys()):
                self._go_on(queue, now, present.get(queue, nothing))

    async def fetch(self, now: float) -> Usage:
        return await asyncio.to_thread(self.usage, now)

    def usage(self, now: float) -> Usage:
        window = self.params.window
        begin = window.begin(now)
        with self._lock:
            try:
                self._flush(now)
                found = self._file.execute(
                    f"SELECT queue, begin, finish, {_AMOUNTS} FROM run WHERE finish > ? AND begin < ? ORDER BY queue, begin",
                    (begin, now),
                ).fetchall()
            except sqlite3.Error as error:
                raise UsageError(f"usage history {self.path}: {error}") from error
        if not found:
            return {}
        figures = np.array([row[1:] for row in found], dtype=np.float64)
        weight = counted_seconds(window, now, np.maximum(figures[:, 0], begin), np.minimum(figures[:, 1], now))
        names = sorted({row[0] for row in found})
        number = {name: i for i, name in enumerate(names)}
        index = np.array([number[row[0]] for row in found])
        sums = np.stack([np.bincount(index, weight * column, len(names)) for column in figures[:, 2:].T], axis=1)
        held = dict(zip(names, sums.tolist(), strict=True))
        capacity = held.pop(CLUSTER, [0.0] * len(RESOURCES))
        return {
            queue: {resource: ratio(amounts[i], capacity[i]) for i, resource in enumerate(RESOURCES)}
            for queue, amounts in held.items()
        }

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._lock:
            self._flush(max((run.finish for run in self._runs.values()), default=0.0))
            self._file.close()

    def _go_on(self, queue: str, now: float, amounts: tuple[float, ...]) -> None:
        """Let the queue's run reach until now, then go on with it or begin the next."""
        run = self._runs.get(queue)
        if run is not None:
            if 0 <= now - run.finish <= self.params.resolution * _LONGEST_SILENCE:
                run.reach(now)
            if run.now == amounts and not run.mixed and run.finish == now:
                return
            if run.finish == now and now - run.begin < self.params.resolution:
                run.mixed = run.mixed or now > run.begin
                run.now = amounts
                return
            self._end(queue)
        if any(amounts):
            self._runs[queue] = _Run(now, now, [0.0] * len(RESOURCES), amounts)

    def _end(self, queue: str) -> None:
        run = self._runs.pop(queue)
        if run.finish > run.begin:
            self._ended.append(run.row(queue))

    def _flush(self, now: float) -> None:
        open_runs = [run.row(queue) for queue, run in self._runs.items() if run.finish > run.begin]
        self._file.execute("BEGIN")
        try:
            self._file.executemany(_WRITE, self._ended + open_runs)
            if now - FINE - self._merged >= COARSE:
                self._merge(now)
        except sqlite3.Error:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")
        self._ended.clear()

    def _merge(self, now: float) -> None:
        """Merge full hours that ended a day ago into one run each, and delete what no window reaches."""
        reach = _LONGEST_CRON if self.params.window.kind == "cron" else max(self.params.window.size, WEEK)
        self._file.execute("DELETE FROM run WHERE finish <= ?", (now - reach,))
        span = {"before": math.floor((now - FINE) / COARSE) * COARSE, "since": self._merged}
        self._file.execute("CREATE TEMP TABLE IF NOT EXISTS merged AS SELECT * FROM run WHERE 0")
        self._file.execute(_MERGE, span)
        self._file.execute("DELETE FROM run WHERE finish <= :before AND begin >= :since", span)
        self._file.execute("INSERT INTO run SELECT * FROM merged")
        self._file.execute("DELETE FROM merged")
        self._merged = span["before"]


def counted_seconds(window: UsageWindow, now: float, begin: NDArray[np.float64], finish: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many seconds of each run count at `now`: its length, or, where the past fades, the integral of the fading.

    >>> fading = UsageWindow(half_life=100.0)
    >>> round(float(counted_seconds(fading, 0.0, np.array([-1e9]), np.array([0.0]))[0]), 3) == round(100 / math.log(2), 3)
    True
    """
    length: NDArray[np.float64] = np.maximum(finish - begin, 0.0)
    if window.half_life is None:
        return length
    rate = math.log(2) / window.half_life
    # exp(-rate * (now - t)) over [begin, finish]; expm1 keeps short runs exact.
    return np.exp(-rate * (now - finish)) * -np.expm1(-rate * length) / rate
