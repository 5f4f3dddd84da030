"""vGPU pods on a live cluster: the cards are written with the binding, and a binding that fails leaves neither cards nor marks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.worlds.live.cluster import NODES, World

from navarch.embedded.api.server import ApiServer
from navarch.kube.resources import PODS
from navarch.model.registered_cards import REGISTER, VGPU_CORES, VGPU_IDS, VGPU_MEMORY, VGPU_NUMBER

pytestmark = pytest.mark.live
PLUGINS = ["gang", "predicates", {"name": "deviceshare", "arguments": {"deviceshare.VGPUEnable": True}}]


@pytest.fixture
def policy(tmp_path: Path) -> str:
    plugins = [{"name": each} if isinstance(each, str) else each for each in PLUGINS]
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump({"actions": "allocate", "tiers": [{"plugins": plugins}]}), encoding="utf-8")
    return str(path)


async def card_node(world: World, name: str) -> None:
    amounts = {"cpu": "16", "memory": "32Gi", "pods": "110", VGPU_NUMBER: "20", VGPU_MEMORY: "32000", VGPU_CORES: "200"}
    world.capacity[name] = amounts
    register = "".join(f"GPU-{card},10,16000,NVIDIA-T4,true,hami-core:" for card in range(2))
    metadata = {"name": name, "annotations": {REGISTER: register}}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    await world.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})


async def card_pod(world: World, name: str, memory: int) -> None:
    amounts = {"cpu": "1", VGPU_NUMBER: "1", VGPU_MEMORY: str(memory), VGPU_CORES: "10"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": amounts, "limits": amounts}}
    await world.pod(name, containers=[container])


async def marks(world: World, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (await world.get_pod(name))["metadata"].get("annotations") or {}
    return {key: value for key, value in found.items() if key.startswith("volcano.sh/")}


async def test_cards_are_written_with_the_binding(world: World, policy: str) -> None:
    await card_node(world, "n0")
    history = await world.watch()
    async with world.scheduler(policy=policy):
        for name, card in (("a", 1), ("d", 0)):
            await card_pod(world, name, 10000)
            await history.until_bound(1, name)
            found = await marks(world, name)
            assert found[VGPU_IDS] == found["volcano.sh/devices-to-allocate"] == f"GPU-{card},NVIDIA,10000,10:"
        assert (found["volcano.sh/vgpu-node"], found["volcano.sh/bind-phase"]) == ("n0", "allocating")
        await card_pod(world, "b", 10000)
        await world.eventually(lambda: world.get_pod("b"), lambda pod: "vGPU card" in str(pod.get("status", {}).get("conditions")))
    async with world.scheduler(policy=policy):
        # Another scheduler knows from the marks alone which card is full.
        await card_pod(world, "c", 6000)
        await history.until_bound(1, "c")
        assert history.waiting() == ["default/b"]
        await world.client.delete(PODS, "a", namespace="default", grace_period=0)
        await history.until_bound(1, "b")
    assert history.broken == []


async def test_a_binding_that_fails_leaves_no_marks_and_no_card_taken(server: ApiServer, world: World, policy: str) -> None:
    await card_node(world, "n0")
    history = await world.watch()
    server.faults.errors(403, path="/a/binding")
    async with world.scheduler(policy=policy) as scheduler:
        await card_pod(world, "a", 16000)
        await world.eventually(lambda: asyncio.sleep(0, server.faults.struck), lambda struck: struck >= 2)
        assert await marks(world, "a") == {}
        await world.client.delete(PODS, "a", namespace="default", grace_period=0)
        await card_pod(world, "b", 16000)
        await history.until_bound(1, "b")
        await world.eventually(lambda: asyncio.sleep(0, scheduler.assumed.binds), lambda left: left == {})
    assert (await marks(world, "b"))[VGPU_IDS] == "GPU-1,NVIDIA,16000,10:"
    assert history.broken == []
