"""Every dialect's groups start whole and get their status where their API keeps it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.live.cluster import World
from tests.worlds.live.conditions import conditions

from navarch.kube.client import PatchType
from navarch.kube.resources import PODS, Resource

pytestmark = pytest.mark.live

OLD = Resource("scheduling.incubator.k8s.io", "v1alpha1", "podgroups")
NEWER = Resource("scheduling.sigs.dev", "v1alpha2", "podgroups")
CONFIG_MAPS = Resource("", "v1", "configmaps")
VOLCANO = Resource("scheduling.volcano.sh", "v1beta1", "podgroups")


async def group(world: World, resource: Resource, members: int) -> None:
    body = {
        "apiVersion": resource.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "gang"},
        "spec": {"minMember": members, "queue": "default"},
    }
    await world.client.create(resource, body, namespace="default")
    for i in range(members):
        await world.pod(f"gang-{i}", group="gang")


@pytest.mark.parametrize("resource", [OLD, NEWER, VOLCANO], ids=str)
async def test_a_group_runs_and_its_counts_follow_its_pods(world: World, resource: Resource) -> None:
    await world.node("n0")
    history = await world.watch()

    async def status() -> dict[str, Any]:
        found = await world.client.get(resource, "gang", namespace="default")
        return dict(found.get("status") or {})

    async with world.scheduler():
        await group(world, resource, 2)
        await history.until_bound(2)
        await world.eventually(status, lambda found: found.get("phase") == "Running")
        for name, phase in (("gang-0", "Running"), ("gang-1", "Succeeded")):
            body = {"status": {"phase": phase}}
            await world.client.patch(PODS, name, body, PatchType.MERGE, namespace="default", subresource="status")
        found = await world.eventually(status, lambda found: (found.get("running"), found.get("succeeded")) == (1, 1))
        assert found["phase"] == "Running"
    history.check([("gang", 2)])


@pytest.mark.parametrize("resource", [OLD, VOLCANO], ids=str)
async def test_a_group_that_waits_is_pending_in_the_words_of_its_api(world: World, resource: Resource) -> None:
    await world.node("n0", cpu="1")
    await world.watch()
    async with world.scheduler():
        await group(world, resource, 2)
        # kube-batch knows no admission to a queue.
        phase = "Pending" if resource == OLD else "Inqueue"
        await world.eventually(
            lambda: world.client.get(resource, "gang", namespace="default"),
            lambda found: "Unschedulable" in conditions(found) and found["status"]["phase"] == phase,
        )


async def test_a_pod_says_itself_how_many_of_its_like_it_needs(world: World) -> None:
    """kube-batch's way without a group: the minimum in an annotation, the controller as the group."""
    await world.node("n0", cpu="2")
    history = await world.watch()
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "together"}}
    made = await world.client.create(CONFIG_MAPS, body, namespace="default")
    uid = made["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "together", "uid": uid, "controller": True}
    async with world.scheduler():
        for i in range(3):
            pod = world.pod_body(f"together-{i}", "1", "", "navarch")
            pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-min-member": "3"}
            pod["metadata"]["ownerReferences"] = [owner]
            await world.client.create(PODS, pod, namespace="default")
        await world.eventually(lambda: world.get_pod("together-0"), lambda found: "PodScheduled" in conditions(found))
        assert history.bound() == []
        await world.node("n1", cpu="1")
        await history.until_bound(3)
    history.check([("together", 3)])
