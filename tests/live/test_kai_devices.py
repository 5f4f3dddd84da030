"""Devices of claims, and of extended resources that devices serve, reach KAI's binder by the BindRequest, on either server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.live.cluster import World
from tests.worlds.live.kai import KAI, REQUESTS, gpu_node, group, kai_world, member, queue

from navarch.kube.resources import Resource

pytestmark = pytest.mark.live
CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
SLICES = Resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims")
FPGA = "example.com/fpga"


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def play(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A node with two FPGAs, which its driver publishes and the node does not report."""
    async with kai_world(request, tmp_path) as world:
        await queue(world, "department")
        await queue(world, "team", "department")
        await gpu_node(world, "n0")
        selector = {"cel": {"expression": 'device.driver == "fpga.example.com"'}}
        spec: dict[str, Any] = {"extendedResourceName": FPGA, "selectors": [selector]}
        body: dict[str, Any] = {"apiVersion": CLASSES.api_version, "kind": "DeviceClass", "metadata": {"name": "fpga"}}
        await world.client.create(CLASSES, {**body, "spec": spec})
        pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "fpga.example.com", "nodeName": "n0", "pool": pool, "devices": [{"name": "d0"}, {"name": "d1"}]}
        await world.client.create(SLICES, {**body, "kind": "ResourceSlice", "metadata": {"name": "n0-fpga"}, "spec": spec})
        try:
            yield world
        finally:
            await world.client.delete(CLASSES, "fpga")
            await world.client.delete(SLICES, "n0-fpga")


async def requested(world: World, name: str) -> dict[str, Any]:
    async def found() -> list[dict[str, Any]]:
        items = (await world.client.list(REQUESTS, namespace=world.namespace)).items
        return [each["spec"] for each in items if each["metadata"]["name"] == name]

    (spec,) = await world.eventually(found, bool)
    return dict(spec)


async def test_extended_resources_and_claims_of_a_pod_are_in_its_request(play: World) -> None:
    world = play
    asked = {"devices": {"requests": [{"name": "card", "exactly": {"deviceClassName": "fpga"}}]}}
    claim = {"apiVersion": CLAIMS.api_version, "kind": "ResourceClaim", "metadata": {"name": "mine"}, "spec": asked}
    await world.client.create(CLAIMS, claim, namespace=world.namespace)
    async with world.scheduler(**KAI):
        await group(world, "claims", minMember=1)
        resources = {"requests": {"cpu": "100m"}, "claims": [{"name": "own"}]}
        containers = [{"name": "main", "image": "busybox", "resources": resources}]
        claims = [{"name": "own", "resourceClaimName": "mine"}]
        await member(world, "claims-0", "claims", gpus=0, containers=containers, resourceClaims=claims)
        (given,) = (await requested(world, "claims-0"))["resourceClaimAllocations"]
        assert (given["name"], given["allocation"]["devices"]["results"][0]["device"]) == ("own", "d0")

        await group(world, "extended", minMember=1)
        amounts = {"cpu": "100m", FPGA: "1"}
        containers = [{"name": "main", "image": "busybox", "resources": {"requests": amounts, "limits": {FPGA: "1"}}}]
        await member(world, "extended-0", "extended", gpus=0, containers=containers)
        extended = (await requested(world, "extended-0"))["extendedResourceClaimAllocation"]
        (result,) = extended["allocation"]["devices"]["results"]
        assert (result["driver"], result["pool"], result["device"]) == ("fpga.example.com", "n0", "d1")
        (request,) = extended["deviceRequests"]
        assert (request["name"], request["exactly"]["deviceClassName"]) == (result["request"], "fpga")
        (mapping,) = extended["containerMappings"]
        assert mapping == {"containerName": "main", "resourceName": FPGA, "requestName": result["request"]}
        # KAI's binder looks for a claim of the pod before it makes one.
        (made,) = [
            each
            for each in (await world.client.list(CLAIMS, namespace=world.namespace)).items
            if any(owner["name"] == "extended-0" and owner.get("controller") for owner in each["metadata"].get("ownerReferences", ()))
        ]
        assert made["metadata"]["annotations"]["resource.kubernetes.io/extended-resource-claim"] == "true"
        assert made["status"]["allocation"]["devices"]["results"] == extended["allocation"]["devices"]["results"]
