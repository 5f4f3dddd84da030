"""A device that a pod holds may be in no slice any more: its driver was restarted, or the device is broken. Cycles go on."""

from __future__ import annotations

from tests.worlds.live_core.cluster import CoreCluster


def test_a_pod_that_holds_a_device_that_is_gone_can_be_evicted() -> None:
    world = CoreCluster("kai")
    world.queue("dep")
    world.queue("a", parent="dep")
    world.node("n", cpu=1, memory="64Gi")
    world.put("DeviceClass", {"metadata": {"name": "dev"}, "spec": {"selectors": [{"cel": {"expression": 'device.driver == "d"'}}]}})
    request = {"name": "r", "exactly": {"deviceClassName": "dev", "allocationMode": "ExactCount", "count": 1}}
    for name in ("dev-low", "dev-high"):
        metadata = {"namespace": "ns", "name": name, "uid": name}
        world.put("ResourceClaim", {"metadata": metadata, "spec": {"devices": {"requests": [request]}}})

    def offers(device: str, generation: int) -> None:
        pool = {"name": "n", "generation": generation, "resourceSliceCount": 1}
        spec = {"driver": "d", "nodeName": "n", "pool": pool, "devices": [{"name": device}]}
        world.put("ResourceSlice", {"metadata": {"name": "n"}, "spec": spec})

    offers("old", 1)
    for name in ("low", "high"):
        world.gang(name, "a", 1, priority_class=name)
        claims = [{"name": "c", "resourceClaimName": f"dev-{name}"}]
        world.pod(f"{name}-0", {"cpu": "1"}, group=name, queue="a", priority=name, resourceClaims=claims)
        world.settle()
        offers("new", 2)
    assert list(world.leaving) == ["low-0"]
