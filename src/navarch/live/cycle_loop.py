"""When a cycle runs: soon after an event that asks for one, and at least once in a period.

An event that may let a job be placed starts a cycle after a short settling time, so that a gang whose pods arrive together is decided
once. Other changes (a bound pod is now shown as bound) wait for the period. The pause between two cycles is at least as long as the
first of them took, so that informers and writers get their share of the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from navarch.live.queue.scheduling_queue import SchedulingQueue

SETTLE = 0.001
PERIOD = 1.0
BUSY_PERIODS = 5
"""While many bindings are in flight, cycles that no event asks for are skipped for this many periods: they only note progress."""


class CycleLoop:
    """`cycle()` is called whenever one is due. Times are the event loop's, so the wall clock may jump."""

    def __init__(
        self,
        queue: SchedulingQueue,
        cycle: Callable[[], None],
        *,
        period: float = PERIOD,
        settle: float = SETTLE,
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._queue = queue
        self._cycle = cycle
        self._period = period
        self._settle = settle
        self._busy = busy
        self._triggered = asyncio.Event()

    def trigger(self) -> None:
        """Start a cycle soon."""
        self._triggered.set()

    async def run(self) -> None:
        """Run cycles until cancelled."""
        clock = asyncio.get_running_loop().time
        took, ended, skipped = 0.0, clock(), 0
        while True:
            triggered = await self._wait(clock)
            if not triggered and self._busy() and skipped < BUSY_PERIODS:
                skipped += 1
                continue
            skipped = 0
            # At most half of the time is spent on cycles, however dense the events are.
            await asyncio.sleep(max(self._settle, ended + min(took, self._period) - clock()))
            self._triggered.clear()
            started = clock()
            self._queue.flush_backoff(started)
            self._cycle()
            ended = clock()
            took = ended - started

    async def _wait(self, clock: Callable[[], float]) -> bool:
        """Wait until a cycle is due. Returns whether it was triggered."""
        wait = self._period
        retry = self._queue.next_retry
        if retry is not None:
            wait = min(wait, max(0.0, retry - clock()))
        try:
            async with asyncio.timeout(wait):
                await self._triggered.wait()
        except TimeoutError:
            return False
        return True
