"""Volcano's queues as a tree, without Volcano's controllers: the root is made, parents show sums of subtrees, mistakes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.worlds.live.cluster import QUEUES, World

pytestmark = pytest.mark.live


def policy(folder: Path, **more: str) -> str:
    plugins = [{"name": "gang"}, {"name": "predicates"}, {"name": "capacity", "enableHierarchy": True}]
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump({"actions": "enqueue, allocate", "tiers": [{"plugins": plugins}], **more}), encoding="utf-8")
    return str(path)


async def queue(world: World, name: str, parent: str = "") -> None:
    spec: dict[str, Any] = {"deserved": {"cpu": "4"}, **({"parent": parent} if parent else {})}
    await world.client.create(QUEUES, {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec})


async def test_the_queues_that_volcanos_controllers_need_are_made_and_made_again(world: World) -> None:
    async def specs() -> dict[str, Any]:
        found = (await world.client.list(QUEUES)).items
        return {each["metadata"]["name"]: (each["spec"]["weight"], each["spec"]["reclaimable"]) for each in found}

    wanted = {"default": (1, True), "root": (1, False)}
    async with world.scheduler(policy="volcano"):
        await world.eventually(specs, lambda found: found == wanted)
        await world.client.delete(QUEUES, "root")
        await world.eventually(specs, lambda found: found == wanted)


async def test_a_tree_without_a_root_works_and_parents_show_what_is_below_them(world: World) -> None:
    await world.node("n0")
    await queue(world, "team")
    await queue(world, "team-dev", "team")
    history = await world.watch()
    async with world.scheduler(policy=policy(world.folder, compat="volcano")):
        await world.group("g", 2, queue="team-dev")
        for i in range(2):
            await world.pod(f"g-{i}", group="g")
        await history.until_bound(2)

        async def held() -> list[str]:
            found = [await world.client.get(QUEUES, name) for name in ("team", "team-dev")]
            return [each["status"].get("allocated", {}).get("cpu", "0") for each in found if "status" in each]

        await world.eventually(held, lambda cpus: cpus == ["2", "2"])


async def test_a_queue_that_no_plugin_can_use_is_named_in_the_log_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    await world.node("n0")
    await queue(world, "stray", "nowhere")
    await queue(world, "team")
    history = await world.watch()

    async def told() -> list[str]:
        return [record.getMessage() for record in caplog.records if "stray" in record.getMessage()]

    async with world.scheduler(policy=policy(world.folder), period=0.05):
        (first,) = await world.eventually(told, bool)
        assert "other queues are served" in first
        await world.group("g", 1, queue="team")
        await world.pod("g-0", group="g")
        await history.until_bound(1)
        await world.eventually(lambda: world.get_group("g"), lambda group: group.get("status", {}).get("phase") == "Running")
    assert await told() == [first]
