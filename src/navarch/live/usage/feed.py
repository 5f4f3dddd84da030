"""Asks a source of usage in the background and keeps the last answer.

A scheduler must not wait for statistics, and must not stop without them. Until the first answer comes the usage of every queue counts
as zero; then the last answer is used until a newer one comes. `reading` and the log tell how old it is and what went wrong.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from msgspec import Struct

from navarch.kube.supervision import Supervise, run_once
from navarch.live.ops.fetch_errors import FetchErrors
from navarch.live.usage.history import HistorySource
from navarch.live.usage.params import UsageConfig, UsageConfigError, UsageParams
from navarch.live.usage.prometheus import PrometheusSource
from navarch.live.usage.source import Usage, UsageError, UsageSource

log = logging.getLogger(__name__)


class UsageReading(Struct, frozen=True):
    """`fetched` None: nothing was fetched yet, and the usage of every queue counts as zero."""

    usage: Usage
    fetched: float | None = None
    stale: bool = False
    error: str = ""

    def __str__(self) -> str:
        """A sentence for warnings; empty while all is well."""
        if self.fetched is None:
            return f"usage over time is not known yet{f': {self.error}' if self.error else ''}"
        if self.stale:
            return f"usage over time is old and used all the same{f': {self.error}' if self.error else ''}"
        return ""


class UsageFeed:
    """`clock` gives seconds since the epoch."""

    def __init__(self, source: UsageSource, params: UsageParams, clock: Callable[[], float], supervise: Supervise = run_once) -> None:
        self._supervise = supervise
        self.source = source
        self.params = params
        self._clock = clock
        self._usage: Usage = {}
        self._fetched: float | None = None
        self._errors = FetchErrors(log, "usage over time")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to fetch. Nobody waits for the first answer."""
        self._task = asyncio.create_task(self._supervised(), name="usage feed")

    def reading(self) -> UsageReading:
        stale = self._fetched is not None and self._clock() - self._fetched > self.params.staleness
        return UsageReading(self._usage, self._fetched, stale, self._errors.text)

    async def fetch(self) -> bool:
        """One attempt; on failure what is known stays."""
        asked = self._clock()
        usage = await self._errors.attempt(UsageError, self.source.fetch(asked))
        if usage is None:
            return False
        self._usage, self._fetched = usage, asked
        return True

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self.source.close()

    async def _supervised(self) -> None:
        await self._supervise("usage feed", self._run)

    async def _run(self) -> None:
        while True:
            await self.fetch()
            await asyncio.sleep(self.params.fetch_interval)


def open_source(config: UsageConfig) -> UsageSource:
    """The source that a policy names."""
    makers: Mapping[str, Callable[[str, UsageParams], UsageSource]] = {
        "prometheus": PrometheusSource,
        "builtin": HistorySource,
    }
    maker = makers.get(config.client)
    if maker is None:
        raise UsageConfigError(f"clientType: found {config.client!r}, expected one of {', '.join(sorted(makers))}")
    return maker(config.connection, config.params)
