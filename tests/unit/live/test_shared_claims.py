"""Pods that share a claim on devices: what is promised to one stays promised when another is not bound."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.unit.live.test_cluster_cache import cache, node
from tests.unit.live.test_lost_preparations import RESOURCE_CLAIMS
from tests.unit.plugins.predicates.test_dynamic_resources import claim, device_class, exactly, slice_of, user

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.embedded.api.patches.json_patch import merge
from navarch.engine.policy import load
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cycle import Cycle, run_cycle
from navarch.live.prebind.device_claims import KIND, DeviceClaims
from navarch.live.prebind.preparation import PreparationFailed
from navarch.model.spec import ObjectSpec

POLICY = {"actions": "allocate, backfill", "tiers": [{"plugins": [{"name": "predicates"}]}]}


class Server:
    """Has the claim, whose version grows with every write."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found

    async def get(self, *_: object, **__: object) -> dict[str, Any]:
        return self.found

    async def patch(self, resource: object, name: str, body: dict[str, Any], *_: object, **__: object) -> dict[str, Any]:
        return await self.update(resource, name, merge(self.found, body))

    async def update(self, resource: object, name: str, body: dict[str, Any], **_: object) -> dict[str, Any]:
        version = int(self.found["metadata"].get("resourceVersion", 10)) + 1
        self.found = {**body, "metadata": {**body["metadata"], "resourceVersion": str(version)}}
        return self.found


class World:
    """A node with two devices, and the claim `shared` on one of them."""

    def __init__(self) -> None:
        self.cache: ClusterCache = cache()[0]
        self.cache.put(node("n1"))
        for found in (device_class(), slice_of("n1", "a", "a"), claim("shared", exactly())):
            self.shows(found)
        self.server = Server(claim("shared", exactly()))
        self.claims = DeviceClaims(cast(Client, self.server), self.cache, lambda: RESOURCE_CLAIMS)

    def shows(self, manifest: dict[str, Any]) -> None:
        meta = manifest["metadata"]
        self.cache.put(ObjectSpec(manifest["kind"], meta.get("namespace", ""), meta["name"], manifest))

    def pod(self, name: str, *of: str) -> None:
        manifest = user(name, *of)
        manifest["metadata"]["uid"] = f"uid-{name}"
        manifest["spec"]["schedulerName"] = "navarch"
        self.cache.put_pod(from_manifest(manifest, Pod))

    def decide(self) -> Cycle:
        registry = installed()
        cycle = run_cycle(self.cache.cluster, load(POLICY, registry.catalogue(), "test"), registry, 0.0, 1, "c")
        self.claims.plan(cycle)
        for each in cycle.record.binds:
            bind = self.cache.assumed.binds[each.uid] = bind_of(each.uid)
            self.cache.refresh(bind.uid)
        return cycle

    async def is_not_bound(self, name: str) -> None:
        bind = self.cache.assumed.binds.pop(f"uid-{name}")
        await self.claims.undo(bind)
        self.cache.remove_pod(bind.uid)

    @property
    def seen(self) -> tuple[bool, list[str]]:
        """Whether cycles see the claim with devices, and whose it is."""
        status = self.cache.cluster.objects[KIND]["default", "shared"].get("status") or {}
        return bool(status.get("allocation")), [each["name"] for each in status.get("reservedFor") or ()]


def bind_of(uid: str) -> AssumedBind:
    name = uid.removeprefix("uid-")
    return AssumedBind(uid, "default", name, "n1", f"default/pod/{name}", 0.0)


async def test_what_one_gives_up_stays_promised_to_the_other() -> None:
    world = World()
    world.pod("p1", "shared")
    world.pod("p2", "shared")
    assert len(world.decide().record.binds) == 2
    assert world.seen == (True, ["p1", "p2"])
    await world.is_not_bound("p2")
    assert world.seen == (True, ["p1"])
    world.shows(claim("other", exactly(2)))
    world.pod("p3", "other")
    assert world.decide().record.binds == [], "a device that p1 was promised is given away"
    await world.is_not_bound("p1")
    assert world.seen == (False, [])
    assert [bind.uid for bind in world.decide().record.binds] == ["uid-p3"]


async def test_an_assumption_ends_when_all_who_share_it_are_seen() -> None:
    world = World()
    world.pod("p1", "shared")
    world.pod("p2", "shared")
    world.decide()
    written = dict(world.cache.cluster.objects[KIND]["default", "shared"])
    users = written["status"]["reservedFor"]
    world.shows({**written, "status": {**written["status"], "reservedFor": users[1:]}})
    assert world.seen == (True, ["p1", "p2"]), "p1 is not seen yet, and still promised"
    world.shows(written)
    assert not world.cache.is_assumed(KIND, "default", "shared")
    await world.is_not_bound("p1")
    assert world.seen == (True, ["p1", "p2"]), "what the API shows is the truth until it shows something else"


@pytest.mark.parametrize("late", [False, True])
async def test_an_assumption_ends_although_its_pod_was_never_seen_among_the_users(late: bool) -> None:
    """The watch was cut: when it shows the claim again the pod has been bound, has run and is gone. `late`: and it does so before
    the answer to our write is here."""
    world = World()
    world.pod("p1", "shared")
    world.decide()
    freed = claim("shared", exactly())
    freed["metadata"]["resourceVersion"] = "20"
    if late:
        world.shows(freed)
        assert world.seen == (True, ["p1"]), "it may well be older than our write"
    await world.claims.prepare(bind_of("uid-p1"))
    world.claims.done(bind_of("uid-p1"))
    world.cache.remove_pod("uid-p1")
    if not late:
        assert world.seen == (True, ["p1"])
        world.shows(freed)
    assert world.seen == (False, [])


async def test_devices_are_not_given_to_another_claim_of_the_same_name() -> None:
    world = World()
    world.shows({**claim("shared", exactly()), "metadata": {"name": "shared", "namespace": "default", "uid": "first"}})
    world.pod("p1", "shared")
    world.decide()
    world.server.found = {**claim("shared", exactly(2)), "metadata": {"name": "shared", "namespace": "default", "uid": "second"}}
    with pytest.raises(PreparationFailed, match="another has its name"):
        await world.claims.prepare(bind_of("uid-p1"))
    await world.is_not_bound("p1")
    assert "status" not in world.server.found or "reservedFor" not in world.server.found["status"]
