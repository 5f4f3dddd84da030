"""When waiting jobs start: a forecast of all of them, made again and again in a process of its own while pages are open.

The forecast runs the scheduler forward in virtual time (`simulator/start_times`). Its basis are walltimes, expected durations and the
file of `navarch run --history`. Where there is none, no process is started, and the reason stands beside the jobs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from navarch.simulator.start_times.estimate import NO_BASIS, may_know
from navarch.web.cluster.cluster_state import ClusterState
from navarch.web.errors import RequestError
from navarch.web.recent_viewers import RecentViewers
from navarch.web.tables.jobs import Starts
from navarch.web.work.limits import CpuBudget
from navarch.web.work.requests import Forecast
from navarch.web.work.runner import WorkRunner

WHAT_HELPS: Final = "set activeDeadlineSeconds or the annotation navarch.io/expected-duration on jobs, or start with --history"
NOT_READY_SECONDS: Final = 0.2
LEAST_SECONDS: Final = 10.0
"""Seconds between two forecasts at least."""
PART: Final = 0.05
"""The part of a core that forecasts may take."""
BURST: Final = 15.0
"""CPU seconds that the first forecasts may take at once."""
VIEWER_SECONDS: Final = 60.0
"""Forecasts are made while a viewer asked for jobs within this time."""
ROUNDED: Final = 5.0
"""Moments are whole multiples of so many seconds, so that rows change only where a forecast says something else."""


class StartForecast:
    """`work()` says how the process reads the cluster now."""

    def __init__(self, state: ClusterState, runner: WorkRunner, work: Callable[[], Forecast], history: Path | None = None) -> None:
        self._state, self._runner, self._work, self._history = state, runner, work, history
        self.viewers = RecentViewers(VIEWER_SECONDS)
        """Viewers of jobs."""
        self._budget = CpuBudget(PART, BURST, LEAST_SECONDS)

    async def run(self) -> None:
        """Forecast until cancelled."""
        while True:
            await self.viewers.wait()
            if not self._state.ready:
                await asyncio.sleep(NOT_READY_SECONDS)
                continue
            spent = self._runner.cpu_seconds
            await self.forecast()
            await asyncio.sleep(self._budget.pause(time.monotonic(), self._runner.cpu_seconds - spent))

    async def forecast(self) -> None:
        state = self._state
        if not state.jobs.waiting:
            return
        known_file = self._history is not None and self._history.is_file()
        if not known_file and not may_know(state.cluster, (), {}):
            state.set_starts(Starts(reason=f"{NO_BASIS}; {WHAT_HELPS}"))
            return
        try:
            found = await self._runner.run("forecast", self._work())
        except RequestError as error:
            state.set_starts(Starts(reason=f"the forecast failed: {error}"))
            return
        state.set_starts(as_starts(found))


def as_starts(found: dict[str, Any]) -> Starts:
    """What a working process answers, for the table of jobs."""
    known = {key: (_rounded(half), _rounded(most)) for key, (half, most) in found["known"].items()}
    unknown = {key: reason for reason, keys in found["unknown"].items() for key in keys}
    return Starts(known, unknown, found["reason"])


def _rounded(moment: float) -> float:
    return round(moment / ROUNDED) * ROUNDED
