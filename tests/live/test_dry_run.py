"""`--dry-run`: decides as if it were to write, and the API server hears nothing but questions from it, not even for the lease."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from tests.worlds.live import audit
from tests.worlds.live.cluster import World, end, lasting

from navarch.embedded.api.server import ApiServer

pytestmark = pytest.mark.live


async def test_a_dry_run_only_reads_and_does_not_take_the_lease(server: ApiServer, world: World) -> None:
    await world.node("n0", cpu="2")
    heard = audit.listen(server)
    history = await world.watch()
    dry = await world.process("--dry-run", "--lock-namespace=default", "--scheduler-name=planned", name="dry")
    try:
        await world.said("dry", "leading: 1 nodes")
        async with world.scheduler(**lasting()) as leader:
            await world.gang("ours", 1)
            await history.until_bound(1)
            await world.gang("waits", 2, scheduler="planned")
            await world.pod("alone", scheduler="planned")
            await world.said("dry", "dry run: would bind default/alone to n0")
            assert leader.leading
    finally:
        assert await end(dry) == 0
    sent = [each for each in heard() if each.who == "dry"]
    assert sent, "nothing of it was heard"
    assert [each for each in sent if each.method != "GET"] == []


async def test_a_repeated_decision_is_logged_and_recorded_once(world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await world.node("n0", cpu="2")
    async with world.scheduler(dry_run=True, record=tmp_path / "cycles", period=0.05) as scheduler:
        await world.pod("a")
        first = await world.eventually(
            lambda: asyncio.sleep(0, scheduler.core.last_cycle), lambda last: last is not None and last.record.binds
        )
        await world.eventually(
            lambda: asyncio.sleep(0, scheduler.core.last_cycle),
            lambda last: last is not None and last.number > first.number + 3 and last.record.binds,
        )
    assert caplog.text.count("dry run: would bind default/a to n0") == 1
    assert caplog.text.count("1 bound, 0 evicted") == 1
    assert len(list((tmp_path / "cycles").iterdir())) == 1
