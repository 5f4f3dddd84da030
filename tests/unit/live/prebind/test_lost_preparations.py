"""A write before a binding whose answer is lost: it may have been made, so it is taken back like one that was."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.worlds.device_objects import claim, exactly
from tests.worlds.live_parts import shared_claims, storage
from tests.worlds.live_parts.resources import RESOURCE_CLAIMS, binding_conditions

from navarch.embedded.api.patches.json_patch import merge
from navarch.kube.client import Client
from navarch.kube.errors import OutcomeUnknown
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.prebind.claim_access import ClaimAccess
from navarch.live.prebind.device_claims import PROTECTION, DeviceClaims
from navarch.live.prebind.preparation import PreparationFailed, Step
from navarch.live.prebind.volumes import SELECTED_NODE


class Store:
    """One object, and a connection that breaks after the first write."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.writes = 0

    async def get(self, *_: object, **__: object) -> dict[str, Any]:
        return self.body

    async def update(self, resource: object, name: str, body: dict[str, Any], **_: object) -> dict[str, Any]:
        self.body = body
        self._answer()
        return body

    async def patch(self, resource: object, name: str, body: dict[str, Any], *_: object, **__: object) -> None:
        self.body = merge(self.body, body)
        self._answer()

    def _answer(self) -> None:
        self.writes += 1
        if self.writes == 1:
            raise OutcomeUnknown("cut")


async def prepare_in_vain(step: Step, bind: AssumedBind) -> None:
    with pytest.raises(PreparationFailed, match="cut"):
        await step.prepare(bind)


async def test_a_node_that_was_chosen_for_a_volume() -> None:
    store = Store(storage.claim("data", uid="c1"))
    seen = storage.Seen(cast(Client, store), "n1")
    seen.shows(storage.storage_class(), store.body)
    seen.pod("a", "data")
    (bind,) = seen.decide()
    await prepare_in_vain(seen.volumes, bind)
    assert store.body["metadata"]["annotations"] == {SELECTED_NODE: "n1"}
    await seen.volumes.undo(bind)
    assert store.body["metadata"]["annotations"] == {}


async def test_devices_that_were_allocated() -> None:
    world = shared_claims.World()
    protected = claim("shared", exactly())
    protected["metadata"]["finalizers"] = [PROTECTION]
    world.shows(protected)
    store = Store(protected)
    access = ClaimAccess(cast(Client, store), world.cache, lambda: RESOURCE_CLAIMS, binding_conditions(world.cache))
    world.claims = DeviceClaims(access)
    world.pod("a", "shared")
    (decided,) = world.decide().record.binds
    bind = shared_claims.bind_of(decided.uid)
    await prepare_in_vain(world.claims, bind)
    assert [user["uid"] for user in store.body["status"]["reservedFor"]] == ["uid-a"]
    await world.claims.undo(bind)
    assert store.body["status"] == {"reservedFor": []}


async def test_each_volume_that_comes_is_told() -> None:
    told = asyncio.Queue[AssumedBind]()
    seen = storage.Seen(cast(Client, Quiet()), "n1", progress=told.put_nowait)
    names = ("data", "logs")
    chosen = {SELECTED_NODE: "n1"}
    seen.shows(storage.storage_class(), *(storage.claim(name, uid=name, annotations=chosen) for name in names))
    seen.pod("a", *names)
    (bind,) = seen.decide()
    preparing = asyncio.create_task(seen.volumes.prepare(bind))
    await asyncio.sleep(0)
    for name in names:
        seen.shows(storage.volume(f"for-{name}", "n1"))
        seen.shows(storage.bound(storage.claim(name, uid=name, annotations=chosen), f"for-{name}"))
        assert await asyncio.wait_for(told.get(), 60.0) is bind
    await preparing
    assert told.empty()


class Quiet:
    """Takes every write."""

    async def patch(self, *_: object, **__: object) -> None:
        return
