"""Groups of coscheduling and of Kubernetes itself, on the servers that serve them: whole or not at all, and told so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.envtest.server import KubeApiServer
from tests.worlds.deploy.installing import install_on
from tests.worlds.live.cluster import World
from tests.worlds.live.conditions import conditions
from tests.worlds.live.priority_classes import classes
from tests.worlds.live.servers import real_world, serve_kinds, world_on

from navarch.kube.client import PatchType
from navarch.kube.errors import NotFound
from navarch.kube.resources import PODS, Resource

pytestmark = pytest.mark.live

COSCHEDULING = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups")
UPSTREAM = Resource("scheduling.k8s.io", "v1alpha2", "podgroups")
CONFIG_MAPS = Resource("", "v1", "configmaps")


async def gang(
    world: World,
    resource: Resource,
    name: str,
    members: int,
    pods: int | None = None,
    group: dict[str, Any] | None = None,
    **spec: Any,
) -> None:
    """A group that needs all its members, and its pods, each named in its API's way. `group`: further fields of the group."""
    upstream = resource == UPSTREAM
    policy: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": members}}} if upstream else {"minMember": members}
    body = {"apiVersion": resource.api_version, "kind": "PodGroup", "metadata": {"name": name}, "spec": {**policy, **(group or {})}}
    await world.client.create(resource, body, namespace=world.namespace)
    link: dict[str, Any] = {"labels": {"scheduling.x-k8s.io/pod-group": name}}
    if upstream:
        link = {"schedulingGroup": {"podGroupName": name}}
    for i in range(members if pods is None else pods):
        await world.pod(f"{name}-{i}", **link, **spec)


async def said(world: World, resource: Resource, name: str) -> dict[str, Any]:
    found = await world.client.get(resource, name, namespace=world.namespace)
    return dict(found.get("status") or {})


def is_scheduled(status: dict[str, Any]) -> bool:
    return [each["status"] for each in status.get("conditions", ())] == ["True"]


async def version(world: World, resource: Resource, name: str) -> str:
    found = await world.client.get(resource, name, namespace=world.namespace)
    return str(found["metadata"]["resourceVersion"])


