"""The whole live scheduler without an API server: tests put objects into its cache and read what it would write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.worlds.live_parts.cluster_cache import node
from tests.worlds.live_parts.fake_pool import NOWHERE, Submitted

from navarch.live.run_options import RunOptions
from navarch.live.scheduler import Scheduler


@asynccontextmanager
async def scheduling(**options: Any) -> AsyncIterator[Scheduler]:
    """A scheduler that leads, with a node and without an API server."""
    scheduler = Scheduler(NOWHERE, RunOptions(listen="", **options), make_pool=Submitted)
    scheduler.core.leading = True
    scheduler.cache.put(node("n1"))
    yield scheduler
    for client in (scheduler.client, scheduler.lease_client, scheduler.pool):
        await client.close()


def sent_by(scheduler: Scheduler) -> Submitted:
    assert isinstance(scheduler.pool, Submitted)
    return scheduler.pool
