"""Claims that several pods share, and the step that allocates them."""

from __future__ import annotations

from typing import Any, cast

from tests.worlds.device_objects import claim, device_class, exactly, slice_of, user
from tests.worlds.live_parts.cluster_cache import cache, node
from tests.worlds.live_parts.resources import RESOURCE_CLAIMS, binding_conditions

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.embedded.api.patches.json_patch import merge
from navarch.engine.policy import load
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cycle import Cycle, run_cycle
from navarch.live.prebind.claim_access import ClaimAccess
from navarch.live.prebind.device_claims import KIND, DeviceClaims
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
        client = cast(Client, self.server)
        self.claims = DeviceClaims(ClaimAccess(client, self.cache, lambda: RESOURCE_CLAIMS, binding_conditions(self.cache)))

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
