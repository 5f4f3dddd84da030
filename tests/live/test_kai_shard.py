"""`navarch run --shard NAME` in the place of the scheduler that KAI's operator deploys for a shard, on either server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.kube.crds import serve, withdraw
from tests.worlds.live.cluster import World
from tests.worlds.live.kai import FREE, QUEUES, gpu_node, kai_world

from navarch.kube.client import PatchType
from navarch.kube.errors import NotFound
from navarch.kube.resources import PODS
from navarch.live.ops.shard_policy import CONFIGS, SHARDS

pytestmark = pytest.mark.live
POOL = "kai.scheduler/node-pool"


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def play(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with kai_world(request, tmp_path) as world:
        await serve(world.client, SHARDS, "SchedulingShard")
        await serve(world.client, CONFIGS, "Config")
        try:
            yield world
        finally:
            for resource in (SHARDS, CONFIGS):
                with contextlib.suppress(NotFound):
                    await withdraw(world.client, resource)


async def test_a_shard_of_the_cluster_is_the_policy_and_is_read_again(play: World) -> None:
    world = play
    body: dict[str, Any] = {"apiVersion": SHARDS.api_version, "kind": "SchedulingShard", "metadata": {"name": "blue-shard"}}
    await world.client.create(SHARDS, {**body, "spec": {"partitionLabelValue": "blue"}})
    named = {"global": {"schedulerName": "my-kai"}}
    await world.client.create(CONFIGS, {**body, "kind": "Config", "metadata": {"name": "kai-config"}, "spec": named})
    await gpu_node(world, "a-plain", 1)
    await gpu_node(world, "b-blue", 1, **{POOL: "blue"})
    for name, more in (("blues", {}), ("blue", {"parentQueue": "blues"})):
        spec = {"resources": {"gpu": FREE, "cpu": FREE, "memory": FREE}, **more}
        metadata = {"name": name, "labels": {POOL: "blue"}}
        await world.client.create(QUEUES, {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": metadata, "spec": spec})
    history = await world.watch()
    await world.process("--shard", "blue-shard", "--no-bind-requests", f"--lock-namespace={world.namespace}", name="shard")
    pod = world.pod_body("alone", "1", "", "my-kai")
    pod["metadata"]["labels"] = {"kai.scheduler/queue": "blue", POOL: "blue"}
    await world.client.create(PODS, pod, namespace=world.namespace)
    await history.until_bound(1)
    assert (await world.get_pod("alone"))["spec"]["nodeName"] == "b-blue"
    await world.client.patch(SHARDS, "blue-shard", {"spec": {"kValue": 0.5}}, PatchType.MERGE)
    await world.said("shard", "read again and in force: SchedulingShard/blue-shard")


async def test_a_shard_that_is_not_there_is_named(play: World) -> None:
    world = play
    process = await world.process("--shard", "green", name="none")
    assert await process.wait() == 2
    assert "found none, expected SchedulingShard green in the cluster" in world.log_of("none").read_text(encoding="utf-8")
