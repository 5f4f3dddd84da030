"""Volcano's NodeShard: a hard shard bounds the nodes of the scheduler, and follows its object."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.envtest.fixtures import kube_apiserver  # noqa: F401
from tests.worlds.live.cluster import GROUPS, QUEUES, World
from tests.worlds.live.servers import serve_kinds, world_on

from navarch.kube.client import Client, PatchType
from navarch.kube.resources import Resource

pytestmark = pytest.mark.live
SHARDS: Final = Resource("shard.volcano.sh", "v1alpha1", "nodeshards", namespaced=False)


async def serve(client: Client) -> None:
    await serve_kinds(client, GROUPS, QUEUES, SHARDS)


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def sharded(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(request, tmp_path, serve) as made:
        yield made


def is_refused(pod: dict[str, Any], message: str = "") -> bool:
    return any(each["status"] == "False" and message in each["message"] for each in pod["status"].get("conditions") or ())


async def test_a_hard_shard_bounds_the_nodes_and_follows_its_object(sharded: World) -> None:
    world = sharded
    name = f"mine-{world.namespace}"
    for node in ("n0", "n1"):
        await world.node(node, cpu="1")
    body = {"apiVersion": SHARDS.api_version, "kind": "NodeShard", "metadata": {"name": name}, "spec": {"nodesDesired": ["n1"]}}
    policy = {
        "compat": "volcano",
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}],
        "schedulerParams": {"shardingMode": "hard", "shardName": name},
    }
    (file := world.folder / "policy.yaml").write_text(yaml.safe_dump(policy), encoding="utf-8")
    history = await world.watch()
    try:
        async with world.scheduler(policy=str(file)):
            await world.pod("first")
            missing = f"no node is in the shard of this scheduler: NodeShard {name} does not exist"
            await world.eventually(lambda: world.get_pod("first"), lambda pod: is_refused(pod, missing))
            await world.client.create(SHARDS, body)
            await history.until_bound(1, "first")
            await world.pod("second")
            await world.eventually(lambda: world.get_pod("second"), is_refused)
            await world.client.patch(SHARDS, name, {"spec": {"nodesDesired": ["n0", "n1"]}}, PatchType.MERGE)
            await history.until_bound(1, "second")
        found = {pod: (await world.get_pod(pod))["spec"]["nodeName"] for pod in ("first", "second")}
        assert found == {"first": "n1", "second": "n0"}
    finally:
        await world.client.delete(SHARDS, name)
    assert history.broken == []
