"""Before the binding: volumes and devices. The controllers that would bind and provision them are played by the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from tests.worlds.live.claims import CLAIMS, CLASSES, DEVICE_CLASSES, RESOURCE_CLAIMS, SELECTED, SLICES, VOLUMES, with_claim
from tests.worlds.live.cluster import World
from tests.worlds.live.history import History

from navarch.kube.client import PatchType
from navarch.kube.resources import PODS

pytestmark = pytest.mark.live


async def storage_class(world: World, provisioner: str) -> None:
    body = {"metadata": {"name": "late"}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    await world.client.create(CLASSES, body)


async def claim(world: World, name: str) -> None:
    spec = {"storageClassName": "late", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await world.client.create(CLAIMS, {"metadata": {"name": name}, "spec": spec}, namespace="default")


async def bind_claim(world: World, name: str, volume: str) -> None:
    """What the volume controller does."""
    body = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": volume}}
    await world.client.patch(CLAIMS, name, body, PatchType.MERGE, namespace="default")


async def volume(world: World, name: str, node: str) -> None:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    spec = {
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "hostPath": {"path": "/tmp"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    await world.client.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})
    available = {"status": {"phase": "Available"}}
    await world.client.patch(VOLUMES, name, available, PatchType.MERGE, subresource="status")


@asynccontextmanager
async def waiting_for_its_volume(world: World) -> AsyncIterator[History]:
    """A pod that was promised n0 and is not bound before its claim `data` is."""
    await storage_class(world, "example.com/disks")
    await claim(world, "data")
    history = await world.watch()
    async with world.scheduler():
        await world.pod("a", **with_claim("data"))
        await world.eventually(
            lambda: world.client.get(CLAIMS, "data", namespace="default"),
            lambda found: (found["metadata"].get("annotations") or {}).get(SELECTED) == "n0",
        )
        yield history


async def test_a_claim_is_given_a_node_and_the_pod_waits_for_its_volume(world: World) -> None:
    await world.node("n0", **{"kubernetes.io/hostname": "n0"})
    async with waiting_for_its_volume(world) as history:
        assert history.bound() == []
        await volume(world, "made", "n0")
        await bind_claim(world, "data", "made")
        await history.until_bound(1)
    history.check()


async def test_a_pod_does_not_go_where_the_volume_that_its_claim_got_cannot_be_reached(world: World) -> None:
    await world.node("n0", cpu="8", **{"kubernetes.io/hostname": "n0"})
    async with waiting_for_its_volume(world) as history:
        await volume(world, "elsewhere", "n1")
        await bind_claim(world, "data", "elsewhere")
        await world.eventually(
            lambda: world.get_pod("a"),
            lambda found: any(c["type"] == "PodScheduled" for c in found["status"].get("conditions") or ()),
        )
        assert history.bound() == []
        await world.node("n1", **{"kubernetes.io/hostname": "n1"})
        await history.until_bound(1)
    assert set(history.node_of.values()) == {"n1"}


async def test_a_volume_that_lies_around_is_taken_where_it_can_be_reached(world: World) -> None:
    await world.node("n0", **{"kubernetes.io/hostname": "n0"})
    await world.node("n1", **{"kubernetes.io/hostname": "n1"})
    await storage_class(world, "kubernetes.io/no-provisioner")
    await volume(world, "lies-around", "n1")
    await claim(world, "data")
    history = await world.watch()
    async with world.scheduler():
        await world.pod("a", **with_claim("data"))
        found = await world.eventually(lambda: world.client.get(VOLUMES, "lies-around"), lambda found: "claimRef" in found["spec"])
        assert found["spec"]["claimRef"]["name"] == "data"
        await bind_claim(world, "data", "lies-around")
        await history.until_bound(1)
    assert set(history.node_of.values()) == {"n1"}


async def test_volumes_that_do_not_come_are_given_up_and_the_node_is_taken_back(world: World) -> None:
    await world.node("n0")
    await storage_class(world, "example.com/disks")
    await claim(world, "data")
    history = await world.watch()
    async with world.scheduler(volume_timeout=0.5):
        await world.pod("a", **with_claim("data"))
        pod = await world.eventually(
            lambda: world.get_pod("a"),
            lambda found: any("were not bound within" in c.get("message", "") for c in found["status"].get("conditions") or ()),
        )
        assert "nodeName" not in pod["spec"]
        await world.eventually(
            lambda: world.client.get(CLAIMS, "data", namespace="default"),
            lambda found: SELECTED not in (found["metadata"].get("annotations") or {}),
        )
    assert history.bound() == []


async def test_a_gang_waits_for_the_volumes_of_all_and_none_of_it_is_bound_without_them(world: World) -> None:
    await world.node("n0", **{"kubernetes.io/hostname": "n0"})
    await storage_class(world, "example.com/disks")
    await claim(world, "data")
    history = await world.watch()
    selected = lambda: world.client.get(CLAIMS, "data", namespace="default")  # noqa: E731
    told = lambda found: any(c["type"] == "PodScheduled" for c in found["status"].get("conditions") or ())  # noqa: E731
    await world.group("gang", 3)
    await world.pod("gang-0", group="gang", **with_claim("data"))
    await world.pod("gang-1", group="gang")
    await world.pod("gang-2", group="gang")
    async with world.scheduler(volume_timeout=0.5):
        for name in ("gang-0", "gang-1", "gang-2"):
            await world.eventually(partial(world.get_pod, name), told)
        assert history.bound() == []
    async with world.scheduler():
        await world.eventually(selected, lambda found: (found["metadata"].get("annotations") or {}).get(SELECTED) == "n0")
        assert history.bound() == []
        await volume(world, "made", "n0")
        await bind_claim(world, "data", "made")
        await history.until_bound(3)
    history.check([("gang", 3)])


async def test_a_volume_that_is_not_bound_in_time_is_free_again(world: World) -> None:
    await world.node("n0", **{"kubernetes.io/hostname": "n0"})
    await storage_class(world, "kubernetes.io/no-provisioner")
    await volume(world, "lies-around", "n0")
    await claim(world, "data")
    history = await world.watch()
    async with world.scheduler(volume_timeout=2.0):  # long enough to be seen taken
        await world.pod("a", **with_claim("data"))
        found = lambda: world.client.get(VOLUMES, "lies-around")  # noqa: E731
        await world.eventually(found, lambda body: "claimRef" in body["spec"])
        body = await world.eventually(found, lambda body: "claimRef" not in body["spec"])
        assert "pv.kubernetes.io/bound-by-controller" not in (body["metadata"].get("annotations") or {})
    assert history.bound() == []


async def devices(world: World, node: str, count: int) -> None:
    config = [{"opaque": {"driver": "gpu.example.com", "parameters": {"mode": "exclusive"}}}]
    await world.clusterwide(DEVICE_CLASSES, {"metadata": {"name": f"gpu-{world.namespace}"}, "spec": {"config": config}})
    spec = {
        "driver": "gpu.example.com",
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{i}"} for i in range(count)],
    }
    await world.clusterwide(SLICES, {"metadata": {"name": f"slice-{node}"}, "spec": spec})


async def device_claim(world: World, name: str) -> None:
    request = {"name": "one", "exactly": {"deviceClassName": f"gpu-{world.namespace}", "count": 1, "allocationMode": "ExactCount"}}
    config = [{"requests": ["one"], "opaque": {"driver": "gpu.example.com", "parameters": {"sharing": name}}}]
    body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request], "config": config}}}
    await world.client.create(RESOURCE_CLAIMS, body, namespace=world.namespace)


async def test_devices_are_allocated_before_the_pod_is_bound_and_to_one_pod_each(any_world: World) -> None:
    world = any_world
    node = f"n-{world.namespace}"
    await world.node(node, cpu="8")
    await devices(world, node, 2)
    history = await world.watch()
    async with world.scheduler():
        for i in range(3):
            await device_claim(world, f"claim-{i}")
            await world.pod(f"pod-{i}", resourceClaims=[{"name": "gpu", "resourceClaimName": f"claim-{i}"}])
        await history.until_bound(2)
        found = (await world.client.list(RESOURCE_CLAIMS, namespace=world.namespace)).items
        allocated = [
            (result["device"], each["status"]["reservedFor"][0]["name"])
            for each in found
            if each.get("status", {}).get("allocation")
            for result in each["status"]["allocation"]["devices"]["results"]
        ]
        assert len({device for device, _ in allocated}) == len(allocated) == 2
        assert sorted(f"{world.namespace}/{pod}" for _, pod in allocated) == history.bound()
        for each in found:
            if each.get("status", {}).get("allocation"):
                told = each["status"]["allocation"]["devices"]["config"]
                assert [(one["source"], one["requests"], one["opaque"]["parameters"]) for one in told] == [
                    ("FromClass", ["one"], {"mode": "exclusive"}),
                    ("FromClaim", ["one"], {"sharing": each["metadata"]["name"]}),
                ]
                terms = each["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
                assert terms[0]["matchFields"][0]["values"] == [node]
        bound = history.bound()[0].partition("/")[2]
        await world.client.delete(PODS, bound, namespace=world.namespace, grace_period=0)
        await world.client.patch(
            RESOURCE_CLAIMS,
            f"claim-{bound[-1]}",
            {"status": {"allocation": None, "reservedFor": None}},
            PatchType.MERGE,
            namespace=world.namespace,
            subresource="status",
        )
        await history.until(lambda: len(history.node_of) == 3, "the third pod is bound")
    assert history.broken == []
