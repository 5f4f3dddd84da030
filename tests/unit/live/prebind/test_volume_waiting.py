"""Waiting for volumes before a pod is bound: how it ends, and that it ends."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.storage import Object, Seen, bound, claim, storage_class, volume

from navarch.kube.client import Client
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.prebind.preparation import PreparationFailed
from navarch.live.prebind.volumes import SELECTED_NODE

pytestmark = pytest.mark.looptime


class Willing:
    """An API server that takes what it is sent; what comes of it, the test shows to the cache."""

    async def patch(self, *_: object, **__: object) -> Object:
        return {}


def annotated(name: str, node: str) -> Object:
    return claim(name, uid=f"uid-{name}", annotations={SELECTED_NODE: node})


def waiting(*claims: str, **options: Any) -> tuple[Seen, AssumedBind, asyncio.Task[None]]:
    """A pod whose claims are to get their volumes on n0, and what waits for them."""
    world = Seen(cast(Client, Willing()), **options)
    world.shows(storage_class(), *(claim(name, uid=f"uid-{name}") for name in claims))
    world.pod("a", *claims)
    (bind,) = world.decide()
    return world, bind, asyncio.create_task(world.volumes.prepare(bind))


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def now() -> float:
    return asyncio.get_running_loop().time()


async def failure_of(preparing: asyncio.Task[None]) -> str:
    with pytest.raises(PreparationFailed) as error:
        await preparing
    return str(error.value)


async def test_the_pod_is_bound_as_soon_as_its_last_volume_is_seen() -> None:
    world, _, preparing = waiting("x", "y")
    await settled()
    world.shows(volume("pv-x", "n0"), bound(annotated("x", "n0"), "pv-x"))
    await settled()
    assert not preparing.done(), "y has no volume"
    world.shows(bound(annotated("y", "n0"), "pv-y"))
    await settled()
    assert not preparing.done(), "it is not known yet from where pv-y can be reached"
    world.shows(volume("pv-y", "n0"))
    await preparing
    assert now() == 0.0


async def test_a_provisioner_that_takes_the_node_off_again_cannot_use_it() -> None:
    world, _, preparing = waiting("x")
    await settled()
    world.shows(claim("x", uid="uid-x", labels={"a": "b"}))
    await settled()
    assert not preparing.done(), "what the watch shows is older than our write"
    world.shows(annotated("x", "n0"))
    await settled()
    assert not preparing.done()
    world.shows(claim("x", uid="uid-x"))
    assert await failure_of(preparing) == "the provisioner of claim default/x cannot use n0"
    assert now() == 0.0


async def test_a_provisioner_that_refuses_what_the_scheduler_before_us_chose() -> None:
    """The node was chosen before we came: nothing of ours has to be seen first."""
    world = Seen(cast(Client, Willing()), "n0", "n1")
    world.shows(storage_class(), annotated("x", "n1"))
    world.pod("a", "x")
    (bind,) = world.decide()
    assert bind.node == "n1"
    preparing = asyncio.create_task(world.volumes.prepare(bind))
    await settled()
    assert not preparing.done()
    world.shows(claim("x", uid="uid-x"))
    assert await failure_of(preparing) == "the provisioner of claim default/x cannot use n1"
    assert now() == 0.0


async def test_a_matched_volume_needs_no_node_on_its_claim() -> None:
    world = Seen(cast(Client, Referring()))
    world.shows(storage_class(), claim("x", uid="uid-x"), volume("pv-x", "n0"))
    world.pod("a", "x")
    (bind,) = world.decide()
    preparing = asyncio.create_task(world.volumes.prepare(bind))
    await settled()
    world.shows(claim("x", uid="uid-x", labels={"a": "b"}))
    await settled()
    assert not preparing.done(), "only a claim with a node can lose it"
    world.shows(bound(claim("x", uid="uid-x"), "pv-x"))
    await preparing
    world.volumes.done(bind)
    assert not world.cache.is_assumed("PersistentVolume", "", "pv-x"), "from now on the API tells"


class Referring(Willing):
    async def get(self, *_: object, **__: object) -> Object:
        return {"metadata": {"name": "pv-x", "resourceVersion": "1"}, "spec": {}}


async def test_a_claim_that_was_replaced_is_not_waited_for() -> None:
    world, _, preparing = waiting("x")
    await settled()
    world.shows(claim("x", uid="another"))
    assert await failure_of(preparing) == "claim default/x is gone"


async def test_a_pod_that_is_gone_is_not_waited_for() -> None:
    world, bind, preparing = waiting("x")
    await settled()
    world.cache.remove_pod(bind.uid)
    assert await failure_of(preparing) == "the pod is gone"
    assert now() <= 1.0


async def test_the_wait_for_a_volume_ends_after_the_time_out() -> None:
    _, _, preparing = waiting("x", timeout=90.0)
    assert await failure_of(preparing) == "volumes were not bound within 90 s"
    assert now() == 90.0


async def test_a_volume_out_of_reach_ends_it() -> None:
    world, _, preparing = waiting("x")
    await settled()
    world.shows(volume("pv-x", "n7"), bound(annotated("x", "n0"), "pv-x"))
    assert await failure_of(preparing) == "claim default/x got volume pv-x, which n0 cannot use"


async def test_a_node_that_is_gone_ends_it() -> None:
    world, _, preparing = waiting("x")
    await settled()
    node = world.cache.cluster.nodes
    spec = node.specs[node.rows.of["n0"]]
    assert spec is not None
    world.cache.remove(spec)
    world.shows(volume("pv-x", "n0"), bound(annotated("x", "n0"), "pv-x"))
    assert await failure_of(preparing) == "node n0 is gone"


async def test_a_volume_whose_kind_became_a_driver_is_looked_for_under_the_drivers_label() -> None:
    """The node has the zone under the driver's name only; that it counts, its CSINode says."""
    world, _, preparing = waiting("x")
    await settled()
    node = world.cache.cluster.nodes
    spec = node.specs[node.rows.of["n0"]]
    assert spec is not None
    world.cache.put(replace(spec, labels={"topology.ebs.csi.aws.com/zone": "a"}))
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    world.shows({"kind": "CSINode", "metadata": {"name": "n0", "annotations": migrated}, "spec": {"drivers": []}})
    disk = volume("pv-x", "a", key="topology.kubernetes.io/zone", awsElasticBlockStore={"volumeID": "v"})
    world.shows(disk, bound(annotated("x", "n0"), "pv-x"))
    await preparing
