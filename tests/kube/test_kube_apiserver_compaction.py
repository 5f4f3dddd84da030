"""A real kube-apiserver whose etcd has compacted the history that an informer needs: 410 as a reply, and as an event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.envtest.fixtures import binaries_or_skip
from tests.envtest.server import KubeApiServer
from tests.worlds.kube.servers import Live, open_live
from tests.worlds.kube.watching import Pod, Recorder, informing
from tests.worlds.live.broken_wire import BreakingWire

from navarch.kube.client import Client, PatchType
from navarch.kube.errors import Gone
from navarch.kube.resources import PODS
from navarch.kube.transport import Transport

pytestmark = pytest.mark.live

STREAMS = ("--watch-cache-sizes=pods#0",)
LISTS = (*STREAMS, "--feature-gates=WatchList=false")


async def started(*arguments: str) -> AsyncIterator[tuple[KubeApiServer, Live]]:
    async with KubeApiServer(arguments, binaries=binaries_or_skip()) as server, open_live(Path(server.kubeconfig)) as live:
        yield server, live


@pytest.fixture(params=[STREAMS, LISTS], ids=["watch list", "paged list"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[tuple[KubeApiServer, Live]]:
    async for each in started(*request.param):
        yield each


@pytest.fixture
async def paging(request: pytest.FixtureRequest) -> AsyncIterator[tuple[KubeApiServer, Live]]:
    async for each in started(*LISTS):
        yield each


async def truth(live: Live) -> dict[str, str]:
    found = (await live.client.list(PODS, Pod, namespace=live.namespace)).items
    return {pod.metadata.uid: pod.metadata.resource_version for pod in found}


def told(seen: Recorder) -> dict[str, str]:
    return {uid: pod.metadata.resource_version for uid, pod in seen.alive.items()}


async def test_a_watch_from_a_version_that_is_gone(cluster: tuple[KubeApiServer, Live], caplog: pytest.LogCaptureFixture) -> None:
    """The ERROR event. The handler hears what is different now and nothing else, in whichever way the state is read."""
    server, live = cluster
    seen = Recorder()
    for name in ("stays", "changes", "goes", "returns"):
        await live.pod(name)
    async with BreakingWire(server.port, 1) as wire:
        through = replace(live.endpoint, server=f"https://127.0.0.1:{wire.port}")
        async with Client(through, attempts=1) as client, informing(client, seen, namespace=live.namespace) as informer:
            assert (informer.counters.lists, len(seen.story)) == (1, 4)
            wire.cut()
            async with asyncio.timeout(60):
                while informer.counters.failures < 2:
                    await asyncio.sleep(0.01)
            for name in ("goes", "returns"):
                await live.client.delete(PODS, name, namespace=live.namespace, grace_period=0)
            await live.client.patch(
                PODS, "changes", {"metadata": {"labels": {"new": "label"}}}, PatchType.MERGE, namespace=live.namespace
            )
            for name in ("returns", "comes"):
                await live.pod(name)
            assert server.compact() > int(informer.resource_version)
            with caplog.at_level(logging.INFO, logger="navarch.kube.watch.informer"):
                wire.rate = 0.0
                expected = await truth(live)
                await seen.until(lambda: told(seen) == expected)
            assert informer.counters.lists == 2
            assert "watch is too old.: listing again" in caplog.text
            assert sorted(seen.story[4:]) == [
                ("added", "comes"), ("added", "returns"), ("deleted", "goes"), ("deleted", "returns"), ("updated", "changes")
            ]  # fmt: skip
            # And it goes on as a watch.
            await live.pod("later")
            await seen.heard("added", "later")
            assert informer.counters.lists == 2


class Compacting(Transport):
    """Requests with bad luck: history is compacted, and a pod of the first page deleted, between two pages."""

    server: KubeApiServer
    refused: int = 0
    unlucky: str = ""

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if self.unlucky and "continue" in (options.get("params") or {}):
            name, self.unlucky = self.unlucky, ""
            await super().request("DELETE", f"{path}/{name}", body=b'{"gracePeriodSeconds":0}')
            await asyncio.to_thread(self.server.compact)
        try:
            return await super().request(method, path, **options)
        except Gone as error:
            self.refused = error.code
            raise


async def test_a_list_whose_pages_are_gone(paging: tuple[KubeApiServer, Live], caplog: pytest.LogCaptureFixture) -> None:
    """The HTTP status. What was read of the first page is thrown away, and all is read in one piece."""
    server, live = paging
    for start in range(0, 600, 100):
        await asyncio.gather(*(live.pod(f"p{number:03}") for number in range(start, start + 100)))
    seen = Recorder()
    async with Client(live.endpoint) as client:
        client.transport = transport = Compacting(live.endpoint)
        transport.server, transport.unlucky = server, "p000"
        with caplog.at_level(logging.INFO, logger="navarch.kube.watch.informer"):
            async with informing(client, seen, namespace=live.namespace) as informer:
                assert transport.refused == 410
                assert "pages expired, listing" in caplog.text
                assert len(informer.store) == 599 == len(seen.story)
                assert told(seen) == await truth(live)
        transport.unlucky = "p001"
        assert len((await client.list(PODS, Pod, namespace=live.namespace)).items) == 598
