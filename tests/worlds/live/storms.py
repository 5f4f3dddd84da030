"""Faults, each a coroutine that does its worst for a while and then lets go. Seeded: the same seed, the same storm."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

from tests.worlds.live.cluster import World

from navarch.embedded.api.server import ApiServer
from navarch.kube.errors import ApiError

Storm = Callable[[ApiServer, World, random.Random], Awaitable[None]]
GUST = 0.15


async def cut_watches(server: ApiServer, world: World, rng: random.Random) -> None:
    for _ in range(8):
        await asyncio.sleep(rng.random() * GUST)
        server.faults.cut_watches()


async def expired_history(server: ApiServer, world: World, rng: random.Random) -> None:
    for _ in range(6):
        await asyncio.sleep(rng.random() * GUST)
        server.faults.expire_history()
        server.faults.cut_watches()


async def conflicts(server: ApiServer, world: World, rng: random.Random) -> None:
    await _errors(server, rng, 409, "/binding")


async def throttling(server: ApiServer, world: World, rng: random.Random) -> None:
    server.faults.errors(429, rate=0.2, seed=rng.randrange(1 << 30), retry_after=1)
    await asyncio.sleep(1.0)
    server.faults.clear()


async def server_errors(server: ApiServer, world: World, rng: random.Random) -> None:
    await _errors(server, rng, 500, "")


async def slow_replies(server: ApiServer, world: World, rng: random.Random) -> None:
    server.faults.delay(0.4, path="/binding", rate=0.4, seed=rng.randrange(1 << 30))
    await asyncio.sleep(1.5)
    server.faults.clear()


async def restarts(server: ApiServer, world: World, rng: random.Random) -> None:
    """The listener goes away with requests on the wire: their sender does not know the outcome."""
    server.faults.delay(0.05, path="/binding", rate=0.5, seed=rng.randrange(1 << 30))
    for _ in range(2):
        await asyncio.sleep(rng.random() * GUST)
        await server.faults.restart(down=rng.random() * 0.5)
    server.faults.clear()


async def thieves(_server: ApiServer | None, world: World, rng: random.Random) -> None:
    """Another scheduler binds our pods to a node that only it uses."""
    assert world.history is not None
    for _ in range(6):
        await asyncio.sleep(rng.random() * GUST)
        waiting = [task for task in world.history.tasks.values() if not task.node and task.name.startswith("single")]
        if waiting:
            task = rng.choice(sorted(waiting, key=lambda each: each.key))
            with contextlib.suppress(ApiError):
                await world.client.bind(task.namespace, task.name, uid=task.uid, node="den-of-thieves")


async def _errors(server: ApiServer, rng: random.Random, code: int, path: str) -> None:
    server.faults.errors(code, path=path, rate=0.3, seed=rng.randrange(1 << 30))
    await asyncio.sleep(1.0)
    server.faults.clear()


STORMS: dict[str, Storm] = {
    "cut watches": cut_watches,
    "expired history": expired_history,
    "409": conflicts,
    "429": throttling,
    "500": server_errors,
    "slow replies": slow_replies,
    "restarts": restarts,
    "thieves": thieves,
}
