"""When a cycle runs: soon after a change that matters, else once in a period.

A change that may let something be placed starts a cycle after a short settling time, so that a gang whose pods arrive together is
decided once. Changes that only have to be noted (a pod that was bound is now seen as bound) wait for the period. Between two
cycles lies at least as long as the first of them took, so that informers and writers get their share of the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from navarch.engine.reasons import Event
from navarch.live.queue.scheduling_queue import SchedulingQueue
from navarch.model.spec import Requests

SETTLE = 0.001
PERIOD = 1.0
BUSY_PERIODS = 5
"""While bindings queue up, cycles that nothing calls for are left out for this many periods: they would only note progress."""


class Loop:
    """`cycle()` is called whenever one is due. Times are the event loop's own, so a wall clock may jump."""

    def __init__(
        self,
        queue: SchedulingQueue,
        cycle: Callable[[], None],
        *,
        period: float = PERIOD,
        settle: float = SETTLE,
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._busy = busy
        self.queue = queue
        self.period = period
        self.settle = settle
        self._cycle = cycle
        self._urgent = asyncio.Event()

    def notice(self, event: Event, job: str = "", *, urgent: bool = True, freed: Requests | None = None) -> None:
        """Something changed (see `cache.Notice`)."""
        queue = self.queue
        if job:
            if urgent:
                queue.update(job)
            if event is Event.POD_REMOVED:
                queue.activate_on(event, freed)
        elif queue.activate_on(event, freed):
            urgent = True
        if urgent:
            self._urgent.set()

    def trigger(self) -> None:
        """Let a cycle run soon, whatever has changed."""
        self._urgent.set()

    async def run(self) -> None:
        """Cycle after cycle, until cancelled."""
        clock = asyncio.get_running_loop().time
        took, ended, skipped = 0.0, clock(), 0
        while True:
            called = await self._due(clock)
            if not called and self._busy() and skipped < BUSY_PERIODS:
                skipped += 1
                continue
            skipped = 0
            # Half of the time at most is spent on cycles, however dense the changes are.
            await asyncio.sleep(max(self.settle, ended + min(took, self.period) - clock()))
            self._urgent.clear()
            started = clock()
            self.queue.flush_backoff(started)
            self._cycle()
            ended = clock()
            took = ended - started

    async def _due(self, clock: Callable[[], float]) -> bool:
        """Wait until a cycle is due; whether something called for it."""
        wait = self.period
        expiry = self.queue.next_retry
        if expiry is not None:
            wait = min(wait, max(0.0, expiry - clock()))
        try:
            async with asyncio.timeout(wait):
                await self._urgent.wait()
        except TimeoutError:
            return False
        return True
