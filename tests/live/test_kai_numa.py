"""NUMA zones that the scheduler predicts, on either server: they reach KAI's binder and the pod, and later cycles count them."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.worlds.live.cluster import World
from tests.worlds.live.kai import GPU, KAI, REQUESTS, gpu_node, group, kai_world, member, queue, refusal
from tests.worlds.live.servers import serve_kinds

from navarch.engine.policy.presets import PRESETS
from navarch.kube.client import PatchType
from navarch.kube.resources import PODS, Resource

pytestmark = pytest.mark.live
ZONES = Resource("topology.node.k8s.io", "v1alpha2", "noderesourcetopologies", namespaced=False)
PREDICTED = "kai.scheduler/numa-placement-predicted"


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def play(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A node of two zones with two GPUs each, whose kubelet takes only pods that fit into one zone."""
    async with kai_world(request, tmp_path) as world:
        await serve_kinds(world.client, ZONES)
        await queue(world, "department")
        await queue(world, "team", "department")
        await gpu_node(world, "n0", 4)
        offered = {"name": GPU, "capacity": "2", "allocatable": "2", "available": "2"}
        zones = [{"name": f"node-{i}", "type": "Node", "resources": [offered]} for i in range(2)]
        attributes = [{"name": "topologyManagerPolicy", "value": "single-numa-node"}]
        body = {"metadata": {"name": "n0"}, "attributes": attributes, "zones": zones}
        await world.client.create(ZONES, {"apiVersion": ZONES.api_version, "kind": "NodeResourceTopology", **body})
        try:
            yield world
        finally:
            await world.client.delete(ZONES, "n0")


def with_numa(world: World) -> dict[str, Any]:
    """KAI's policy with the plugin `numa`, which is off unless a file names it."""
    policy: dict[str, Any] = copy.deepcopy(dict(PRESETS["kai"]))
    policy["tiers"][0]["plugins"].append({"name": "numa"})
    path = world.folder / "numa.yaml"
    path.write_text(yaml.safe_dump(policy), encoding="utf-8")
    return {**KAI, "policy": str(path)}


async def ask(world: World, name: str, gpus: int) -> None:
    await group(world, name, minMember=1)
    await member(world, f"{name}-0", name, gpus=gpus)


async def requested(world: World, name: str) -> list[dict[str, Any]]:
    async def found() -> list[dict[str, Any]]:
        items = (await world.client.list(REQUESTS, namespace=world.namespace)).items
        return [each["spec"] for each in items if each["metadata"]["name"] == f"{name}-0"]

    (spec,) = await world.eventually(found, bool)
    return list(spec["predictedNUMAZones"])


async def test_predicted_zones_reach_the_bind_request_and_survive_a_restart(play: World) -> None:
    world = play
    async with world.scheduler(**with_numa(world)):
        await ask(world, "small", 1)
        assert await requested(world, "small") == [{"zone": "node-0", "amount": {GPU: "1"}}]
        await ask(world, "large", 2)
        assert await requested(world, "large") == [{"zone": "node-1", "amount": {GPU: "2"}}], "the first pod's GPU counts"
    async with world.scheduler(**with_numa(world)):
        await ask(world, "second", 1)
        assert await requested(world, "second") == [{"zone": "node-0", "amount": {GPU: "1"}}], "the requests tell a new scheduler"


async def test_without_kais_binder_the_pod_is_annotated_with_its_zones(play: World) -> None:
    world = play
    direct = {**with_numa(world), "bind_requests": False}
    history = await world.watch()
    async with world.scheduler(**direct):
        for name in ("a", "b"):
            await ask(world, name, 1)
            await history.until_bound(1, name)
            annotations = (await world.get_pod(f"{name}-0"))["metadata"]["annotations"]
            assert json.loads(annotations[PREDICTED]) == [{"zone": "node-0", "amount": {GPU: "1"}}]
        await ask(world, "c", 1)
        await history.until_bound(1, "c")
        # The zone that is reported is the truth: the kubelet chose the other one for b.
        observed = json.dumps([{"zone": "node-1", "amount": {GPU: "1"}}])
        body = {"metadata": {"annotations": {"kai.scheduler/numa-placement-observed": observed}}}
        await world.client.patch(PODS, "b-0", body, PatchType.MERGE, namespace=world.namespace)
        await history.until(
            lambda: any(t.name == "b-0" and "kai.scheduler/numa-placement-observed" in t.annotations for t in history.tasks.values()),
            "the report is there",
        )
    async with world.scheduler(**direct):
        await ask(world, "d", 1)
        await history.until_bound(1, "d")
        annotations = (await world.get_pod("d-0"))["metadata"]["annotations"]
        assert json.loads(annotations[PREDICTED]) == [{"zone": "node-0", "amount": {GPU: "1"}}]
        await ask(world, "e", 1)
        await refusal(world, "e-0", "GPU")
