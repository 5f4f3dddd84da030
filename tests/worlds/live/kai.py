"""What plays in KAI's words need: a server with its kinds, queues with quotas, groups in parts, nodes with GPUs, what users see."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.live.cluster import NODES, World
from tests.worlds.live.servers import serve_kinds, world_on

from navarch.cli.cluster.reading import read_overview
from navarch.installed import installed
from navarch.kube.client import PatchType
from navarch.kube.errors import NotFound
from navarch.kube.resources import PODS, Resource
from navarch.views.jobs import JobRow
from navarch.views.queues import QueueRow

GROUPS = Resource("scheduling.run.ai", "v2alpha2", "podgroups")
QUEUES = Resource("scheduling.run.ai", "v2", "queues", namespaced=False)
REQUESTS = Resource("scheduling.run.ai", "v1alpha2", "bindrequests")
GPU = "nvidia.com/gpu"
KAI: dict[str, Any] = {"policy": "kai", "scheduler_names": ("kai-scheduler",)}
FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


@contextlib.asynccontextmanager
async def kai_world(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[World]:
    """Either server with KAI's kinds, and without its queues and groups when the test is over: queues belong to the whole server."""
    async with world_on(request, folder, lambda client: serve_kinds(client, GROUPS, QUEUES, REQUESTS)) as world:
        try:
            yield world
        finally:
            for resource, namespace in ((GROUPS, world.namespace), (REQUESTS, world.namespace), (QUEUES, "")):
                for found in (await world.client.list(resource, namespace=namespace or None)).items:
                    with contextlib.suppress(NotFound):
                        await world.client.delete(resource, found["metadata"]["name"], namespace=namespace or None)


async def gpu_node(world: World, name: str, gpus: int = 0, **more: str) -> None:
    """A node with GPUs and plenty of everything else."""
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "110", **({GPU: str(gpus)} if gpus else {})}
    world.capacity[name] = capacity
    status = {"capacity": capacity, "allocatable": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
    await world.client.create(NODES, {"metadata": {"name": name, "labels": more}, "status": status})


async def queue(world: World, name: str, parent: str = "", **gpu: float) -> None:
    """Bounded in GPUs alone."""
    resources = {"gpu": {**FREE, **gpu}, "cpu": FREE, "memory": FREE}
    spec = {"resources": resources, **({"parentQueue": parent} if parent else {})}
    body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
    await world.client.create(QUEUES, body)


async def group(world: World, name: str, queue: str = "team", **spec: Any) -> None:
    body = {"apiVersion": GROUPS.api_version, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"queue": queue, **spec}}
    await world.client.create(GROUPS, body, namespace=world.namespace)


async def member(
    world: World,
    name: str,
    group: str = "",
    part: str = "",
    gpus: int = 1,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    owner: Mapping[str, Any] | None = None,
    grace: int = 0,
    **spec: Any,
) -> dict[str, Any]:
    """A pod of a group, of a part of it, or of an owner."""
    body = world.pod_body(name, "100m", "", "kai-scheduler", **{"terminationGracePeriodSeconds": grace, **spec})
    if gpus:
        body["spec"]["containers"][0]["resources"]["limits"] = {GPU: str(gpus)}
        body["spec"]["containers"][0]["resources"]["requests"][GPU] = str(gpus)
    body["metadata"]["annotations"] = {**(annotations or {}), **({"pod-group-name": group} if group else {})}
    body["metadata"]["labels"] = {**(labels or {}), **({"kai.scheduler/subgroup-name": part} if part else {})}
    if owner is not None:
        body["metadata"]["ownerReferences"] = [dict(owner)]
    made: dict[str, Any] = await world.client.create(PODS, body, namespace=world.namespace)
    return made


async def members(world: World, group: str, count: int, gpus: int = 1, part: str = "") -> None:
    stem = f"{group}-{part}" if part else group
    for i in range(count):
        await member(world, f"{stem}-{i}", group, part, gpus)


async def runs(world: World, *names: str) -> None:
    """What their kubelet would say of pods that have a node."""
    for name in names:
        body = {"status": {"phase": "Running"}}
        await world.client.patch(PODS, name, body, PatchType.MERGE, namespace=world.namespace, subresource="status")


async def get_group(world: World, name: str) -> dict[str, Any]:
    return await world.client.get(GROUPS, name, namespace=world.namespace)


async def told(world: World, name: str) -> dict[str, Any]:
    """The condition of a group that waits, once it has one."""

    async def last() -> dict[str, Any]:
        found = (await get_group(world, name)).get("status", {}).get("schedulingConditions") or [{}]
        return dict(found[-1])

    return dict(await world.eventually(last, bool))


async def refusal(world: World, pod: str, words: str) -> None:
    """Wait until a pod that has no node is told this."""

    async def said() -> str:
        found = (await world.get_pod(pod)).get("status", {}).get("conditions") or ()
        return next((c["message"] for c in found if c["type"] == "PodScheduled" and c["status"] == "False"), "")

    await world.eventually(said, lambda message: words in message)


async def job_row(world: World, name: str) -> JobRow:
    """The line of `navarch jobs`."""
    found = await read_overview(world.client, "kai", installed(), print, ("kai-scheduler",))
    (row,) = (row for row in found.jobs if (row.namespace, row.name) == (world.namespace, name))
    return row


async def shown(world: World, name: str, **wanted: Any) -> None:
    """Wait until `navarch jobs` shows this of a job; of words, how they begin."""

    def holds(row: JobRow) -> bool:
        found = {field: getattr(row, field) for field in wanted}
        return all(found[f].startswith(v) if isinstance(v, str) and v else found[f] == v for f, v in wanted.items())

    await world.eventually(lambda: job_row(world, name), holds)


async def queue_rows(world: World) -> dict[str, QueueRow]:
    """The lines of `navarch queues --policy kai`."""
    found = await read_overview(world.client, "kai", installed(), print, ("kai-scheduler",))
    return {row.name: row for row in found.queues}
