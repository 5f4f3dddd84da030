"""Kinds that come and go while the scheduler runs: with another version than it waited for, and with all their objects."""

from __future__ import annotations

import asyncio

import pytest
from tests.worlds.kube.crds import serve
from tests.worlds.live.cluster import GROUPS, World
from tests.worlds.live.stored_kinds import stored

from navarch import manifests
from navarch.kube.client import PatchType
from navarch.kube.resources import CRDS, Resource

pytestmark = pytest.mark.live
JOBS = Resource("kubeflow.org", "v1", "mpijobs")
"""As the training operator installs it: v1 alone, where the MPI operator has v2beta1."""


async def test_a_kind_that_comes_in_its_other_version_is_watched_in_that_one(world: World) -> None:
    async with world.scheduler() as scheduler:
        await world.eventually(lambda: asyncio.sleep(0, scheduler.operator_server.missing()), lambda missing: missing == [])
        assert not scheduler.informers.serves(JOBS)
        await serve(world.client, JOBS, "MPIJob")
        await world.eventually(lambda: asyncio.sleep(0, scheduler.informers.serves(JOBS)), bool)
        body = {"apiVersion": JOBS.api_version, "kind": "MPIJob", "metadata": {"name": "sum"}, "spec": {"mpiReplicaSpecs": {}}}
        await world.client.create(JOBS, body, namespace="default")
        await world.eventually(lambda: asyncio.sleep(0, stored(scheduler, JOBS)), lambda names: names == ["sum"])


async def test_a_crd_that_goes_takes_its_groups_with_it_and_comes_back_with_a_subresource(world: World) -> None:
    """Its status was written with the object before; afterwards that would be ignored by the API server."""
    name = "podgroups.scheduling.volcano.sh"
    crd = next(each for each in manifests.crds() if each["metadata"]["name"] == name)
    assert "status" not in crd["spec"]["versions"][0].get("subresources", {})
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler() as scheduler:
        await world.gang("first", 2)
        await history.until_bound(2)
        await world.eventually(lambda: world.get_group("first"), lambda found: found.get("status", {}).get("phase") == "Running")
        await world.client.delete(CRDS, name)
        await world.eventually(lambda: asyncio.sleep(0, scheduler.cache.groups()), lambda groups: list(groups) == [])
        crd["spec"]["versions"][0]["subresources"] = {"status": {}}
        await world.client.create(CRDS, crd)
        await world.eventually(lambda: asyncio.sleep(0, scheduler.informers.serves(GROUPS)), bool)
        await world.gang("second", 2)
        await history.until_bound(4)
        await world.eventually(lambda: world.get_group("second"), lambda found: found.get("status", {}).get("phase") == "Running")
        # And back again, under a group that stays: what has no subresource any more must not be written to it.
        plain = [{"op": "remove", "path": "/spec/versions/0/subresources/status"}]
        await world.client.patch(CRDS, name, plain, PatchType.JSON)
        await world.eventually(lambda: world.client.discovery.serves(GROUPS, "status"), lambda served: not served)
        await world.gang("third", 2, cpu="0")
        await history.until_bound(6)
        await world.eventually(lambda: world.get_group("third"), lambda found: found.get("status", {}).get("phase") == "Running")
