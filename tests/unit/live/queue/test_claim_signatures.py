"""Pods that wait for devices, each with a claim of its own from a template: they are one equivalence class."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.live_core.cluster import POLICIES, CoreCluster

from navarch.live.queue.claim_signatures import claim_signature, releases_devices
from navarch.live.queue.equivalence_classes import PROBE
from navarch.model.spec import Shape, TaskSpec

CLASS = {"metadata": {"name": "dev"}, "spec": {"selectors": [{"cel": {"expression": 'device.driver == "d"'}}]}}


def world_of(policy: str, devices: int) -> CoreCluster:
    """One node with some devices."""
    world = CoreCluster(policy)
    top = "dep" if policy == "kai" else ""
    if top:
        world.queue(top)
    world.queue("a", parent=top)
    world.node("n", cpu=200, memory="64Gi")
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": "n", "pool": pool, "devices": [{"name": f"g{number}"} for number in range(devices)]}
    world.put("DeviceClass", CLASS)
    world.put("ResourceSlice", {"metadata": {"name": "n"}, "spec": spec})
    return world


def claim(pod: str, *, owner: str = "", **more: Any) -> dict[str, Any]:
    asked = {"deviceClassName": "dev", "allocationMode": "ExactCount", "count": 1}
    owners = [{"kind": "Pod", "name": owner or pod, "uid": owner or pod, "controller": True}]
    metadata = {"namespace": "ns", "name": f"dev-{pod}", "uid": f"dev-{pod}", "ownerReferences": owners, **more}
    return {"metadata": metadata, "spec": {"devices": {"requests": [{"name": "r", "exactly": asked}]}}}


def pod(world: CoreCluster, name: str) -> None:
    world.pod(name, {"cpu": "1"}, queue="a", resourceClaims=[{"name": "own", "resourceClaimName": f"dev-{name}"}])


@pytest.mark.parametrize("policy", ["navarch", "kube-scheduler"])
def test_a_freed_device_activates_few_jobs_and_goes_to_the_oldest(policy: str) -> None:
    world = world_of(policy, devices=1)
    names = [f"p{number:03d}" for number in range(1 + 4 * PROBE)]
    for name in names:
        world.put("ResourceClaim", claim(name))
        pod(world, name)
    world.settle()
    assert world.bound == names[:1]
    assert [len(each) for each in world.scheduling_queue.classes] == [4 * PROBE]
    world.end(names[0])
    assert len(world.scheduling_queue) >= PROBE
    world.settle()
    assert world.bound == names[:2]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_late_claim_activates_its_pod(policy: str) -> None:
    world = world_of(policy, devices=2)
    for name in ("p1", "p2", "p3"):
        pod(world, name)
    world.settle()
    assert world.bound == []
    for name in ("p3", "p2"):
        world.put("ResourceClaim", claim(name))
        world.settle()
    assert world.bound == ["p3", "p2"]


def test_a_changed_claim_activates_its_pod_and_the_oldest_job_of_each_class() -> None:
    world = world_of("navarch", devices=0)
    for name in ("p1", "p2", "p3"):
        world.put("ResourceClaim", claim(name))
        pod(world, name)
    world.settle()
    world.put("ResourceClaim", claim("p3", labels={"team": "t"}))
    assert world.scheduling_queue.inactive() == ["ns/pod/p2"]


def test_pods_are_alike_if_their_claims_say_the_same_and_were_made_for_them() -> None:
    def waiting(name: str) -> TaskSpec:
        return TaskSpec(uid=name, namespace="ns", name=name, job="j", shape=Shape(claims=(("own", f"dev-{name}"),)))

    def of(name: str, found: dict[str, Any]) -> object:
        return claim_signature(waiting(name), {("ns", f"dev-{name}"): found})

    one = of("p1", claim("p1"))
    assert one is not None
    assert one == of("p2", claim("p2"))
    assert one != of("p2", claim("p2", labels={"team": "t"}))
    assert one != of("p2", claim("p2") | {"spec": {"devices": {"requests": []}}})
    assert of("p2", claim("p2", owner="p1")) is None
    assert of("p2", claim("p2", deletionTimestamp="2026-01-01T00:00:00Z")) is None
    assert of("p2", claim("p2") | {"status": {"allocation": {"devices": {}}}}) is None
    assert of("p3", {**claim("p3"), "status": {"reservedFor": [{"uid": "p1"}]}}) is None
    assert claim_signature(waiting("p2"), {}) is None


def test_devices_are_free_when_the_allocation_goes() -> None:
    has: dict[str, Any] = {"status": {"allocation": {"devices": {}}}}
    lacks: dict[str, Any] = {"status": {}}
    assert [
        releases_devices(has, lacks),
        releases_devices(has, None),
        releases_devices(lacks, None),
        releases_devices(None, has),
        releases_devices(has, has),
    ] == [
        True,
        True,
        False,
        False,
        False,
    ]
