"""`--dry-run`: decides as if it were to write, and the API server hears nothing but questions from it, not even for the lease."""

from __future__ import annotations

import pytest
from tests.live import audit
from tests.live.world import World, end

from navarch.cluster.server import ApiServer

pytestmark = pytest.mark.live


async def test_it_only_asks_and_takes_the_lead_from_nobody(server: ApiServer, world: World) -> None:
    await world.node("n0", cpu="2")
    heard = audit.listen(server)
    history = await world.watch()
    dry = await world.process("--dry-run", "--lock-namespace=default", "--scheduler-name=planned", name="dry")
    try:
        await world.said("dry", "leading: 1 nodes")
        async with world.scheduler(leader_elect=True, lock_namespace="default") as leader:
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
