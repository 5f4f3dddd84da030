"""Whether pages are open: repeated work goes on while a viewer looked a short time ago, and waits for the next look otherwise."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class RecentViewers:
    """`seconds`: how long a look counts. `clock` counts seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._last_look = 0.0
        self._look = asyncio.Event()

    def looked(self) -> None:
        """A viewer wants to know."""
        self._last_look = self._clock()
        self._look.set()

    async def wait(self) -> None:
        """Return at once if a viewer looked within these seconds, else when the next one looks."""
        if self._clock() - self._last_look > self._seconds:
            self._look.clear()
        await self._look.wait()
