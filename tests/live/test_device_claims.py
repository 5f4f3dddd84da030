"""Claims on devices against both API servers: shares of a device, conditions before the binding, extended resources."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.live.claims import DEVICE_CLASSES, RESOURCE_CLAIMS, SLICES
from tests.worlds.live.cluster import World

from navarch.kube.client import PatchType

pytestmark = pytest.mark.live
Object = dict[str, Any]
DRIVER = "gpu.example.com"


async def offer(world: World, *devices: Object, **device_class: Any) -> str:
    """A node with these devices, and a class of them; gives the name of the class, and the slice's pool is the node's."""
    name = f"gpu-{world.namespace}"
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    await world.clusterwide(DEVICE_CLASSES, {"metadata": {"name": name}, "spec": {"selectors": [selector], **device_class}})
    node = f"n-{world.namespace}"
    await world.node(node, cpu="8")
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": list(devices)}
    await world.clusterwide(SLICES, {"metadata": {"name": f"slice-{node}"}, "spec": spec})
    return name


async def claim(world: World, name: str, device_class: str, **more: Any) -> None:
    exactly = {"deviceClassName": device_class, "count": 1, "allocationMode": "ExactCount", **more}
    body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "one", "exactly": exactly}]}}}
    await world.client.create(RESOURCE_CLAIMS, body, namespace=world.namespace)


async def found(world: World, name: str) -> Object:
    got: Object = await world.client.get(RESOURCE_CLAIMS, name, namespace=world.namespace)
    return got


def results(claim: Object) -> list[Object]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or ())


async def test_claims_share_a_device_by_its_capacity(any_world: World) -> None:
    world = any_world
    shared = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}
    device_class = await offer(world, shared)
    history = await world.watch()
    async with world.scheduler():
        for number in range(3):
            await claim(world, f"claim-{number}", device_class, capacity={"requests": {"memory": "5Gi"}})
            await world.pod(f"pod-{number}", resourceClaims=[{"name": "gpu", "resourceClaimName": f"claim-{number}"}])
        await history.until_bound(2)
    given = [result for number in range(3) for result in results(await found(world, f"claim-{number}"))]
    assert [(each["device"], each["consumedCapacity"]) for each in given] == [("gpu-0", {"memory": "5Gi"})] * 2
    assert len({each["shareID"] for each in given}) == 2
    assert history.broken == []


async def test_the_binding_waits_for_the_driver(any_world: World) -> None:
    world = any_world
    conditions = {"bindsToNode": True, "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    device_class = await offer(world, {"name": "gpu-0", **conditions})
    history = await world.watch()

    async def says(*true: str) -> None:
        """The driver writes its conditions to the claim."""
        (result,) = results(await found(world, "claim"))
        told = [
            {"type": each, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            for each in true
        ]
        device = {key: result[key] for key in ("driver", "pool", "device")}
        body = {"status": {"devices": [{**device, "conditions": told}]}}
        await world.client.patch(RESOURCE_CLAIMS, "claim", body, PatchType.MERGE, namespace=world.namespace, subresource="status")

    async with world.scheduler():
        await claim(world, "claim", device_class)
        await world.pod("pod", resourceClaims=[{"name": "gpu", "resourceClaimName": "claim"}])
        first = await world.eventually(lambda: found(world, "claim"), results)
        assert results(first)[0]["bindingConditions"] == ["Attached"]
        assert first["status"]["allocation"]["allocationTimestamp"]
        assert history.bound() == []
        await says("Broken")
        await world.eventually(lambda: found(world, "claim"), lambda now: results(now) and not now["status"].get("devices"))
        await says("Attached")
        await history.until_bound(1)
    assert history.broken == []


async def test_devices_serve_an_extended_resource(any_world: World) -> None:
    world = any_world
    resource = f"example.com/{world.namespace}"
    await offer(world, {"name": "gpu-0"}, extendedResourceName=resource)
    history = await world.watch()
    resources = {"requests": {"cpu": "1", resource: "1"}, "limits": {resource: "1"}}
    async with world.scheduler(policy="kube-scheduler"):
        for number in range(2):
            await world.pod(f"pod-{number}", containers=[{"name": "main", "image": "x", "resources": resources}])
        await history.until_bound(1)
        (made,) = (await world.client.list(RESOURCE_CLAIMS, namespace=world.namespace)).items
        (bound,) = history.bound()
        pod = await world.get_pod(bound.partition("/")[2])
        (request,) = made["spec"]["devices"]["requests"]
        assert pod["status"]["extendedResourceClaimStatus"] == {
            "resourceClaimName": made["metadata"]["name"],
            "requestMappings": [{"containerName": "main", "resourceName": resource, "requestName": request["name"]}],
        }
        assert [each["device"] for each in results(made)] == ["gpu-0"]
        assert made["status"]["reservedFor"][0]["uid"] == made["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
        waiting = next(name for name in ("pod-0", "pod-1") if not bound.endswith(name))
        await world.eventually(
            lambda: world.get_pod(waiting),
            lambda now: any("cannot allocate all claims" in each.get("message", "") for each in now["status"].get("conditions") or ()),
        )
    assert [text for text in history.broken if resource not in text] == [], "the node itself reports none of the resource"
