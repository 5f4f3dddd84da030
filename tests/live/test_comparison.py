"""What watches lost or changed is found by the comparison with the server, counted and mended."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from tests.live.test_corrupted_watches import CorruptingProxy
from tests.worlds.live.cluster import NODES, World

from navarch.kube.client import PatchType
from navarch.kube.resources import PODS, Resource
from navarch.kube.watch.comparison import Agrees, Comparison
from navarch.live.scheduler import Scheduler

pytestmark = pytest.mark.live


def comparing(scheduler: Scheduler) -> tuple[Comparison, list[tuple[str, int]]]:
    found: list[tuple[str, int]] = []

    def drifted(resource: Resource, count: int) -> None:
        found.append((resource.plural, count))

    agrees: dict[Resource, Agrees] = {PODS: scheduler.cache.agrees_with_pod, NODES: scheduler.cache.agrees_with_node}
    made = Comparison(lambda: scheduler.informers.group.informers, drifted, agrees, random.Random(1), every=0.1)
    return made, found


async def test_a_cluster_that_is_read_right_has_no_drift(any_world: World) -> None:
    world = any_world
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler() as scheduler:
        await world.gang("g", 3)
        await world.pod("waits", cpu="64")
        await history.until_bound(3)
        comparison, found = comparing(scheduler)
        task = asyncio.create_task(comparison.run())
        listed = [informer for informer in scheduler.informers.group.informers if informer.synced and not informer.absent]
        assert len(listed) > 10
        for number in range(10):
            await world.pod(f"p{number}", cpu="100m")
        await history.until_bound(13)
        rounds = comparison.rounds
        await world.eventually(lambda: asyncio.sleep(0, comparison.rounds), lambda now: now >= rounds + 2, timeout=400)
        assert found == [] and not task.done()
        task.cancel()


CORRUPTED: list[tuple[str, bytes, bytes, Any]] = [
    ("pods", b'"cpu":"3"', b'"cpu":"1"', lambda world: world.pod("a", cpu="3")),
    ("nodes", b'"allocatable":{"cpu":"4"', b'"allocatable":{"cpu":"9"', lambda world: world.node("n0")),
]


@pytest.mark.parametrize(("kind", "before", "after", "make"), CORRUPTED, ids=["requests of a pod", "room of a node"])
async def test_changed_bytes_are_mended(any_world: World, kind: str, before: bytes, after: bytes, make: Any) -> None:
    world = any_world
    async with CorruptingProxy(world, f"/{kind}") as proxy, world.scheduler(kubeconfig=proxy.kubeconfig) as scheduler:
        await world.eventually(lambda: asyncio.sleep(0, scheduler.informers.missing()), lambda missing: missing == [])
        proxy.before, proxy.after = before, after
        await make(world)
        await world.eventually(lambda: asyncio.sleep(0, proxy.before), lambda left: left == b"")
        comparison, found = comparing(scheduler)
        task = asyncio.create_task(comparison.run())
        other = {"metadata": {"labels": {"touched": "yes"}}}

        async def mended() -> list[tuple[str, int]]:
            """Later events let the watch pass the list; on a quiet cluster a bookmark does."""
            await world.pod(f"later-{random.random()}"[:20].replace(".", "-"), cpu="1m", schedulingGates=[{"name": "x"}])
            if kind == "nodes" and found:
                await world.client.patch(NODES, "n0", other, PatchType.MERGE)
            return found

        await world.eventually(mended, lambda found: found[:1] == [(kind, 1)])
        await world.eventually(lambda: asyncio.sleep(0, _right(scheduler, kind)), bool)
        task.cancel()


def _right(scheduler: Scheduler, kind: str) -> bool:
    cluster = scheduler.cache.cluster
    if kind == "nodes":
        return [dict(spec.allocatable)["cpu"] for spec in cluster.nodes.specs if spec is not None] == [4000]
    return 3000 in [dict(task.shape.requests).get("cpu") for task in cluster.tasks.specs if task is not None]
