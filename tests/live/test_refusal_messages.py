"""What users read of a pod that waits, as each API server stores it: the message, its source, and its count."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from tests.worlds.live.cluster import EVENTS, StillClock, World
from tests.worlds.live.conditions import conditions

from navarch.kube.write.pool import Done, Write

pytestmark = pytest.mark.live


async def test_a_pod_that_waits_is_told_so_in_one_series(any_world: World) -> None:
    world, clock = any_world, StillClock()
    await world.node(f"n-{world.namespace}", cpu="1")
    said = partial(_about, world, "large")
    async with world.scheduler(clock=clock, scheduler_names=("batch", "other")) as scheduler:

        async def later(seconds: float) -> None:
            """So much later the pod is tried again, and waits again."""
            clock.now += seconds
            before = scheduler.core.last_cycle
            scheduler.queue.activate_all()
            scheduler.cycle_loop.trigger()
            await world.eventually(lambda: asyncio.sleep(0, scheduler.core.last_cycle), lambda last: last is not before)

        await world.pod("large", cpu="64", scheduler="other")
        (event,) = await world.eventually(said, bool)
        assert (event["type"], event["reason"], event["action"]) == ("Warning", "FailedScheduling", "Scheduling")
        assert event["reportingController"] == "other" and "_" in event["reportingInstance"]
        assert event["regarding"]["uid"] == (await world.get_pod("large"))["metadata"]["uid"]
        assert "series" not in event or event["series"] is None
        pod = await world.eventually(lambda: world.get_pod("large"), lambda found: "PodScheduled" in conditions(found))
        told = conditions(pod)["PodScheduled"]
        assert (told["status"], told["reason"]) == ("False", "Unschedulable")
        assert event["note"] == told["message"] and event["note"].startswith("cannot start: one pod needs 64 CPUs, ")
        await later(40.0)
        (event,) = await world.eventually(said, lambda found: bool(found[0].get("series")))
        assert event["series"]["count"] >= 2
        # A user deletes the event: it is written anew once the watch shows that it is gone.
        await world.client.delete(EVENTS, event["metadata"]["name"], namespace=world.namespace)

        async def said_later() -> list[dict[str, Any]]:
            await later(40.0)
            return await said()

        (again,) = await world.eventually(said_later, bool)
        assert again["note"] == event["note"] and again["metadata"]["name"] != event["metadata"]["name"]


async def test_a_pod_that_got_its_node_meanwhile_is_not_told_that_it_has_none(
    any_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bindings go before everything else: here one overtakes the words that its pod waits in vain."""
    world = any_world
    await world.node(f"n-{world.namespace}", cpu="1")
    history = await world.watch()
    async with world.scheduler() as scheduler:
        submit, held = scheduler.pool.submit, list[tuple[Write, Done]]()

        def overtaken(write: Write, done: Done) -> None:
            if write.path.endswith("/large/status"):
                held.append((write, done))
            else:
                submit(write, done)

        monkeypatch.setattr(scheduler.pool, "submit", overtaken)
        await world.pod("large", cpu="4")
        await world.eventually(lambda: asyncio.sleep(0, held), bool)
        await world.node(f"m-{world.namespace}", cpu="4")
        await history.until_bound(1)
        monkeypatch.setattr(scheduler.pool, "submit", submit)
        for write, done in held:
            submit(write, done)
        await world.eventually(lambda: asyncio.sleep(0, len(scheduler.writers.pods.outbox)), lambda left: left == 0)
        told = conditions(await world.get_pod("large"))["PodScheduled"]
    assert told["status"] == "True", told


async def _about(world: World, name: str) -> list[dict[str, Any]]:
    return [each for each in (await world.client.list(EVENTS, namespace=world.namespace)).items if each["regarding"]["name"] == name]
