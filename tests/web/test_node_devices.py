"""Devices of drivers and NUMA zones on the page of a node."""

from __future__ import annotations

from typing import Any

from tests.worlds.device_objects import claim, device_class, exactly, slice_of
from tests.worlds.live.claims import DEVICE_CLASSES, RESOURCE_CLAIMS, SLICES
from tests.worlds.live.cluster import World
from tests.worlds.web import dashboard

from navarch.kube.client import PatchType
from navarch.kube.resources import Resource

NUMA = Resource("nodeinfo.volcano.sh", "v1alpha1", "numatopologies", namespaced=False)


async def test_devices_of_a_driver_show_their_pods_and_claims(world: World) -> None:
    await world.node("n1")
    await world.node("n2")
    await world.client.create(DEVICE_CLASSES, device_class())
    for name in ("n1", "n2"):
        await world.client.create(SLICES, slice_of(name, "A100", "A100", "A100"))
    pod = await world.pod("user", nodeName="n1", resourceClaims=[{"name": "c", "resourceClaimName": "taken"}])
    for name, device, users in (
        ("taken", "g0", [{"resource": "pods", "name": "user", "uid": pod["metadata"]["uid"]}]),
        ("kept", "g2", []),
    ):
        body = claim(name, exactly(), allocated="n1")
        await world.client.create(RESOURCE_CLAIMS, body, namespace="default")
        body["status"]["allocation"]["devices"]["results"][0]["device"] = device
        status: dict[str, Any] = {"status": {**body["status"], "reservedFor": users}}
        await world.client.patch(RESOURCE_CLAIMS, name, status, PatchType.MERGE, namespace="default", subresource="status")
    async with dashboard(world) as web:
        found = await web.until("nodes/n1", lambda found: [each["use"] for each in found["devices"]] == ["whole", "free", "held"])
        first, second, third = found["devices"]
        assert (first["resource"], first["pool"], first["name"], first["about"]) == ("d", "n1", "g0", "A100")
        assert first["pods"] == [{"pod": "default/user", "part": 1}] and first["claims"] == ["default/taken"]
        assert (second["pods"], second["claims"]) == ([], [])
        assert (third["pods"], third["claims"]) == ([], ["default/kept"])
        assert [each["use"] for each in (await web.get("nodes/n2"))["devices"]] == ["free"] * 3


async def test_zones_come_from_a_numatopology(world: World) -> None:
    await world.node("n1")
    detail = {str(cpu): {"numa": cpu // 4, "socket": 0, "core": cpu} for cpu in range(8)}
    spec = {
        "policies": {"CPUManagerPolicy": "static"},
        "numares": {"cpu": {"allocatable": "0-1,4-7", "capacity": 8}},
        "cpuDetail": detail,
    }
    await world.client.create(NUMA, {"apiVersion": NUMA.api_version, "kind": "Numatopology", "metadata": {"name": "n1"}, "spec": spec})
    async with dashboard(world) as web:
        assert (await web.get("nodes/n1"))["zones"] == [
            {"name": "node-0", "allocatable": {"cpu": 4}, "used": {"cpu": 2}},
            {"name": "node-1", "allocatable": {"cpu": 4}, "used": {"cpu": 0}},
        ]
