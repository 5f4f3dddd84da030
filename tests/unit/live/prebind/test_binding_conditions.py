"""A pod with devices that have binding conditions is bound once their driver says that they are ready."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any

import pytest
from tests.worlds.device_objects import claim, exactly, slice_of
from tests.worlds.live_parts.shared_claims import World, bind_of

from navarch.engine.policy import load
from navarch.installed import installed
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.prebind.binding_conditions import binding_timeout
from navarch.live.prebind.preparation import PreparationFailed

pytestmark = pytest.mark.looptime
Object = dict[str, Any]


class Attached(World):
    """A device that is attached to a node before its pod starts there."""

    def __init__(self) -> None:
        super().__init__()
        slice_ = slice_of("n1", "a", generation=2)
        conditions = {"bindsToNode": True, "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
        slice_["spec"]["devices"] = [{"name": "g0", **conditions}]
        self.shows(slice_)
        self.pod("p1", "shared")
        self.decide()
        self.bind: AssumedBind = self.cache.assumed.binds["uid-p1"]

    def says(self, *conditions: Object) -> None:
        """The driver writes conditions, and the watch shows them."""
        device = {"driver": "d", "pool": "n1", "device": "g0", "conditions": list(conditions)}
        self.server.found["status"]["devices"] = [device]
        self.shows(self.server.found)


def condition(kind: str, status: str = "True", **more: str) -> Object:
    return {"type": kind, "status": status, **more}


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_pod_waits_until_the_condition_is_true() -> None:
    world = Attached()
    preparing = asyncio.create_task(world.claims.prepare(world.bind))
    await settled()
    world.shows(world.server.found)
    (result,) = world.server.found["status"]["allocation"]["devices"]["results"]
    assert result["bindingConditions"] == ["Attached"] and result["bindingFailureConditions"] == ["Broken"]
    assert world.server.found["status"]["allocation"]["allocationTimestamp"]
    await asyncio.sleep(30)
    assert not preparing.done()
    world.says(condition("Attached", "False"))
    await asyncio.sleep(30)
    assert not preparing.done()
    world.says(condition("Attached"))
    await preparing


async def test_a_failure_takes_the_devices_from_the_claim() -> None:
    world = Attached()
    preparing = asyncio.create_task(world.claims.prepare(world.bind))
    await settled()
    world.says(condition("Attached"), condition("Broken", message="no such port"))
    with pytest.raises(PreparationFailed, match="resource claim shared: device d/n1/g0: Broken: no such port"):
        await preparing
    await world.is_not_bound("p1")
    assert {"allocation", "devices"}.isdisjoint(world.server.found["status"])


async def test_a_claim_that_another_process_allocated_loses_its_devices_as_well() -> None:
    """The scheduler was restarted while it waited."""
    world = Attached()
    preparing = asyncio.create_task(world.claims.prepare(world.bind))
    await settled()
    world.says(condition("Broken", reason="Detached"))
    preparing.cancel()
    again = World()
    again.server.found = world.server.found
    again.shows(world.server.found)
    again.pod("p1", "shared")
    again.decide()
    with pytest.raises(PreparationFailed, match="Broken: Detached"):
        await again.claims.prepare(again.cache.assumed.binds["uid-p1"])
    await again.is_not_bound("p1")
    assert "allocation" not in again.server.found["status"]


async def test_a_driver_that_says_nothing() -> None:
    world = Attached()
    preparing = asyncio.create_task(world.claims.prepare(world.bind))
    await settled()
    allocation = world.server.found["status"]["allocation"]
    world.server.found["status"]["allocation"] = {**allocation, "allocationTimestamp": "2020-01-01T00:00:00Z"}
    world.shows(world.server.found)
    with pytest.raises(PreparationFailed, match="resource claim shared: Attached not true within 600 s"):
        await preparing


async def test_a_pod_that_is_gone_waits_for_nothing() -> None:
    world = Attached()
    preparing = asyncio.create_task(world.claims.prepare(world.bind))
    await settled()
    world.shows(world.server.found)
    world.cache.assumed.binds["uid-p1"] = bind_of("uid-p1")
    with pytest.raises(PreparationFailed, match="the pod is gone"):
        await preparing


async def test_a_server_that_drops_the_conditions_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod would be bound before its device is attached."""
    world = Attached()
    update = world.server.update

    async def forgetting(resource: object, name: str, body: Object, **options: Any) -> Object:
        for result in ((body.get("status") or {}).get("allocation") or {"devices": {"results": ()}})["devices"]["results"]:
            result.pop("bindingConditions")
        return await update(resource, name, body, **options)

    monkeypatch.setattr(world.server, "update", lambda *words, **options: forgetting(*deepcopy(words), **options))
    with pytest.raises(PreparationFailed, match="resource claim shared: the API server does not keep bindingConditions"):
        await world.claims.prepare(world.bind)


async def test_devices_without_conditions_are_ready_at_once() -> None:
    world = World()
    world.shows(claim("shared", exactly()))
    world.pod("p1", "shared")
    world.decide()
    await world.claims.prepare(world.cache.assumed.binds["uid-p1"])
    assert asyncio.get_running_loop().time() == 0.0


@pytest.mark.parametrize(("said", "seconds"), [(None, 600.0), ("90s", 90.0)])
def test_the_policy_says_how_long(said: str | None, seconds: float) -> None:
    config = [] if said is None else [{"name": "DynamicResources", "args": {"bindingTimeout": said}}]
    file = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "s", "pluginConfig": config}],
    }
    assert binding_timeout(load(file, installed().catalogue(), "test")) == seconds
