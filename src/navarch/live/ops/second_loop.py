"""A second event loop in a thread of its own: /livez and the lease go on while a cycle occupies the first one.

A cycle runs in the thread of the first loop, on a cache that nothing else changes meanwhile. A rule that hangs stops that loop until
the watchdog ends the cycle. The election and the HTTP server of operators run here instead. They reach the scheduler's state only by
work that they hand to the first loop (`run_in`).

A process whose first loop does not come back must not keep the lease, and has to be restarted. `Heartbeat` says for how long that loop
has been silent: past the limit the lease is not renewed and /livez fails.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

BEAT = 0.5
"""Seconds between two beats."""
MARGIN = 30.0
"""Seconds that the first loop may be silent beyond the limit of a cycle: reading a large list, collecting garbage."""


class SecondLoop:
    """Started by `start`, ended by `stop`. Without `start`, `run` uses the caller's loop: parts work in tests without a thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="second loop", daemon=True)
            self._thread.start()

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work()` in this loop. The caller's loop goes on meanwhile."""
        return await (run_in(self._loop, work) if self._loop is not None else work())

    async def stop(self) -> None:
        """What still runs in it is cancelled."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            await run_in(loop, _cancel_others)
            loop.call_soon_threadsafe(loop.stop)
            await asyncio.to_thread(thread.join)
            loop.close()


async def run_in(loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[T]]) -> T:
    """Run `work()` in the event loop of another thread. A cancellation is passed on, and the end of the work is waited for."""
    here = asyncio.get_running_loop()
    if loop is here:
        return await work()
    ended: asyncio.Future[asyncio.Task[T]] = here.create_future()
    started: list[asyncio.Task[T]] = []

    def start() -> None:
        task = loop.create_task(_awaited(work))
        started.append(task)
        task.add_done_callback(lambda done: here.call_soon_threadsafe(ended.set_result, done))

    loop.call_soon_threadsafe(start)
    cancelled = False
    while not ended.done():
        try:
            await asyncio.wait((ended,))
        except asyncio.CancelledError:
            cancelled = True
            loop.call_soon_threadsafe(lambda: started[0].cancel())
    task = ended.result()
    if cancelled:
        # Also if the work ended by itself meanwhile: a caller that starts it again would never end.
        raise asyncio.CancelledError from (None if task.cancelled() else task.exception())
    return task.result()


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class Heartbeat:
    """Whether the first loop still runs. `limit()`: seconds that one cycle may take at the moment."""

    def __init__(self, limit: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._last = clock()

    async def run(self) -> None:
        """In the first loop, until cancelled."""
        while True:
            self._last = self._clock()
            await asyncio.sleep(BEAT)

    def silence(self) -> float:
        """Seconds since the first loop last ran, if that is too long; otherwise 0."""
        silent = self._clock() - self._last
        return silent if silent > self._limit() + MARGIN else 0.0

    @property
    def alive(self) -> bool:
        return not self.silence()
