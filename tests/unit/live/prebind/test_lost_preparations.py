"""A write before a binding whose answer is lost: it may have been made, so it is taken back like one that was."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.worlds.live_parts.cluster_cache import cache, node
from tests.worlds.live_parts.resources import RESOURCE_CLAIMS, binding_conditions

from navarch.embedded.api.patches.json_patch import merge
from navarch.kube.client import Client
from navarch.kube.errors import OutcomeUnknown
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.prebind.device_claims import PROTECTION, DeviceClaims, _Use
from navarch.live.prebind.preparation import PreparationFailed, Step
from navarch.live.prebind.volumes import SELECTED_NODE, Volumes, _Plan
from navarch.model.objects.storage import read_claim
from navarch.model.spec import ObjectSpec

BIND = AssumedBind("uid-a", "default", "a", "n1", "default/pod/a", 0.0)


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


async def prepare_in_vain(step: Step) -> None:
    with pytest.raises(PreparationFailed, match="cut"):
        await step.prepare(BIND)


async def test_a_node_that_was_chosen_for_a_volume() -> None:
    body = {"metadata": {"name": "data", "namespace": "default", "uid": "c1"}, "spec": {}, "status": {"phase": "Pending"}}
    store = Store(body)
    volumes = Volumes(cast(Client, store), cache()[0], 60.0)
    volumes._plans[BIND.uid] = _Plan([(read_claim(body), None)])
    await prepare_in_vain(volumes)
    assert store.body["metadata"]["annotations"] == {SELECTED_NODE: "n1"}
    await volumes.undo(BIND)
    assert store.body["metadata"]["annotations"] == {}


async def test_devices_that_were_allocated() -> None:
    store = Store({"metadata": {"name": "gpu", "namespace": "default", "finalizers": [PROTECTION]}, "spec": {}})
    seen = cache()[0]
    claims = DeviceClaims(cast(Client, store), seen, lambda: RESOURCE_CLAIMS, binding_conditions(seen))
    claims._uses[BIND.uid] = [_Use("default", "gpu", {"devices": {"results": []}})]
    await prepare_in_vain(claims)
    assert [user["uid"] for user in store.body["status"]["reservedFor"]] == ["uid-a"]
    await claims.undo(BIND)
    assert store.body["status"] == {"reservedFor": []}


async def test_each_volume_that_comes_is_told() -> None:
    made, _ = cache(on_volumes_changed=lambda: volumes.look())
    made.put(node("n1"))
    told = asyncio.Queue[AssumedBind]()
    volumes = Volumes(cast(Client, Quiet()), made, 60.0, told.put_nowait)

    def claim(name: str, volume: str = "") -> dict[str, Any]:
        annotations = {SELECTED_NODE: "n1"} | ({"pv.kubernetes.io/bind-completed": "yes"} if volume else {})
        metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
        body = {"metadata": metadata, "spec": {"volumeName": volume}}
        made.put(ObjectSpec("PersistentVolumeClaim", "default", name, body))
        return body

    names = ("data", "logs")
    volumes._plans[BIND.uid] = _Plan([(read_claim(claim(name)), None) for name in names])
    made.assumed.binds[BIND.uid] = BIND
    preparing = asyncio.create_task(volumes.prepare(BIND))
    await asyncio.sleep(0)
    for name in names:
        made.put(ObjectSpec("PersistentVolume", "", f"for-{name}", {"metadata": {"name": f"for-{name}"}, "spec": {}}))
        claim(name, volume=f"for-{name}")
        assert await asyncio.wait_for(told.get(), 60.0) is BIND
    await preparing
    assert told.empty()


class Quiet:
    """Writes that nobody sees."""

    async def patch(self, *_: object, **__: object) -> None:
        return
