"""A write before a binding whose answer is lost: it may have been made, so it is taken back like one that was."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.unit.cache.test_live_mirror import mirror

from navarch.cache.assumed import AssumedBind
from navarch.cache.device_claims import PROTECTION, DeviceClaims, _Use
from navarch.cache.preparing import PreparationFailed, Step
from navarch.cache.volumes import SELECTED_NODE, Volumes, _Plan
from navarch.cluster.json_patch import merge
from navarch.kube.client import Client
from navarch.kube.errors import OutcomeUnknown
from navarch.kube.resources import Resource
from navarch.model.storage import read_claim

BIND = AssumedBind("uid-a", "default", "a", "n1", "default/pod/a", 0.0)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims")


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
    volumes = Volumes(cast(Client, store), mirror()[0], 60.0)
    volumes._plans[BIND.uid] = _Plan([(read_claim(body), None)])
    await prepare_in_vain(volumes)
    assert store.body["metadata"]["annotations"] == {SELECTED_NODE: "n1"}
    await volumes.undo(BIND)
    assert store.body["metadata"]["annotations"] == {}


async def test_devices_that_were_allocated() -> None:
    store = Store({"metadata": {"name": "gpu", "namespace": "default", "finalizers": [PROTECTION]}, "spec": {}})
    claims = DeviceClaims(cast(Client, store), mirror()[0], lambda: RESOURCE_CLAIMS)
    claims._uses[BIND.uid] = [_Use("default", "gpu", {"devices": {"results": []}})]
    await prepare_in_vain(claims)
    assert [user["uid"] for user in store.body["status"]["reservedFor"]] == ["uid-a"]
    await claims.undo(BIND)
    assert store.body["status"] == {"reservedFor": []}
