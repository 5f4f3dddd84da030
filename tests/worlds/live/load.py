"""A load of gangs and single pods that live tests run under faults."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

from tests.worlds.live.cluster import World
from tests.worlds.live.history import History

GANGS = [(f"gang{i}-", 4) for i in range(3)]


SINGLES = 8


async def load(world: World, rng: random.Random) -> None:
    """Gangs and single pods that arrive one after another, mixed, and that all fit on the nodes of `nodes`."""
    work: list[Coroutine[Any, Any, object]] = [world.gang(stem.rstrip("-"), members) for stem, members in GANGS]
    work += [world.pod(f"single-{i}") for i in range(SINGLES)]
    rng.shuffle(work)
    for each in work:
        await each
        await asyncio.sleep(rng.random() * 0.03)


async def nodes(world: World) -> History:
    for i in range(6):
        await world.node(f"n{i}")
    return await world.watch()
