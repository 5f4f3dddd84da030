"""A real kube-apiserver killed with SIGKILL and started again, under an informer and a pool of writes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.envtest.fixtures import binaries_or_skip
from tests.envtest.server import KubeApiServer
from tests.worlds.kube.servers import open_live
from tests.worlds.kube.watching import Pod, Recorder, informing

from navarch.kube.errors import ApiError, Unreachable
from navarch.kube.resources import PODS
from navarch.kube.write.http1 import Reply
from navarch.kube.write.pool import Outcome, WritePool, bind_write

pytestmark = [pytest.mark.live, pytest.mark.slow]


async def test_nothing_is_lost_or_told_twice_when_the_server_is_killed() -> None:
    seen = Recorder()
    outcomes: dict[str, list[Outcome]] = {}
    async with KubeApiServer(binaries=binaries_or_skip()) as server, open_live(Path(server.kubeconfig)) as live:
        pods = [await live.pod(f"p{number}") for number in range(150)]
        pool = WritePool(live.endpoint, connections=8)
        async with informing(live.client, seen, namespace=live.namespace) as informer:
            for pod in pods:
                name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
                write = bind_write(live.namespace, name, uid, "n1")
                write.timeout = 600.0
                pool.submit(write, outcomes.setdefault(name, []).append)
            async with asyncio.timeout(120):
                while len(pods) - pool.waiting < 40:
                    await asyncio.sleep(0)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            assert await pool.drain(timeout=600)
            await pool.close()
            listing = await live.client.list(PODS, Pod, namespace=live.namespace)
            expected = {pod.metadata.uid: pod.metadata.resource_version for pod in listing.items}

            def agrees() -> bool:
                return {uid: pod.metadata.resource_version for uid, pod in seen.alive.items()} == expected

            await seen.until(agrees)
            assert len(informer.store) == 150
        bound = {pod.metadata.name for pod in listing.items if pod.spec.node_name}
        for name, (outcome,) in outcomes.items():
            if isinstance(outcome, Reply):
                assert name in bound
            elif isinstance(outcome, (ApiError, Unreachable)):
                assert name not in bound
        assert sum(isinstance(outcome, Reply) for (outcome,) in outcomes.values()) > 100
