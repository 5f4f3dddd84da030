"""A pod whose binding the API server refuses each time (an admission policy, say) while the rest of its job runs: tried seldom."""

from __future__ import annotations

import asyncio

import pytest
from tests.worlds.live.cluster import World

from navarch.embedded.api.server import ApiServer

pytestmark = pytest.mark.live


async def test_a_pod_that_is_refused_is_not_tried_in_every_cycle(world: World, server: ApiServer) -> None:
    await world.node("n0", cpu="64")
    history = await world.watch()
    server.faults.errors(422, path="/pods/bad/binding")
    clock = asyncio.get_running_loop().time
    async with world.scheduler(policy="volcano", scheduler_names=("navarch",)):
        began = clock()
        await world.group("g", 1)
        await world.pod("good", group="g")
        await history.until_bound(1)
        await world.pod("bad", group="g")
        await world.eventually(lambda: world.events("bad"), lambda said: any(": 422 " in note for _, _, note in said))
        for i in range(20):  # each is decided in a cycle of its own, which looks at the job as well
            await world.group(f"other-{i}", 1)
            await world.pod(f"other-{i}", group=f"other-{i}")
            await history.until_bound(i + 2)
        # After 1, 2, 4, 8 seconds, and then every ten.
        assert 1 <= server.faults.struck <= 5 + (clock() - began) / 10
        server.faults.clear()
        await history.until_bound(22)
