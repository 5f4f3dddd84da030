"""A hollow cluster with a data directory goes on where it was, in whatever way it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from navarch.embedded.api.server import ApiServer
from navarch.embedded.api.subresources.binding import bind
from navarch.embedded.hollow_cluster import HollowCluster
from navarch.embedded.node_sets import NodeSet
from navarch.testing.builders import pod


async def until(holds: Callable[[], bool]) -> None:
    """Look until it holds: a kubelet gives room back a little after its pod has ended."""
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0.01)


async def test_pods_that_ran_run_on_and_end_in_their_time(tmp_path: Path) -> None:
    def phase(server: ApiServer, name: str) -> str:
        return str(server.store.get("pods", "default", name).obj["status"].get("phase"))

    async with ApiServer(data_dir=tmp_path) as server:
        hollow = HollowCluster(server.operations, speed=20)
        hollow.start()
        hollow.add_nodes(NodeSet(count=1, cpu="2").manifests())
        for name, duration in (("long", "10000h"), ("short", "1500s")):
            made = pod(name).cpu("500m").annotate("navarch.io/run-for", duration)
            made["spec"]["restartPolicy"] = "Never"
            server.operations.create(server.operations.kind("pods"), "default", dict(made))
            bind(server.store, "default", name, {"metadata": {"name": name}, "target": {"name": "node-000"}})
        await until(lambda: phase(server, "long") == phase(server, "short") == "Running")
        hollow.stop()

    # Time passes a hundred times as fast now, so that its end is not waited for as long as it could take to get here.
    async with ApiServer(data_dir=tmp_path) as server:
        hollow = HollowCluster(server.operations, speed=2000)
        hollow.start()
        assert hollow.add_nodes(NodeSet(count=1, cpu="2").manifests()) == 0
        await until(lambda: phase(server, "short") == "Succeeded")
        assert phase(server, "long") == "Running"
        await until(lambda: hollow.kubelets.nodes["node-000"].room.used["cpu"] == 500)
        too_much = pod("more").cpu("1600m")
        server.operations.create(server.operations.kind("pods"), "default", dict(too_much))
        bind(server.store, "default", "more", {"metadata": {"name": "more"}, "target": {"name": "node-000"}})
        await until(lambda: phase(server, "more") == "Failed")
        hollow.stop()
