"""Nodes that an autoscaler buys by what waiting pods say: what they need, and nothing in vain (docs/autoscaling.md)."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.worlds.live.autoscaler import ClusterAutoscaler
from tests.worlds.live.cluster import QUEUES, World
from tests.worlds.live.conditions import conditions

from navarch.kube.resources import PODS

pytestmark = pytest.mark.live

POLICIES = pytest.mark.parametrize("policy", ["navarch", "volcano"])


async def said(world: World) -> Counter[str]:
    """The reasons of the pods without a node. A pod with a node counts as `bound`."""
    pods = (await world.client.list(PODS, namespace=world.namespace)).items
    return Counter(
        "bound" if pod["spec"].get("nodeName") else conditions(pod).get("PodScheduled", {}).get("reason", "") for pod in pods
    )


@POLICIES
async def test_a_gang_with_room_for_some_of_its_pods_gets_the_nodes_that_it_needs(any_world: World, policy: str) -> None:
    world = any_world
    await world.node(f"first-{world.namespace}", cpu="20")
    autoscaler = ClusterAutoscaler(world, cpu=12)
    async with world.scheduler(policy=policy):
        await world.gang("gang", 8, cpu="6")
        await world.eventually(lambda: said(world), lambda found: found == {"Unschedulable": 8})
        await autoscaler.scan()
        await world.eventually(lambda: said(world), lambda found: found == {"bound": 8})
        assert await autoscaler.scan() == 3, "three pods had room, and two fit on each new node"


@POLICIES
async def test_a_limit_buys_what_fits_under_it(any_world: World, policy: str) -> None:
    world = any_world
    limited = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": f"limited-{world.namespace}"}}
    queue = await world.clusterwide(QUEUES, {**limited, "spec": {"weight": 1, "capability": {"cpu": "4"}}})
    await world.node(f"small-{world.namespace}", cpu="1")
    autoscaler = ClusterAutoscaler(world, cpu=4)
    async with world.scheduler(policy=policy) as scheduler:
        for number in range(10):
            body = world.pod_body(f"p{number}", "2", "", "navarch")
            body["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": queue["metadata"]["name"]}
            await world.client.create(PODS, body, namespace=world.namespace)
        await world.eventually(lambda: said(world), lambda found: found == {"Unschedulable": 2, "QueueLimit": 8})
        assert await autoscaler.scan() == 1
        await world.eventually(lambda: said(world), lambda found: found == {"bound": 2, "QueueLimit": 8})
        before = scheduler.core.last_cycle
        scheduler.queue.activate_all()
        scheduler.cycle_loop.trigger()

        async def last() -> object:
            return scheduler.core.last_cycle

        await world.eventually(last, lambda cycle: cycle is not before)
        assert await autoscaler.scan() == 1, "the others stay as they are when they are tried again"


@POLICIES
async def test_missing_objects_buy_nothing(any_world: World, policy: str) -> None:
    world = any_world
    await world.node(f"small-{world.namespace}", cpu="1")
    autoscaler = ClusterAutoscaler(world, cpu=8)
    async with world.scheduler(policy=policy):
        await world.group("lost", 2, queue=f"nowhere-{world.namespace}")
        await world.group("few", 3)
        for group in ("none", "lost", "few"):
            for number in range(2):
                await world.pod(f"{group}-{number}", cpu="6", group=group)
        expected = {"PodGroupNotFound": 2, "QueueNotFound": 2, "NotEnoughTasks": 2}
        await world.eventually(lambda: said(world), lambda found: found == expected)
        assert await autoscaler.scan() == 0
        await world.pod("few-2", cpu="6", group="few")
        await world.eventually(lambda: said(world), lambda found: found["Unschedulable"] == 3)
        await autoscaler.scan()
        await world.eventually(lambda: said(world), lambda found: found["bound"] == 3)
        assert await autoscaler.scan() == 3
