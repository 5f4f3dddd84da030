"""What users see of a scheduler at work, on the embedded API server and on kube-apiserver."""

from __future__ import annotations

import asyncio

import pytest
from tests.worlds.live.cluster import QUEUES, World, lasting
from tests.worlds.live.conditions import conditions

from navarch.kube.resources import PODS

pytestmark = pytest.mark.live


async def test_pods_and_gangs_are_bound_and_their_groups_say_so(any_world: World) -> None:
    world = any_world
    for i in range(3):
        await world.node(f"n{i}")
    history = await world.watch()
    async with world.scheduler():
        await asyncio.gather(world.pod("single"), world.gang("whole", 4))
        await history.until_bound(5)
        group = await world.eventually(
            lambda: world.get_group("whole"), lambda found: found.get("status", {}).get("phase") == "Running"
        )
        assert conditions(group)["Scheduled"]["status"] == "True"
        queue = await world.eventually(
            lambda: world.client.get(QUEUES, "default"), lambda found: found.get("status", {}).get("state") == "Open"
        )
        assert queue["spec"]["weight"] == 1
        await world.eventually(
            lambda: world.events("single"), lambda said: ("Normal", "Scheduled") in [(kind, reason) for kind, reason, _ in said]
        )
    history.check([("whole", 4)])


async def test_a_gang_that_does_not_fit_waits_whole_and_is_told_why(any_world: World) -> None:
    world = any_world
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler():
        await world.gang("big", 6)
        pod = await world.eventually(
            lambda: world.get_pod("big-0"), lambda found: conditions(found).get("PodScheduled", {}).get("status") == "False"
        )
        assert conditions(pod)["PodScheduled"]["reason"] in ("Unschedulable", "Schedulable")
        await world.eventually(
            lambda: world.get_group("big"),
            lambda found: "cannot start: needs 6" in conditions(found).get("Unschedulable", {}).get("message", ""),
        )
        await world.eventually(lambda: world.events("big-0"), lambda said: any(reason == "FailedScheduling" for _, reason, _ in said))
        assert history.bound() == []
        await world.node("n1")
        await history.until_bound(6)
    history.check([("big", 6)])


async def test_pods_without_a_group_or_a_queue_are_told_so_and_start_when_it_comes(any_world: World) -> None:
    world = any_world
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler():
        nowhere = f"nowhere-{world.namespace}"
        lost = f'the queue "{nowhere}" does not exist'
        await world.group("lost", 1, queue=nowhere)
        await asyncio.gather(world.pod("lost-0", group="lost"), world.pod("early-0", group="early"))
        early = f'the PodGroup "{world.namespace}/early"'
        for name, code, said in (("lost-0", "QueueNotFound", lost), ("early-0", "PodGroupNotFound", early)):
            # A pod may be seen before its group, and is told so first.
            pod = await world.eventually(
                lambda: world.get_pod(name),  # noqa: B023
                lambda found: conditions(found).get("PodScheduled", {}).get("message", "").startswith(said),  # noqa: B023
            )
            told = conditions(pod)["PodScheduled"]
            assert (told["status"], told["reason"]) == ("False", code)
            await world.eventually(
                lambda: world.events(name),  # noqa: B023
                lambda events: any(reason == "FailedScheduling" and note.startswith(said) for _, reason, note in events),  # noqa: B023
            )
        group = await world.eventually(
            lambda: world.get_group("lost"),
            lambda found: conditions(found).get("Unschedulable", {}).get("reason") == "QueueNotFound",
        )
        told = conditions(group)["Unschedulable"]
        assert (told["status"], told["reason"], told["message"]) == ("True", "QueueNotFound", lost)
        assert group["status"]["phase"] == "Pending"
        await world.eventually(lambda: world.events("lost"), lambda events: ("Warning", "Unschedulable", lost) in events)
        assert history.bound() == []
        await world.group("early", 1)
        await history.until_bound(1)
        queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": nowhere}, "spec": {"weight": 1}}
        await world.clusterwide(QUEUES, queue)
        await history.until_bound(2)
        await world.eventually(lambda: world.get_group("lost"), lambda found: "Scheduled" in conditions(found))
    history.check([("early", 1), ("lost", 1)])


async def test_another_schedulers_pods_are_left_alone_but_their_room_is_not_given_away(any_world: World) -> None:
    world = any_world
    await world.node("n0", cpu="2")
    history = await world.watch()
    await world.pod("theirs", cpu="1500m", scheduler="somebody-else")
    await world.client.bind(world.namespace, "theirs", uid=(await world.get_pod("theirs"))["metadata"]["uid"], node="n0")
    await world.pod("waits", scheduler="somebody-else")
    async with world.scheduler():
        await asyncio.gather(world.pod("small", cpu="500m"), world.pod("large", cpu="1"))
        await history.until_bound(1, "small")
        await world.eventually(lambda: world.get_pod("large"), lambda found: "PodScheduled" in conditions(found))
        assert history.waiting() == [f"{world.namespace}/large", f"{world.namespace}/waits"]
        await world.client.delete(PODS, "theirs", namespace=world.namespace, grace_period=0)
        await history.until_bound(1, "large")
    assert history.broken == []


async def test_pods_created_before_the_scheduler_are_bound(any_world: World) -> None:
    world = any_world
    await world.node("n0", cpu="3")
    history = await world.watch()
    await world.gang("early", 3)
    async with world.scheduler(**lasting(world.namespace)):
        await history.until_bound(3)
    history.check([("early", 3)])
