"""The claim for a pod's extended resources: made before the binding, and removed if the pod is not bound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.device_objects import device_class, slice_of
from tests.worlds.live_parts.cluster_cache import cache, node
from tests.worlds.live_parts.resources import RESOURCE_CLAIMS, binding_conditions

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.embedded.api.server import ApiServer
from navarch.engine.policy import load
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.connect import connect
from navarch.kube.errors import Unreachable
from navarch.kube.resources import Resource
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cycle import run_cycle
from navarch.live.prebind.claim_access import ClaimAccess
from navarch.live.prebind.extended_resource_claims import ExtendedResourceClaims
from navarch.live.prebind.preparation import PreparationFailed
from navarch.model.spec import ObjectSpec
from navarch.testing.builders import pod

Object = dict[str, Any]
PODS = Resource("", "v1", "pods")
POLICY = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
GPU = "example.com/gpu"


class World:
    """A node with two devices of a class that stands behind the resource, and a pod that asks for one."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.cache = cache()[0]
        self.cache.put(node("n1"))
        gpus = device_class()
        gpus["spec"]["extendedResourceName"] = GPU
        self.shows(gpus)
        self.shows(slice_of("n1", "a", "a"))
        self.claims = ExtendedResourceClaims(ClaimAccess(client, self.cache, lambda: RESOURCE_CLAIMS, binding_conditions(self.cache)))

    def shows(self, manifest: Object) -> None:
        meta = manifest["metadata"]
        self.cache.put(ObjectSpec(manifest["kind"], meta.get("namespace", ""), meta["name"], manifest))

    async def pod(self) -> Object:
        manifest = dict(pod("p").request(GPU, 1))
        manifest["spec"]["schedulerName"] = "navarch"
        manifest["spec"]["containers"][0]["resources"]["limits"] = {GPU: "1"}
        body = {**manifest, "metadata": {"name": "p"}}
        made: Object = await self.client.create(PODS, body, namespace="default")
        self.cache.put_pod(from_manifest({**made, "apiVersion": "v1", "kind": "Pod"}, Pod))
        return made

    def decide(self) -> AssumedBind:
        registry = installed()
        cycle = run_cycle(self.cache.cluster, load(POLICY, registry.catalogue(), "test"), registry, 0.0, 1, "c")
        self.claims.plan(cycle)
        (decided,) = cycle.record.binds
        bind = AssumedBind(decided.uid, "default", "p", decided.node, decided.job, 0.0)
        self.cache.assumed.binds[bind.uid] = bind
        self.cache.refresh(bind.uid)
        return bind

    async def found(self) -> list[Object]:
        return list((await self.client.list(RESOURCE_CLAIMS, namespace="default")).items)

    @property
    def seen(self) -> int:
        """Claims that cycles see."""
        return len(self.cache.cluster.objects.get("ResourceClaim", {}))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with ApiServer() as server, Client(connect(server.kubeconfig(tmp_path / "kubeconfig"))) as client:
        yield World(client)


async def test_the_claim_is_made_and_the_pod_names_it(world: World) -> None:
    made = await world.pod()
    bind = world.decide()
    assert world.seen == 1, "the next cycle knows the devices as taken"
    await world.claims.prepare(bind)
    (claim,) = await world.found()
    name = claim["metadata"]["name"]
    assert name.startswith("p-extended-resources-")
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert [owner["uid"] for owner in claim["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]
    (request,) = claim["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "gpu" and request["exactly"]["count"] == 1
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert (result["device"], result["request"]) == ("g0", request["name"])
    assert [user["name"] for user in claim["status"]["reservedFor"]] == ["p"]
    status = (await world.client.get(PODS, "p", namespace="default"))["status"]["extendedResourceClaimStatus"]
    mapping = {"containerName": "main", "resourceName": GPU, "requestName": request["name"]}
    assert status == {"requestMappings": [mapping], "resourceClaimName": name}
    world.shows({**claim, "kind": "ResourceClaim"})
    world.claims.done(bind)
    assert not world.claims.wants(bind.uid) and world.seen == 1


async def test_a_pod_that_is_not_bound_leaves_no_claim(world: World) -> None:
    await world.pod()
    bind = world.decide()
    await world.claims.prepare(bind)
    await world.claims.undo(bind)
    assert (await world.found(), world.seen) == ([], 0)


async def test_a_bind_that_never_started_leaves_nothing(world: World) -> None:
    await world.pod()
    bind = world.decide()
    await world.claims.undo(bind)
    assert world.seen == 0


async def test_a_claim_of_an_earlier_attempt_is_removed_first(world: World) -> None:
    """The scheduler ended before it had bound the pod."""
    await world.pod()
    first = world.decide()
    await world.claims.prepare(first)
    (old,) = await world.found()
    again = World(world.client)
    again.shows({**old, "kind": "ResourceClaim"})
    manifest = {**await world.client.get(PODS, "p", namespace="default"), "apiVersion": "v1", "kind": "Pod"}
    again.cache.put_pod(from_manifest(manifest, Pod))
    await again.claims.prepare(again.decide())
    (new,) = await again.found()
    assert new["metadata"]["name"] != old["metadata"]["name"]


async def test_a_refusal_says_what_failed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object, **__: object) -> Object:
        raise Unreachable("no route")

    await world.pod()
    bind = world.decide()
    monkeypatch.setattr(world.client, "create", refused)
    with pytest.raises(PreparationFailed, match=r"resource claim for extended resources: .*no route"):
        await world.claims.prepare(bind)
    await world.claims.undo(bind)
    assert (await world.found(), world.seen) == ([], 0)


async def test_a_server_that_does_not_know_the_field_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet would not know which devices the pod has."""
    patch = world.client.patch

    async def forgetting(resource: Resource, *words: Any, **options: Any) -> Object:
        made: Object = await patch(resource, *words, **options)
        made["status"].pop("extendedResourceClaimStatus", None)
        return made

    await world.pod()
    bind = world.decide()
    monkeypatch.setattr(world.client, "patch", forgetting)
    with pytest.raises(PreparationFailed, match=r"the API server does not keep status\.extendedResourceClaimStatus"):
        await world.claims.prepare(bind)
