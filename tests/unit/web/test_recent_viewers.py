"""Work for viewers goes on while one looked a short time ago."""

from __future__ import annotations

import asyncio

from navarch.web.recent_viewers import RecentViewers


async def test_work_goes_on_while_a_look_counts_and_then_waits_for_the_next() -> None:
    now = 100.0
    viewers = RecentViewers(30.0, lambda: now)
    waiting = asyncio.create_task(viewers.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    viewers.looked()
    await waiting
    now = 130.0
    await viewers.wait()
    now = 130.1
    waiting = asyncio.create_task(viewers.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    viewers.looked()
    await waiting
