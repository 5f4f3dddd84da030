"""A live scheduler with kube-scheduler's extenders: filter, scores, and an extender that binds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from aiohttp import web
from tests.worlds.kube.json_server import serving
from tests.worlds.live.cluster import World

pytestmark = pytest.mark.live


def policy(world: World, **fields: Any) -> str:
    file = world.folder / "kube.yaml"
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"httpTimeout": "60s", "nodeCacheCapable": True, **fields}],
    }
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(file)


async def test_an_extender_filters_and_binds(any_world: World) -> None:
    world = any_world
    names = [f"first-{world.namespace}", f"second-{world.namespace}"]
    for name in names:
        await world.node(name, cpu="8")
    history = await world.watch()
    bound: list[str] = []

    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        if request.path == "/filter":
            return web.json_response({"nodenames": [names[1]] if names[1] in body["NodeNames"] else []})
        await world.client.bind(body["PodNamespace"], body["PodName"], uid=body["PodUID"], node=body["Node"])
        bound.append(body["PodName"])
        return web.json_response({})

    async with serving(answer) as served:
        chosen = policy(world, urlPrefix=served.address, filterVerb="filter", bindVerb="bind")
        async with world.scheduler(policy=chosen):
            await world.pod("a", cpu="1")
            await world.pod("b", cpu="1")
            await history.until_bound(2)
    assert {task.node for task in history.tasks.values()} == {names[1]}
    assert sorted(bound) == ["a", "b"]


async def test_an_extender_that_does_not_bind_costs_the_pod_its_place(world: World) -> None:
    await world.node("n1", cpu="8")
    history = await world.watch()

    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        return web.json_response({"error": "no card is free"})

    async with serving(answer) as served:
        managed = [{"name": "example.com/fpga", "ignoredByScheduler": True}]
        chosen = policy(world, urlPrefix=served.address, bindVerb="bind", managedResources=managed)
        async with world.scheduler(policy=chosen):
            resources = {"requests": {"cpu": "1", "example.com/fpga": "1"}, "limits": {"example.com/fpga": "1"}}
            await world.pod("special", containers=[{"name": "c", "image": "i", "resources": resources}])
            await world.eventually(lambda: world.get_pod("special"), lambda pod: "no card is free" in str(pod["status"]))
            await world.pod("plain", cpu="1")
            await history.until_bound(1)
    assert [task.name for task in history.tasks.values() if task.node] == ["plain"]
