"""A gang that is bound in part: completed if that can be, released if not, and left alone if it once was whole."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.live.claims import CLAIMS, CLASSES, SELECTED, with_claim
from tests.worlds.live.cluster import GROUPS, NODES, World

from navarch.embedded.api.server import ApiServer
from navarch.kube.client import PatchType
from navarch.kube.resources import PODS
from navarch.live.gang_history import CONDITION
from navarch.live.scheduler import Scheduler

pytestmark = pytest.mark.live


class Later:
    """Gangs are looked at by a clock that can be moved on; nothing is released before."""

    def __init__(self, world: World, scheduler: Scheduler) -> None:
        self.looks = 0
        self._world = world
        self._gangs = scheduler.core.gangs
        self._ahead = 0.0
        look = scheduler.core.gangs.check

        def looking(now: float) -> None:
            look(now + self._ahead)
            self.looks += 1

        scheduler.core.gangs.check = looking  # type: ignore[method-assign]

    async def when_found(self) -> None:
        """Beyond every time-out, counted from when one was seen half bound."""
        await self._world.eventually(lambda: asyncio.sleep(0, len(self._gangs)), bool)
        self._ahead += 1001.0

    async def whatever_is_found(self) -> None:
        """The same, and looked at before and after."""
        for ahead in (1001.0, 0.0):
            enough = self.looks + 2
            await self._world.eventually(lambda: asyncio.sleep(0, self.looks), lambda looks: looks >= enough)  # noqa: B023
            self._ahead += ahead


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
    async with world.scheduler(gang_timeout=1000.0) as scheduler:
        later = Later(world, scheduler)
        await world.gang("gang", 4)
        await history.until_bound(3)
        await later.when_found()
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


async def test_a_successor_releases_a_half_bound_gang_whose_waiting_member_was_deleted(server: ApiServer, world: World) -> None:
    """The pods alone look like those of a complete gang that lost a member. The condition that the predecessor wrote tells."""
    await world.node("n0")
    history = await world.watch()
    server.faults.errors(403, path="gang-3/binding")
    async with world.scheduler(gang_timeout=1000.0):
        await world.gang("gang", 4)
        await history.until_bound(3)
        for name in ("gang-0", "gang-1", "gang-2"):
            await world.eventually(lambda: world.get_pod(name), _is_marked_incomplete)  # noqa: B023
    await world.client.delete(PODS, "gang-3", namespace="default", grace_period=0)
    async with world.scheduler(gang_timeout=1.0):
        await history.until(lambda: not history.bound(), "the bound members are released")


def _is_marked_incomplete(pod: dict[str, Any]) -> bool:
    return any(c["type"] == CONDITION and c["status"] == "False" for c in pod["status"].get("conditions") or ())


async def test_a_gang_that_was_whole_and_lost_a_member_is_left_to_the_policy(server: ApiServer, world: World) -> None:
    await world.node("n0", cpu="4")
    history = await world.watch()
    async with world.scheduler(gang_timeout=1000.0) as scheduler:
        later = Later(world, scheduler)
        await world.gang("gang", 4)
        await history.until_bound(4)
        # The API's times are whole seconds: the successor has to be visibly younger than the bindings.
        bound = int(time.time())
        await world.eventually(lambda: asyncio.sleep(0, int(time.time())), lambda now: now > bound)
        await world.client.delete(PODS, "gang-3", namespace="default", grace_period=0)
        await world.pod("gang-3", cpu="3", group="gang")
        await world.eventually(lambda: world.events("gang-3"), lambda said: any(reason == "FailedScheduling" for _, reason, _ in said))
        await later.whatever_is_found()
        assert scheduler.metrics.registry.get_sample_value("navarch_gangs_released_total") == 0
    await history.until(lambda: len(history.bound("gang")) == 3, "three of them stand")


@pytest.mark.parametrize("policy", ["kube-scheduler", "no gang"])
async def test_a_policy_that_knows_no_gangs_lets_a_group_stand_in_part(world: World, policy: str, tmp_path: Path) -> None:
    if policy == "no gang":
        policy = str(tmp_path / "policy.yaml")
        Path(policy).write_text("actions: allocate\ntiers:\n- plugins:\n  - name: predicates\n", encoding="utf-8")
    await world.node("n0", cpu="2")
    history = await world.watch()
    async with world.scheduler(gang_timeout=1000.0, policy=policy) as scheduler:
        later = Later(world, scheduler)
        await world.gang("gang", 4)
        await history.until_bound(2)
        await later.whatever_is_found()
        assert scheduler.metrics.registry.get_sample_value("navarch_gangs_released_total") == 0
    history.check()


async def test_a_gang_that_has_its_number_but_not_its_roles_is_released(server: ApiServer, world: World) -> None:
    await world.node("n0", cpu="8")
    history = await world.watch()
    server.faults.errors(403, path="gang-master/binding")
    async with world.scheduler(gang_timeout=1000.0) as scheduler:
        later = Later(world, scheduler)
        await world.group("gang", 3, minTaskMember={"master": 1, "worker": 2})
        for name in ("master", "worker-0", "worker-1", "worker-2"):
            body = world.pod_body(f"gang-{name}", "1", "gang", "navarch")
            body["metadata"]["annotations"]["volcano.sh/task-spec"] = name.partition("-")[0]
            await world.client.create(PODS, body, namespace="default")
        await history.until_bound(3)
        await later.when_found()
        await history.until(lambda: not history.bound(), "the workers are released")
    assert history.evicted == {f"default/gang-worker-{i}" for i in range(3)}


async def with_one_too_many(world: World) -> None:
    """Three pods of a gang run, as its minimum asks. A fourth of the same age finds no room."""
    await world.node("n0", cpu="3")
    await world.group("gang", 3)
    for i in range(4):
        await world.pod(f"gang-{i}", group="gang")


async def ask_for(world: World, members: int) -> None:
    body = {"spec": {"minMember": members}}
    await world.client.patch(GROUPS, "gang", body, PatchType.MERGE, namespace=world.namespace)


async def marked(world: World) -> list[str]:
    pods = (await world.client.list(PODS, namespace=world.namespace)).items
    return sorted(
        pod["metadata"]["name"]
        for pod in pods
        if any(c["type"] == CONDITION and c["status"] == "True" for c in pod["status"].get("conditions") or ())
    )


@pytest.mark.parametrize("loses", ["its minimum is raised", "a pod is deleted"])
async def test_a_gang_with_pods_to_spare_stays_where_it_is_when_it_lacks_some(any_world: World, loses: str) -> None:
    """Also when the scheduler that saw it whole is gone, and its status tells nothing of it any more."""
    world = any_world
    await with_one_too_many(world)
    history = await world.watch()
    async with world.scheduler(gang_timeout=1000.0) as scheduler:
        later = Later(world, scheduler)
        await history.until_bound(3)
        await later.whatever_is_found()
        if loses == "a pod is deleted":
            # With a node that is cordoned none takes its place.
            await world.client.patch(NODES, "n0", {"spec": {"unschedulable": True}}, PatchType.MERGE)
            await world.eventually(
                lambda: asyncio.sleep(0, scheduler.cache.cluster.nodes.specs),
                lambda specs: any(spec is not None and spec.unschedulable for spec in specs),
            )
            name = history.bound()[0].partition("/")[2]
            await world.client.delete(PODS, name, namespace=world.namespace, grace_period=0)
        else:
            await ask_for(world, 4)
        stay = 2 if loses == "a pod is deleted" else 3
        await world.eventually(lambda: marked(world), lambda names: len(names) == stay)
        await later.whatever_is_found()
        assert scheduler.metrics.registry.get_sample_value("navarch_gangs_released_total") == 0
        await world.eventually(lambda: world.get_group("gang"), lambda found: found["status"]["phase"] != "Running")
    async with world.scheduler(gang_timeout=1000.0) as scheduler:
        later = Later(world, scheduler)
        await later.whatever_is_found()
        assert scheduler.metrics.registry.get_sample_value("navarch_gangs_released_total") == 0
    assert len(history.bound()) == stay


async def test_a_minimum_raised_while_no_scheduler_runs_evicts_nothing(any_world: World) -> None:
    world = any_world
    await with_one_too_many(world)
    history = await world.watch()
    async with world.scheduler():
        await history.until_bound(3)
        await world.eventually(lambda: world.get_group("gang"), lambda found: found.get("status", {}).get("phase") == "Running")
    await ask_for(world, 4)
    async with world.scheduler(gang_timeout=1000.0) as scheduler:
        later = Later(world, scheduler)
        await world.eventually(lambda: marked(world), lambda names: len(names) == 3)
        await later.whatever_is_found()
        assert scheduler.metrics.registry.get_sample_value("navarch_gangs_released_total") == 0
    assert len(history.bound()) == 3


async def test_a_volume_that_does_not_come_is_not_waited_for_beyond_the_gangs_own_time(any_world: World) -> None:
    """Two of three were bound when the scheduler died; the volume of the third is never made."""
    world = any_world
    await world.node("n0", **{"kubernetes.io/hostname": "n0"})
    storage_class = f"late-{world.namespace}"
    body = {"metadata": {"name": storage_class}, "provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer"}
    await world.client.create(CLASSES, body)
    spec = {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await world.client.create(CLAIMS, {"metadata": {"name": "data"}, "spec": spec}, namespace=world.namespace)
    history = await world.watch()
    await world.group("gang", 3)
    for i in range(2):
        await world.pod(f"gang-{i}", group="gang")
    await world.pod("gang-2", group="gang", **with_claim("data"))
    for name in ("gang-0", "gang-1"):
        pod = await world.get_pod(name)
        await world.client.bind(world.namespace, name, uid=pod["metadata"]["uid"], node="n0")
    claim = lambda: world.client.get(CLAIMS, "data", namespace=world.namespace)  # noqa: E731
    async with world.scheduler(gang_timeout=1000.0, volume_timeout=1_000_000.0) as scheduler:
        later = Later(world, scheduler)
        await world.eventually(claim, lambda found: (found["metadata"].get("annotations") or {}).get(SELECTED) == "n0")
        await later.when_found()
        await history.until(lambda: not history.bound(), "the bound members are released")
        assert scheduler.metrics.registry.get_sample_value("navarch_gangs_released_total") == 1
        await world.eventually(claim, lambda found: SELECTED not in (found["metadata"].get("annotations") or {}))
    assert history.evicted == {f"{world.namespace}/gang-{i}" for i in range(2)}
