"""Making room: the Eviction API, disruption budgets, the marks that a victim carries, the node promised to the winner."""

from __future__ import annotations

import pytest
from tests.worlds.live.cluster import BUDGETS, World
from tests.worlds.live.conditions import conditions
from tests.worlds.live.priority_classes import classes

from navarch.kube.client import PatchType
from navarch.kube.resources import PODS

pytestmark = pytest.mark.live
VOLCANO_WITH_PREEMPT = """
compat: volcano
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins:
  - {name: overcommit}
  - {name: drf, enablePreemptable: false}
  - {name: predicates}
  - {name: proportion}
  - {name: nodeorder}
  - {name: binpack}
"""
"""The preset volcano has the actions of Volcano's default file, which evicts nothing. This is the file of its chart with `preempt`."""


async def test_a_higher_pod_evicts_a_lower_one_and_takes_its_place(any_world: World) -> None:
    world = any_world
    await classes(world)
    await world.node("n0", cpu="2")
    history = await world.watch()
    async with world.scheduler():
        await world.gang("low", 2, priorityClassName=f"low-{world.namespace}")
        await history.until_bound(2, "low")
        await world.pod("high", cpu="2", priorityClassName=f"high-{world.namespace}")
        await history.until_bound(1, "high")
        said = await world.eventually(lambda: world.events("low-0"), lambda said: any(r == "Evicted" for _, r, _ in said))
        assert any(kind == "Warning" for kind, reason, _ in said if reason == "Evicted")
    assert history.broken == []
    assert history.evicted == {f"{world.namespace}/low-0", f"{world.namespace}/low-1"}


async def test_a_victim_is_marked_before_it_goes(any_world: World) -> None:
    world = any_world
    await classes(world)
    await world.node("n0", cpu="1")
    history = await world.watch()
    async with world.scheduler():
        await world.pod("low", priorityClassName=f"low-{world.namespace}", terminationGracePeriodSeconds=3600)
        await history.until_bound(1)
        await world.pod("high", priorityClassName=f"high-{world.namespace}")
        await history.until(lambda: any(task.deleting for task in history.tasks.values()), "the victim is going")
        low = await world.get_pod("low")
        assert conditions(low)["DisruptionTarget"]["status"] == "True"
        high = await world.eventually(lambda: world.get_pod("high"), lambda found: found["status"].get("nominatedNodeName") == "n0")
        assert "nodeName" not in high["spec"]
        await world.client.delete(PODS, "low", namespace=world.namespace, grace_period=0)
        await history.until_bound(1, "high")
    assert history.broken == []


async def protect(world: World, app: str, *pods: str) -> None:
    """A budget that allows no disruption of these pods, and the pods running."""
    budget = {
        "metadata": {"name": f"keep-{app}", "namespace": world.namespace},
        "spec": {"minAvailable": len(pods), "selector": {"matchLabels": {"app": app}}},
    }
    await world.client.create(BUDGETS, budget, namespace=world.namespace)
    running = {"status": {"phase": "Running"}}
    for name in pods:
        await world.client.patch(PODS, name, running, PatchType.MERGE, namespace=world.namespace, subresource="status")


async def test_a_pod_that_a_budget_protects_is_no_victim_of_the_eviction_api(any_world: World) -> None:
    world = any_world
    await classes(world)
    await world.node("n0", cpu="2")
    history = await world.watch()
    async with world.scheduler():
        await world.pod("kept", priorityClassName=f"low-{world.namespace}", labels={"app": "kept"})
        await world.pod("free", priorityClassName=f"low-{world.namespace}")
        await history.until_bound(2)
        await protect(world, "kept", "kept")
        await world.pod("high", priorityClassName=f"high-{world.namespace}")
        await history.until_bound(1, "high")
        assert history.evicted == {f"{world.namespace}/free"}
        await world.pod("higher", priorityClassName=f"high-{world.namespace}")
        await world.eventually(lambda: world.get_pod("higher"), lambda found: "PodScheduled" in conditions(found))
        assert history.evicted == {f"{world.namespace}/free"}
        assert "DisruptionTarget" not in conditions(await world.get_pod("kept"))
        await world.client.delete(BUDGETS, "keep-kept", namespace=world.namespace)
        await history.until_bound(1, "higher")
    assert history.broken == []


@pytest.mark.parametrize("system", ["kube-scheduler", "volcano"])
async def test_a_critical_pod_gets_its_room_although_a_budget_covers_every_victim(any_world: World, system: str) -> None:
    """As those systems do: victims are deleted, and a budget steers their choice only."""
    world = any_world
    await classes(world)
    await world.node("n0", cpu="2")
    policy = system
    if system == "volcano":
        (world.folder / "policy.yaml").write_text(VOLCANO_WITH_PREEMPT, encoding="utf-8")
        policy = str(world.folder / "policy.yaml")
    history = await world.watch()
    async with world.scheduler(policy=policy):
        for name in ("low-0", "low-1"):
            body = world.pod_body(name, "1", "", "navarch", priorityClassName=f"low-{world.namespace}", labels={"app": "low"})
            body["metadata"]["annotations"] = {"volcano.sh/preemptable": "true"}
            await world.client.create(PODS, body, namespace=world.namespace)
        await history.until_bound(2)
        await protect(world, "low", "low-0", "low-1")
        await world.pod("high", priorityClassName=f"high-{world.namespace}")
        await history.until_bound(1, "high")
        assert len(history.evicted) == 1
    assert history.broken == []
