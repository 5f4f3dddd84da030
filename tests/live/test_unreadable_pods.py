"""A pod on a node that cannot be decoded from the start: its node is not given away a second time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.live.cluster import World
from tests.worlds.live.plain_policy import PLAIN

from navarch.kube.client import PatchType
from navarch.kube.resources import PODS

pytestmark = pytest.mark.live


async def odd_pod(world: World, cpu: str) -> None:
    """On n0, of another scheduler. A moment before the year 1 is fine with API servers, and with no decoder of ours."""
    await world.pod("odd", cpu=cpu, scheduler="other", nodeName="n0")
    condition = {"type": "example.com/Odd", "status": "True", "lastTransitionTime": "0000-01-01T00:00:00Z"}
    status = {"status": {"conditions": [condition]}}
    await world.client.patch(PODS, "odd", status, PatchType.MERGE, namespace=world.namespace, subresource="status")


async def refused(world: World, name: str) -> str:
    """What a pod that waits is told."""

    def words(found: dict[str, Any]) -> str:
        conditions = found["status"].get("conditions") or ()
        return next((c.get("message", "") for c in conditions if (c["type"], c["status"]) == ("PodScheduled", "False")), "")

    return words(await world.eventually(lambda: world.get_pod(name), words))


async def test_an_invalid_pod_counts_by_its_readable_part_until_it_is_gone(any_world: World) -> None:
    world = any_world
    await world.node("n0", cpu="4")
    await odd_pod(world, "3")
    async with world.scheduler() as scheduler:
        await world.pod("small", cpu="1")
        await world.eventually(lambda: world.get_pod("small"), lambda found: found["spec"].get("nodeName"))
        await world.pod("large", cpu="3")
        assert "Insufficient cpu" in await refused(world, "large")
        said = await world.eventually(lambda: world.events("odd"), bool)
        assert [reason for _, reason, _ in said] == ["InvalidObject"]
        assert "it counts on n0 by what could be read of it" in said[0][2]
        assert scheduler.metrics.registry.get_sample_value("navarch_bad_objects_total", {"kind": "Pod"}) == 1
        await world.client.delete(PODS, "odd", namespace=world.namespace, grace_period=0)
        await world.eventually(lambda: world.get_pod("large"), lambda found: found["spec"].get("nodeName"))


async def test_a_node_with_unknown_free_amounts_takes_no_more_pods(any_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """API servers keep no quantity that we cannot read, so the reader is the one that fails here."""
    world = any_world
    monkeypatch.setattr("navarch.apis.core.partial_pod.is_amount", lambda found: False)
    await world.node("n0", cpu="4")
    await odd_pod(world, "1")
    async with world.scheduler() as scheduler:
        await world.pod("small", cpu="1")
        assert "unschedulable" in await refused(world, "small")
        said = await world.eventually(lambda: world.events("odd"), bool)
        assert "n0 takes no more pods until it is gone or can be read" in said[0][2]
        scheduler.operator_server.gauges.refresh()
        assert scheduler.metrics.registry.get_sample_value("navarch_closed_nodes") == 1
        await world.node("n1", cpu="4")
        await world.eventually(lambda: world.get_pod("small"), lambda found: found["spec"].get("nodeName") == "n1")
        await world.pod("large", cpu="4")
        assert "unschedulable" in await refused(world, "large")
        await world.client.delete(PODS, "odd", namespace=world.namespace, grace_period=0)
        await world.eventually(lambda: world.get_pod("large"), lambda found: found["spec"].get("nodeName") == "n0")
        scheduler.operator_server.gauges.refresh()
        assert scheduler.metrics.registry.get_sample_value("navarch_closed_nodes") == 0


async def test_an_invalid_pod_still_counts_after_a_policy_change(world: World, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("compat: volcano\n" + PLAIN)
    await world.node("n0", cpu="4")
    await odd_pod(world, "3")
    async with world.scheduler(policy=str(policy)) as scheduler:
        await world.eventually(lambda: asyncio.sleep(0, scheduler.core.last_cycle), bool)
        before = scheduler.cache.settings
        policy.write_text(PLAIN)
        await world.eventually(lambda: asyncio.sleep(0, scheduler.cache.settings), lambda settings: settings != before)
        await world.eventually(lambda: asyncio.sleep(0, scheduler.rereading), lambda reading: not reading)
        await world.pod("large", cpu="3")
        assert "cpu" in await refused(world, "large")
        await world.pod("small", cpu="1")
        await world.eventually(lambda: world.get_pod("small"), lambda found: found["spec"].get("nodeName"))
