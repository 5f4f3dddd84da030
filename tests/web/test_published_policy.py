"""The pages follow the policy that the scheduler publishes, also where it reads objects in another way."""

from __future__ import annotations

from typing import Any

from tests.worlds.live.cluster import World
from tests.worlds.web import dashboard

from navarch.installed import installed
from navarch.kube.client import PatchType
from navarch.offline.policies import read_policy
from navarch.views.published_state import CONFIG_MAPS, Parameters, PublishedState, StateAddress, published_policy, to_config_map
from navarch.web.server import Follow


async def publish(world: World, policy: str, names: list[str]) -> None:
    state = PublishedState(
        "1", names, published_policy(read_policy(policy, installed())), Parameters(), [], "navarch-0", "2026-01-01T00:00:00Z"
    )
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "navarch-state"}, "data": to_config_map(state)}
    await world.client.patch(
        CONFIG_MAPS, "navarch-state", body, PatchType.APPLY, namespace="default", field_manager="test", force=True
    )


def states(rows: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {key: row["state"] for key, row in rows.items()}


async def test_another_policy_is_shown_without_a_restart(world: World) -> None:
    await world.node("n1")
    await world.gang("a", 1, cpu="9")
    address = StateAddress.parse("default/navarch")
    async with dashboard(world, follow=Follow(None), state=address, look_seconds=0.05) as web:
        assert (await web.get("overview"))["policy"] == "navarch"
        watched = web.server.watched
        await publish(world, "fifo", ["navarch"])
        await web.until("overview", lambda found: found["policy"] == "fifo")
        assert web.server.watched is watched, "objects are read in the same way"
        assert "default/a" in await web.rows()


async def test_a_policy_that_reads_objects_otherwise_reads_them_again(world: World) -> None:
    await world.node("n1")
    await world.gang("a", 1, cpu="9")
    await world.gang("b", 1, cpu="9", scheduler="mine")
    address = StateAddress.parse("default/navarch")
    async with dashboard(world, follow=Follow(None), state=address, look_seconds=0.05) as web:
        before = (await web.get("overview"))["version"]
        assert states(await web.rows()) == {"default/a": "waiting"}
        async with web.events(topics="jobs", since=before) as events:
            await publish(world, "volcano", ["mine"])
            await events.until(lambda name, data: name == "reset")
        await web.ready()
        assert (await web.get("overview"))["policy"] == "volcano"
        assert states(await web.rows()) == {"default/b": "waiting"}
