"""A network that changes bytes of a watch: a node that a pod really holds is not given away."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from tests.worlds.live.cluster import World
from tests.worlds.live.false_proxy import FalseProxy

from navarch.kube.client import PatchType
from navarch.kube.resources import PODS

pytestmark = pytest.mark.live


class CorruptingProxy(FalseProxy):
    """Replaces bytes in what watches bring, once."""

    before, after = b"", b""

    def __init__(self, world: World, path: str = "/pods") -> None:
        super().__init__(world)
        self._path = path

    def passed_on(self, request: web.BaseRequest, chunk: bytes) -> bytes:
        if self.before and request.path.endswith(self._path) and self.before in chunk:
            chunk, self.before = chunk.replace(self.before, self.after), b""
        return chunk


async def test_a_pod_keeps_the_node_that_it_was_bound_to(any_world: World) -> None:
    world = any_world
    await world.node("n0", cpu="1")
    await world.node("n1", cpu="1", pods="0")
    history = await world.watch()
    async with CorruptingProxy(world) as proxy, world.scheduler(kubeconfig=proxy.kubeconfig):
        await world.pod("a", cpu="1")
        await history.until_bound(1)
        proxy.before, proxy.after = b'"nodeName":"n0"', b'"nodeName":"n1"'
        await world.client.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}}, PatchType.MERGE, namespace=world.namespace)
        await world.eventually(lambda: asyncio.sleep(0, proxy.before), lambda left: left == b"")
        await world.pod("b", cpu="1")
        await world.eventually(lambda: world.events("b"), lambda said: any(reason == "FailedScheduling" for _, reason, _ in said))
    assert history.bound() == [f"{world.namespace}/a"] and history.broken == []
