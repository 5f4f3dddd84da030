"""A gang that is bound in part: completed if that can be, released if not, and left alone if it once was whole."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.live.world import World

from navarch.cluster.server import ApiServer
from navarch.kube.resources import PODS

pytestmark = pytest.mark.live


async def test_a_member_that_cannot_be_bound_is_tried_again_until_it_can(server: ApiServer, world: World) -> None:
    await world.node("n0")
    history = await world.watch()
    server.faults.errors(403, path="gang-3/binding", times=2)
    async with world.scheduler():
        await world.gang("gang", 4)
        await history.until_bound(4)
    assert server.faults.struck == 2
    history.check([("gang", 4)])


async def test_a_gang_that_stays_half_bound_is_released(server: ApiServer, world: World) -> None:
    await world.node("n0")
    history = await world.watch()
    server.faults.errors(403, path="gang-3/binding")
    async with world.scheduler(gang_timeout=1.0) as scheduler:
        await world.gang("gang", 4)
        await history.until_bound(3)
        await history.until(lambda: not history.bound(), "the bound members are released")
        assert scheduler.metrics.registry.get_sample_value("navarch_gangs_released_total") == 1
    history.check([("gang", 4)], lost=False)
    assert history.evicted == {f"default/gang-{i}" for i in range(3)}


async def test_a_successor_releases_what_its_predecessor_left_half_bound(server: ApiServer, world: World) -> None:
    """Two of four were bound when the scheduler died, and the room for the others is gone."""
    await world.node("n0", cpu="2")
    history = await world.watch()
    await world.gang("gang", 4)
    for name in ("gang-0", "gang-1"):
        pod = await world.get_pod(name)
        await world.client.bind("default", name, uid=pod["metadata"]["uid"], node="n0")
    async with world.scheduler(gang_timeout=1.0):
        await history.until(lambda: not history.bound(), "the bound members are released")
    history.check([("gang", 4)], lost=False)


async def test_a_gang_that_was_whole_and_lost_a_member_is_left_to_the_policy(server: ApiServer, world: World) -> None:
    await world.node("n0", cpu="4")
    history = await world.watch()
    async with world.scheduler(gang_timeout=1.0):
        await world.gang("gang", 4)
        await history.until_bound(4)
        # The API's times are whole seconds: the successor has to be visibly younger than the bindings.
        await asyncio.sleep(1.1)
        await world.client.delete(PODS, "gang-3", namespace="default", grace_period=0)
        await world.pod("gang-3", cpu="3", group="gang")
        await asyncio.sleep(2.5)
        assert len(history.bound("gang")) == 3


@pytest.mark.parametrize("policy", ["kube-scheduler", "no gang"])
async def test_a_policy_that_knows_no_gangs_lets_a_group_stand_in_part(world: World, policy: str, tmp_path: Path) -> None:
    if policy == "no gang":
        policy = str(tmp_path / "policy.yaml")
        Path(policy).write_text("actions: allocate\ntiers:\n- plugins:\n  - name: predicates\n", encoding="utf-8")
    await world.node("n0", cpu="2")
    history = await world.watch()
    async with world.scheduler(gang_timeout=0.5, policy=policy) as scheduler:
        await world.gang("gang", 4)
        await history.until_bound(2)
        looked = scheduler.gangs.look
        times = list[float]()
        scheduler.gangs.look = lambda now: (looked(now), times.append(now))[0]  # type: ignore[method-assign]
        await world.eventually(lambda: asyncio.sleep(0, times), lambda seen: len(seen) > 3)
        assert scheduler.metrics.registry.get_sample_value("navarch_gangs_released_total") == 0
    history.check()


async def test_a_gang_that_has_its_number_but_not_its_roles_is_released(server: ApiServer, world: World) -> None:
    await world.node("n0", cpu="8")
    history = await world.watch()
    server.faults.errors(403, path="gang-master/binding")
    async with world.scheduler(gang_timeout=1.0):
        await world.group("gang", 3, minTaskMember={"master": 1, "worker": 2})
        for name in ("master", "worker-0", "worker-1", "worker-2"):
            body = world.pod_body(f"gang-{name}", "1", "gang", "navarch")
            body["metadata"]["annotations"]["volcano.sh/task-spec"] = name.partition("-")[0]
            await world.client.create(PODS, body, namespace="default")
        await history.until_bound(3)
        await history.until(lambda: not history.bound(), "the workers are released")
    assert history.evicted == {f"default/gang-worker-{i}" for i in range(3)}
