"""The whole scheduler under the very account that `navarch install` makes, on a real API server: nothing is forbidden."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.envtest.server import KubeApiServer
from tests.worlds.deploy.installing import install_on
from tests.worlds.live.claims import CLAIMS, CLASSES, DEVICE_CLASSES, RESOURCE_CLAIMS, SLICES, VOLUMES
from tests.worlds.live.cluster import QUEUES, World, lasting
from tests.worlds.live.priority_classes import classes
from tests.worlds.live.servers import real_world

from navarch.kube.client import PatchType
from navarch.kube.errors import NotFound
from navarch.kube.resources import Resource

pytestmark = pytest.mark.live
KAI_GROUPS = Resource("scheduling.run.ai", "v2alpha2", "podgroups")
KAI_QUEUES = Resource("scheduling.run.ai", "v2", "queues", namespaced=False)
REQUESTS = Resource("scheduling.run.ai", "v1alpha2", "bindrequests")
BATCH_GROUPS = [
    Resource("scheduling.incubator.k8s.io", "v1alpha1", "podgroups"),
    Resource("scheduling.sigs.dev", "v1alpha2", "podgroups"),
]
_numbers = itertools.count()


@pytest.fixture
async def installed(kube_apiserver: KubeApiServer, tmp_path: Path) -> AsyncIterator[tuple[World, Path]]:
    await asyncio.to_thread(install_on, kube_apiserver)
    account = await asyncio.to_thread(kube_apiserver.service_account, "navarch-system", "navarch")
    async with real_world(Path(kube_apiserver.kubeconfig), f"least-privilege-{next(_numbers)}", tmp_path) as world:
        yield world, account


async def test_a_scheduler_with_exactly_its_rights_does_all_its_work(installed: tuple[World, Path], forbidden: list[str]) -> None:
    world, account = installed
    await classes(world)
    forbidden.clear()  # what it took to set the scene
    await world.node(f"n-{world.namespace}", cpu="4")
    history = await world.watch()
    async with world.scheduler(kubeconfig=account, **lasting("navarch-system")):
        await world.gang("low", 4, priorityClassName=f"low-{world.namespace}")
        await history.until_bound(4)
        await world.eventually(lambda: world.get_group("low"), lambda found: found.get("status", {}).get("phase") == "Running")
        await world.eventually(
            lambda: world.client.get(QUEUES, "default"), lambda found: found.get("status", {}).get("state") == "Open"
        )
        await world.pod("high", cpu="4", priorityClassName=f"high-{world.namespace}")
        await history.until_bound(1, "high")
        await world.pod("too-large", cpu="64")
        await world.eventually(lambda: world.events("too-large"), bool)
    assert forbidden == []
    assert history.broken == []


def of(resource: Resource, kind: str) -> dict[str, str]:
    return {"apiVersion": resource.api_version, "kind": kind}


@contextlib.asynccontextmanager
async def clusterwide(world: World, resource: Resource, body: dict[str, Any]) -> AsyncIterator[str]:
    """An object that has no namespace, on a server that others use after us."""
    name = f"{world.namespace}-{resource.plural}"
    await world.client.create(resource, {**body, "metadata": {"name": name}})
    try:
        yield name
    finally:
        with contextlib.suppress(NotFound):
            await world.client.delete(resource, name)


async def test_volumes_and_devices_are_prepared_with_the_same_rights(installed: tuple[World, Path], forbidden: list[str]) -> None:
    world, account = installed
    node = f"n-{world.namespace}"
    await world.node(node, cpu="4", **{"kubernetes.io/hostname": node})
    history = await world.watch()
    late = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    async with (
        clusterwide(world, CLASSES, late) as storage_class,
        clusterwide(world, DEVICE_CLASSES, {"spec": {}}) as device_class,
        clusterwide(world, SLICES, {"spec": devices}),
    ):
        sizes = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class}
        affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}, "hostPath": {"path": "/tmp"}}
        async with clusterwide(world, VOLUMES, {"spec": {**sizes, **affinity, "capacity": {"storage": "2Gi"}}}) as volume:
            available = {"status": {"phase": "Available"}}
            await world.client.patch(VOLUMES, volume, available, PatchType.MERGE, subresource="status")
            asked = {"spec": {**sizes, "resources": {"requests": {"storage": "1Gi"}}}}
            await world.client.create(CLAIMS, {"metadata": {"name": "data"}, **asked}, namespace=world.namespace)
            request = {"name": "one", "exactly": {"deviceClassName": device_class, "count": 1, "allocationMode": "ExactCount"}}
            claim = {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": [request]}}}
            await world.client.create(RESOURCE_CLAIMS, claim, namespace=world.namespace)
            async with world.scheduler(kubeconfig=account, lock_namespace="navarch-system"):
                mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
                await world.pod("a", volumes=mounted, resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
                await world.eventually(lambda: world.client.get(VOLUMES, volume), lambda found: "claimRef" in found["spec"])
                done = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": volume}}
                await world.client.patch(CLAIMS, "data", done, PatchType.MERGE, namespace=world.namespace)
                await history.until_bound(1)
            taken = await world.client.get(RESOURCE_CLAIMS, "gpu", namespace=world.namespace)
            assert taken["status"]["reservedFor"][0]["name"] == "a"
    assert forbidden == []


async def test_groups_of_the_other_dialects_are_written_with_the_same_rights(
    installed: tuple[World, Path], forbidden: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    world, account = installed
    caplog.set_level(logging.INFO)
    await world.node(f"n-{world.namespace}", cpu="4")
    history = await world.watch()
    free = {resource: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for resource in ("gpu", "cpu", "memory")}
    team = {**of(KAI_QUEUES, "Queue"), "spec": {"resources": free}}
    async with clusterwide(world, KAI_QUEUES, team) as queue, world.scheduler(kubeconfig=account, lock_namespace="navarch-system"):
        for resource in BATCH_GROUPS:
            name = resource.group.replace(".", "-")
            body = {**of(resource, "PodGroup"), "metadata": {"name": name}, "spec": {"minMember": 1}}
            await world.client.create(resource, body, namespace=world.namespace)
            await world.pod(name, group=name)
            await world.eventually(
                lambda resource=resource, name=name: world.client.get(resource, name, namespace=world.namespace),
                lambda found: found.get("status", {}).get("phase") == "Running",
            )
        await history.until_bound(2)
        for name, least in (("fits", 1), ("waits", 9)):
            body = {**of(KAI_GROUPS, "PodGroup"), "metadata": {"name": name}, "spec": {"minMember": least, "queue": queue}}
            await world.client.create(KAI_GROUPS, body, namespace=world.namespace)
            for i in range(least):
                pod = world.pod_body(f"{name}-{i}", "1", "", "navarch")
                pod["metadata"]["annotations"] = {"pod-group-name": name}
                await world.client.create(Resource("", "v1", "pods"), pod, namespace=world.namespace)
        await world.eventually(
            lambda: world.client.list(REQUESTS, namespace=world.namespace),
            lambda found: [each["spec"]["podName"] for each in found.items] == ["fits-0"],
        )
        await world.eventually(
            lambda: world.client.get(KAI_GROUPS, "waits", namespace=world.namespace),
            lambda found: found.get("status", {}).get("schedulingConditions"),
        )
        failed = {"status": {"phase": "Failed", "failedAttempts": 99}}
        await world.client.patch(REQUESTS, "fits-0", failed, PatchType.MERGE, namespace=world.namespace, subresource="status")
        removed = f"BindRequest {world.namespace}/fits-0 failed"
        await world.eventually(lambda: asyncio.sleep(0, [r for r in caplog.records if removed in r.getMessage()]), bool)
    assert forbidden == []
