"""Making room: the Eviction API, disruption budgets, the marks that a victim carries, the node promised to the winner."""

from __future__ import annotations

import asyncio

import pytest
from tests.worlds.live.cluster import BUDGETS, LASTING, World
from tests.worlds.live.conditions import conditions
from tests.worlds.live.priority_classes import classes

from navarch.kube.client import PatchType
from navarch.kube.errors import TooManyRequests
from navarch.kube.resources import PODS
from navarch.kube.write.pool import Done, Outcome, Write

pytestmark = pytest.mark.live


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


async def test_a_disruption_budget_is_waited_for(any_world: World) -> None:
    world = any_world
    await classes(world)
    await world.node("n0", cpu="1")
    history = await world.watch()
    refusals: list[Outcome] = []
    async with world.scheduler() as scheduler:
        submit = scheduler.pool.submit

        def listening(write: Write, done: Done) -> None:
            def heard(outcome: Outcome) -> None:
                if isinstance(outcome, TooManyRequests) and write.path.endswith("/low/eviction"):
                    refusals.append(outcome)
                done(outcome)

            submit(write, heard)

        scheduler.pool.submit = listening  # type: ignore[method-assign]
        await world.pod("low", priorityClassName=f"low-{world.namespace}", labels={"app": "low"})
        await history.until_bound(1)
        budget = {
            "metadata": {"name": "keep", "namespace": world.namespace},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "low"}}},
        }
        await world.client.create(BUDGETS, budget, namespace=world.namespace)
        running = {"status": {"phase": "Running"}}
        await world.client.patch(PODS, "low", running, PatchType.MERGE, namespace=world.namespace, subresource="status")
        await world.pod("high", priorityClassName=f"high-{world.namespace}")
        low = await world.eventually(lambda: world.get_pod("low"), lambda found: "DisruptionTarget" in conditions(found))
        mark = conditions(low)["DisruptionTarget"]
        # The Eviction API puts its own reason in the place of ours when it goes through; until then ours is read.
        assert (mark["status"], mark["reason"]) == ("True", "PreemptionByScheduler") and "high" in mark["message"]
        await world.eventually(lambda: asyncio.sleep(0, refusals), lambda seen: len(seen) >= 2)
        assert history.evicted == set() and len(scheduler.evictor) == 1
        await world.client.delete(BUDGETS, "keep", namespace=world.namespace)
        await history.until_bound(1, "high")
    assert history.broken == []


async def test_a_budget_that_says_no_does_not_hold_up_the_hand_over(world: World) -> None:
    """Told to stop while an eviction waits: nobody schedules until the lease is free, so what is not on the wire is left."""
    await classes(world)
    await world.node("n0", cpu="1")
    history = await world.watch()
    async with world.scheduler(**LASTING) as first, world.scheduler(**LASTING) as second:
        await world.pod("low", priorityClassName="low-default", labels={"app": "low"})
        await history.until_bound(1)
        leader, follower = (first, second) if first.leading else (second, first)
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "low"}}}
        await world.client.create(BUDGETS, {"metadata": {"name": "keep"}, "spec": spec}, namespace="default")
        running = {"status": {"phase": "Running"}}
        await world.client.patch(PODS, "low", running, PatchType.MERGE, namespace="default", subresource="status")
        await world.pod("high", priorityClassName="high-default")
        await world.eventually(lambda: world.get_pod("low"), lambda found: "DisruptionTarget" in conditions(found))
        leader.stop()
        await world.eventually(lambda: asyncio.sleep(0, follower.leading), bool)
        await world.client.delete(BUDGETS, "keep", namespace="default")
        await history.until_bound(1, "high")
    assert history.broken == []
