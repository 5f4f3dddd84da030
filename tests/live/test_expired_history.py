"""A scheduler on a real kube-apiserver that is cut off, again and again, until the history it would resume from is gone."""

from __future__ import annotations

import asyncio
import logging
import random
from pathlib import Path

import pytest
from tests.envtest.fixtures import binaries_or_skip
from tests.envtest.server import KubeApiServer
from tests.worlds.live.broken_wire import BreakingWire
from tests.worlds.live.cluster import World
from tests.worlds.live.load import GANGS, SINGLES, load, nodes
from tests.worlds.live.servers import serve_volcano

from navarch.kube.resources import PODS

pytestmark = pytest.mark.live


async def test_history_is_compacted_while_a_scheduler_is_cut_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Pods are made, bound by others and deleted meanwhile. All of it is known afterwards, and the books are right."""
    caplog.set_level(logging.INFO, logger="navarch.kube.watch.informer")
    rng = random.Random(11)
    async with KubeApiServer(["--watch-cache-sizes=pods#0,nodes#0"], binaries=binaries_or_skip()) as real:
        world = World(Path(real.kubeconfig), "default", tmp_path)
        await serve_volcano(world.client)
        history = await nodes(world)
        async with BreakingWire(real.port, 11) as wire, world.scheduler(port=wire.port, seed=11) as scheduler:
            await world.eventually(lambda: asyncio.sleep(0, scheduler.informers.missing()), lambda missing: missing == [])
            loading = asyncio.create_task(load(world, rng))
            for i in range(3):
                wire.cut()
                ours = await world.pod(f"elsewhere-{i}")
                # To a node of its own: another test fills one node from two schedulers.
                await world.client.bind("default", f"elsewhere-{i}", uid=ours["metadata"]["uid"], node="elsewhere")
                await world.pod(f"short-lived-{i}")
                await world.client.delete(PODS, f"short-lived-{i}", namespace="default", grace_period=0)
                await asyncio.to_thread(real.compact)
                wire.rate = 0.0
                uid = ours["metadata"]["uid"]
                await world.eventually(lambda uid=uid: asyncio.sleep(0, scheduler.cache.cluster.task(uid)), bool)
                expired = caplog.text.count("pods.v1: The resourceVersion for the provided watch is too old")
                assert expired == i + 1
            await loading
            await history.until_bound(4 * len(GANGS) + SINGLES + 3)
            await world.eventually(
                lambda: asyncio.sleep(0, len(scheduler.cache.cluster.tasks.rows)), lambda rows: rows == len(history.tasks)
            )
            await world.eventually(lambda: asyncio.sleep(0, len(scheduler.assumed.binds)), lambda left: left == 0)
        history.evicted -= {f"default/short-lived-{i}" for i in range(3)}
        history.check(GANGS)
        await world.close()