async def pod_phase(world: World, name: str, phase: str) -> None:
    body = {"status": {"phase": phase}}
    await world.client.patch(PODS, name, body, PatchType.MERGE, namespace=world.namespace, subresource="status")


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def both(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """Either server with both APIs: a real one serves Kubernetes' groups itself, coscheduling's CRD is ours."""
    async with world_on(request, tmp_path, lambda client: serve_kinds(client, COSCHEDULING)) as made:
        yield made


async def test_a_gang_of_coscheduling_is_followed_from_its_first_pod_to_its_end(both: World) -> None:
    world = both
    await world.node(f"n0-{world.namespace}", cpu="4")
    history = await world.watch()
    owner = await world.client.create(CONFIG_MAPS, {"metadata": {"name": "launcher"}}, namespace=world.namespace)
    reference = {
        "apiVersion": "v1", "kind": "ConfigMap", "name": "launcher", "uid": owner["metadata"]["uid"], "controller": True,
    }  # fmt: skip
    async with world.scheduler():
        await gang(world, COSCHEDULING, "train", 4, pods=1)
        status = await world.eventually(lambda: said(world, COSCHEDULING, "train"), lambda found: found.get("phase") == "Pending")
        assert (status["running"], status["scheduled"]) == (0, 0) and "occupiedBy" not in status
        assert history.bound() == [], "one pod of four"
        for i in range(1, 4):
            pod = world.pod_body(f"train-{i}", "1", "", "navarch", labels={"scheduling.x-k8s.io/pod-group": "train"})
            pod["metadata"]["ownerReferences"] = [reference]
            await world.client.create(PODS, pod, namespace=world.namespace)
        await history.until_bound(4)
        status = await world.eventually(lambda: said(world, COSCHEDULING, "train"), lambda found: found.get("scheduled") == 4)
        assert status["phase"] == "Scheduling" and status["scheduleStartTime"]
        assert status["occupiedBy"] == f"{world.namespace}/launcher"
        for i in range(4):
            await pod_phase(world, f"train-{i}", "Running")
        await world.eventually(
            lambda: said(world, COSCHEDULING, "train"), lambda found: (found["phase"], found["running"]) == ("Running", 4)
        )
        for i in range(4):
            await pod_phase(world, f"train-{i}", "Succeeded")
        status = await world.eventually(lambda: said(world, COSCHEDULING, "train"), lambda found: found["phase"] == "Finished")
        assert status["succeeded"] == 4
    history.check([("train", 4)])


async def test_a_gang_of_kubernetes_is_scheduled_for_good(both: World) -> None:
    world = both
    await world.node(f"n0-{world.namespace}", cpu="4")
    history = await world.watch()
    async with world.scheduler():
        await gang(world, UPSTREAM, "train", 4)
        await history.until_bound(4)
        # It may have been told that it waits, when not all of its pods were there.
        found = await world.eventually(lambda: said(world, UPSTREAM, "train"), is_scheduled)
        (condition,) = found["conditions"]
        assert (condition["type"], condition["reason"]) == ("PodGroupScheduled", "Scheduled")
        ready = ("Normal", "Scheduled", "pod group is ready")
        await world.eventually(lambda: world.events("train"), lambda events: ready in events)
        await world.client.delete(PODS, "train-3", namespace=world.namespace, grace_period=0)
        # A larger pod instead, which finds no room: the group had started, and that is what the condition tells.
        await world.pod("train-4", cpu="3", schedulingGroup={"podGroupName": "train"})
        await world.eventually(lambda: world.get_pod("train-4"), lambda found: "PodScheduled" in conditions(found))
        again = await said(world, UPSTREAM, "train")
        assert again["conditions"] == [condition]
    history.check(lost=False)


@pytest.mark.parametrize("resource", [COSCHEDULING, UPSTREAM], ids=str)
async def test_a_gang_that_does_not_fit_waits_and_is_told_what_is_missing(both: World, resource: Resource) -> None:
    world = both
    await world.node(f"n0-{world.namespace}", cpu="3")
    history = await world.watch()
    async with world.scheduler():
        await gang(world, resource, "large", 4)
        events = await world.eventually(
            lambda: world.events("large"), lambda found: any("cannot start: needs 4 CPUs" in note for _, _, note in found)
        )
        assert ("Warning", "Unschedulable") in {(kind, reason) for kind, reason, _ in events}
        if resource == UPSTREAM:
            found = await world.eventually(
                lambda: said(world, resource, "large"),
                lambda found: any("cannot start: " in each["message"] for each in found.get("conditions", ())),
            )
            (condition,) = found["conditions"]
            assert (condition["type"], condition["status"], condition["reason"]) == (
                "PodGroupScheduled", "False", "Unschedulable",
            )  # fmt: skip
            assert condition["message"].startswith("cannot start: needs 4 CPUs, the cluster has 3. Next: ")
            assert condition["message"].endswith(". Next: request less, change its node selector, or add nodes")
        else:
            await world.eventually(lambda: said(world, resource, "large"), lambda found: found.get("phase") == "Scheduling")
        assert history.bound() == []
        await world.node(f"n1-{world.namespace}", cpu="1")
        await history.until_bound(4)
        if resource == UPSTREAM:
            await world.eventually(lambda: said(world, resource, "large"), is_scheduled)
        else:
            await world.eventually(lambda: said(world, resource, "large"), lambda found: found.get("scheduled") == 4)
    history.check([("large", 4)])


async def test_both_at_once_and_a_group_of_another_scheduler_is_left_alone(both: World) -> None:
    world = both
    await world.node(f"n0-{world.namespace}", cpu="8")
    history = await world.watch()
    async with world.scheduler():
        await gang(world, UPSTREAM, "theirs", 2, scheduler="default-scheduler")
        await gang(world, COSCHEDULING, "also-theirs", 2, scheduler="default-scheduler")
        await gang(world, COSCHEDULING, "one", 3)
        await gang(world, UPSTREAM, "two", 3)
        await history.until_bound(6)
        await world.eventually(lambda: said(world, COSCHEDULING, "one"), lambda found: found.get("scheduled") == 3)
        await world.eventually(lambda: said(world, UPSTREAM, "two"), is_scheduled)
        assert await said(world, UPSTREAM, "theirs") == {}
        assert await said(world, COSCHEDULING, "also-theirs") == {}
    history.check([("one", 3), ("two", 3)])


async def test_a_restart_reads_what_was_written_and_writes_nothing(both: World) -> None:
    world = both
    await world.node(f"n0-{world.namespace}", cpu="4")
    history = await world.watch()
    async with world.scheduler():
        await gang(world, COSCHEDULING, "one", 2)
        await gang(world, UPSTREAM, "two", 2)
        await gang(world, UPSTREAM, "large", 9)
        await history.until_bound(4)
        await world.eventually(lambda: said(world, COSCHEDULING, "one"), lambda found: found.get("scheduled") == 2)
        await world.eventually(lambda: said(world, UPSTREAM, "two"), is_scheduled)
        told = await world.eventually(lambda: said(world, UPSTREAM, "large"), lambda found: found.get("conditions"))
        since = told["conditions"][0]["lastTransitionTime"]
    before = [await version(world, r, name) for r, name in ((COSCHEDULING, "one"), (UPSTREAM, "two"))]
    async with world.scheduler():
        # Groups that were there at the start are looked at first: once a later one has its status they have had their turn.
        await gang(world, UPSTREAM, "later", 1, cpu="100m")
        await world.eventually(lambda: said(world, UPSTREAM, "later"), lambda found: found.get("conditions"))
        (told,) = (await said(world, UPSTREAM, "large"))["conditions"]
    assert [await version(world, r, name) for r, name in ((COSCHEDULING, "one"), (UPSTREAM, "two"))] == before
    assert (told["status"], told["reason"], told["lastTransitionTime"]) == ("False", "Unschedulable", since)
    history.check([("one", 2), ("two", 2), ("large", 9)])


@pytest.mark.parametrize("policy", ["kube-scheduler", "navarch"])
async def test_a_group_with_a_topology_constraint_keeps_to_one_rack(both: World, policy: str) -> None:
    world = both
    one, two = (f"{name}-{world.namespace}" for name in ("a", "b"))
    for name, rack, cpu in (("n0", one, "1"), ("n1", one, "1"), ("n2", two, "2"), ("n3", two, "1")):
        await world.node(f"{name}-{world.namespace}", cpu=cpu, rack=rack)
    history = await world.watch()
    constraint = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
    async with world.scheduler(policy=policy):
        await gang(world, UPSTREAM, "train", 3, group=constraint)
        await history.until_bound(3)
        await world.eventually(lambda: said(world, UPSTREAM, "train"), is_scheduled)
        await gang(world, UPSTREAM, "none", 3, group=constraint)
        found = await world.eventually(lambda: said(world, UPSTREAM, "none"), lambda found: found.get("conditions"))
        assert found["conditions"][0]["status"] == "False"
    nodes = {task.node.removesuffix(f"-{world.namespace}") for task in history.tasks.values() if task.name.startswith("train")}
    assert nodes == {"n2", "n3"}
    history.check([("train", 3), ("none", 3)])


async def test_a_group_preempts_as_a_whole_and_a_group_that_goes_together_goes_together(both: World) -> None:
    world = both
    for name in ("n0", "n1"):
        await world.node(f"{name}-{world.namespace}", cpu="2")
    await classes(world)
    high, low = (f"{name}-{world.namespace}" for name in ("high", "low"))
    history = await world.watch()
    async with world.scheduler(policy="kube-scheduler"):
        together = {"disruptionMode": "PodGroup", "priorityClassName": low}
        await gang(world, UPSTREAM, "whole", 2, cpu="2", priorityClassName=low, group=together)
        await history.until_bound(2)
        await gang(world, UPSTREAM, "urgent", 2, cpu="1", priorityClassName=high, group={"priorityClassName": high})
        await history.until_bound(2, "urgent")
        for name in ("whole-0", "whole-1"):
            await world.eventually(partial(_exists, world, name), lambda exists: not exists)
        await world.eventually(lambda: said(world, UPSTREAM, "urgent"), is_scheduled)


async def _exists(world: World, name: str) -> bool:
    try:
        return bool(await world.client.get(PODS, name, namespace=world.namespace))
    except NotFound:
        return False


async def test_the_rights_that_are_installed_suffice(kube_apiserver: KubeApiServer, tmp_path: Path, forbidden: list[str]) -> None:
    await asyncio.to_thread(install_on, kube_apiserver)
    account = await asyncio.to_thread(kube_apiserver.service_account, "navarch-system", "navarch")
    async with real_world(Path(kube_apiserver.kubeconfig), "gangs-with-rights", tmp_path) as world:
        await world.node(f"n0-{world.namespace}", cpu="4")
        history = await world.watch()
        async with world.scheduler(kubeconfig=account, lock_namespace="navarch-system"):
            await gang(world, COSCHEDULING, "one", 2)
            await gang(world, UPSTREAM, "two", 2)
            await history.until_bound(4)
            await world.eventually(lambda: said(world, COSCHEDULING, "one"), lambda found: found.get("scheduled") == 2)
            await world.eventually(lambda: said(world, UPSTREAM, "two"), is_scheduled)
    assert forbidden == []
