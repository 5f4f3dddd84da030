"""Pods of Kubeflow, Ray, JobSet and LeaderWorkerSet on a cluster without KAI's pod grouper: each workload starts as the gang that its
owner says, also where its kind is installed while the scheduler runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.worlds.kube.crds import serve, withdraw
from tests.worlds.live.cluster import NODES, World
from tests.worlds.live.kai import KAI, gpu_node, job_row, kai_world, member, queue, refusal

from navarch.cli.cluster.reading import read_overview
from navarch.embedded.api.server import ApiServer
from navarch.installed import installed
from navarch.kube.resources import PODS, Resource
from navarch.live.scheduler import Scheduler
from navarch.views.jobs import JobRow

pytestmark = pytest.mark.live
QUEUE = {"kai.scheduler/queue": "team"}
KUBEFLOW, RAY, JOBSET = "training.kubeflow.org/", "ray.io/", "jobset.sigs.k8s.io/"
LWS = "leaderworkerset.sigs.k8s.io/"


class Member(Struct, frozen=True):
    name: str
    labels: dict[str, str]
    owner: tuple[str, str, str] | None = None
    """API, kind and name of what stands between the workload and its pod."""


class Workload(Struct, frozen=True):
    """A workload of three pods that needs them all."""

    resource: Resource
    kind: str
    spec: dict[str, Any]
    members: tuple[Member, ...]
    annotations: dict[str, str] = {}
    job: str = "llm"
    """Its name in `navarch jobs`."""


def job_set_members() -> Iterator[Member]:
    for job, index in (("driver", 0), ("worker", 0), ("worker", 1)):
        name = f"llm-{job}-{index}"
        facts = {"jobset-name": "llm", "replicatedjob-name": job, "job-index": str(index)}
        yield Member(f"{name}-0", {f"{JOBSET}{key}": value for key, value in facts.items()}, ("batch/v1", "Job", name))


def leader_worker_members() -> Iterator[Member]:
    for i in range(3):
        facts = {"name": "llm", "group-index": "0", "worker-index": str(i)}
        owner = ("apps/v1", "StatefulSet", "llm-0" if i else "llm")
        yield Member(f"llm-0-{i}" if i else "llm-0", {f"{LWS}{key}": value for key, value in facts.items()}, owner)


WORKLOADS = (
    Workload(
        Resource("kubeflow.org", "v1", "pytorchjobs"),
        "PyTorchJob",
        {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}},
        tuple(Member(f"llm-{role}", {f"{KUBEFLOW}replica-type": role.split("-")[0]}) for role in ("master-0", "worker-0", "worker-1")),
    ),
    Workload(
        Resource("ray.io", "v1", "rayclusters"),
        "RayCluster",
        {"headGroupSpec": {}, "workerGroupSpecs": [{"groupName": "gpu", "replicas": 2}]},
        tuple(
            Member(f"llm-ray-{name}", {f"{RAY}cluster": "llm", f"{RAY}group": group})
            for name, group in (("head", "headgroup"), ("gpu-0", "gpu"), ("gpu-1", "gpu"))
        ),
    ),
    Workload(
        Resource("jobset.x-k8s.io", "v1alpha2", "jobsets"),
        "JobSet",
        {"replicatedJobs": [{"name": "driver", "template": {}}, {"name": "worker", "replicas": 2, "template": {}}]},
        tuple(job_set_members()),
    ),
    Workload(
        Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets"),
        "LeaderWorkerSet",
        {"replicas": 1, "leaderWorkerTemplate": {"size": 3}},
        tuple(leader_worker_members()),
        {f"{LWS}size": "3"},
        "llm-0",
    ),
)
TF_JOBS = Resource("kubeflow.org", "v1", "tfjobs")


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def play(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with kai_world(request, tmp_path) as made:
        await queue(made, "department")
        await queue(made, "team", "department")
        yield made
        for resource in (*(workload.resource for workload in WORKLOADS), TF_JOBS):
            await withdraw(made.client, resource)


async def make(world: World, resource: Resource, kind: str, spec: dict[str, Any], name: str = "llm") -> str:
    """An owner; its uid."""
    body = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
    made = await world.client.create(resource, body, namespace=world.namespace)
    return str(made["metadata"]["uid"])


async def add(world: World, workload: Workload, uid: str, one: Member) -> None:
    api, kind, name = one.owner or (workload.resource.api_version, workload.kind, "llm")
    owner = {"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": True}
    labels, place = {**one.labels, **QUEUE}, {"for": workload.kind}
    await member(world, one.name, labels=labels, owner=owner, annotations=workload.annotations, nodeSelector=place)


def known(world: World, scheduler: Scheduler, resource: Resource) -> list[str]:
    """Names of the owners that the scheduler has seen."""
    stores = (informer.store for informer, _ in scheduler.informers.kinds if informer.resource == resource)
    return sorted(name for store in stores for namespace, name in store if namespace == world.namespace)


async def jobs(world: World) -> list[JobRow]:
    """Of this test: others may have left groups on the same server."""
    found = await read_overview(world.client, "kai", installed(), print, ("kai-scheduler",))
    return [row for row in found.jobs if row.namespace == world.namespace]


async def job(world: World, workload: Workload) -> JobRow:
    """Its line, under its own name and kind."""
    (row,) = (row for row in await jobs(world) if (row.kind, row.name) == (workload.kind, workload.job))
    return row


async def shown_as(world: World, workload: Workload, why: str | tuple[str, ...], **wanted: int) -> None:
    """Wait until `navarch jobs` shows this of a workload, under its own name, with its minimum."""

    def holds(row: JobRow) -> bool:
        told = row.why.startswith(why) if why else not row.why
        return told and row.min_member == 3 and all(getattr(row, field) == number for field, number in wanted.items())

    await world.eventually(lambda: job(world, workload), holds)


async def test_each_workload_starts_as_its_owner_says(play: World) -> None:
    world = play
    for workload in WORKLOADS:
        await serve(world.client, workload.resource, workload.kind)
        await gpu_node(world, f"{workload.kind.lower()}-0", 2, **{"for": workload.kind})
    history = await world.watch()
    uids = {each.kind: await make(world, each.resource, each.kind, each.spec) for each in WORKLOADS}
    await make(world, WORKLOADS[0].resource, WORKLOADS[0].kind, WORKLOADS[0].spec, "idle")
    for workload in WORKLOADS:
        for each in workload.members[:2]:
            await add(world, workload, uids[workload.kind], each)
    async with world.scheduler(**KAI):
        for workload in WORKLOADS:
            await shown_as(world, workload, pending=2, why="Waiting for 3 pods, currently 2 exist")
        assert history.bound() == [], "two of three would fit, and are not all"
        for workload in WORKLOADS:
            await add(world, workload, uids[workload.kind], workload.members[2])
        for workload in WORKLOADS:
            await refusal(world, workload.members[2].name, "didn't have enough resources: GPUs")
            await shown_as(world, workload, pending=3, why=("needs ", "cannot start: needs "))
        assert history.bound() == [], "three pods, and GPUs for two"
        for workload in WORKLOADS:
            await gpu_node(world, f"{workload.kind.lower()}-1", 1, **{"for": workload.kind})
        await history.until_bound(12)
        for workload in WORKLOADS:
            await shown_as(world, workload, running=3, why="")
        rows = await jobs(world)
        assert {(row.kind, row.name) for row in rows} == {(each.kind, each.job) for each in WORKLOADS}, "nothing of one without pods"
    history.check()


async def test_a_kind_that_is_installed_later_speaks_for_pods_that_wait(play: World) -> None:
    world = play
    await gpu_node(world, "n0", 4)
    history = await world.watch()
    worker = {**QUEUE, f"{KUBEFLOW}replica-type": "worker"}
    # Of an owner whose kind is gone nothing is left but its name; any uid that lives keeps its pods from being collected.
    uid = (await world.client.get(NODES, "n0"))["metadata"]["uid"]
    owner = {"apiVersion": TF_JOBS.api_version, "kind": "TFJob", "name": "llm", "uid": uid, "controller": True}
    async with world.scheduler(**KAI) as scheduler:
        await member(world, "before", gpus=4, labels=QUEUE)
        await history.until_bound(1)
        for i in range(2):
            await member(world, f"llm-worker-{i}", labels=worker, owner=owner)
        await refusal(world, "llm-worker-0", "1 node(s) didn't have enough resources: GPUs")
        assert not scheduler.informers.serves(TF_JOBS)

        await serve(world.client, TF_JOBS, "TFJob")
        await make(world, TF_JOBS, "TFJob", {"tfReplicaSpecs": {"Worker": {"replicas": 3}}})
        await world.eventually(lambda: asyncio.sleep(0, known(world, scheduler, TF_JOBS)), lambda names: names == ["llm"])
        await world.client.delete(PODS, "before", namespace=world.namespace, grace_period=0)
        await member(world, "after", labels=QUEUE)
        await history.until_bound(1, "after")
        assert history.bound("llm") == [], "there is room for both, but by now it is known that three are needed"
        await member(world, "llm-worker-2", labels=worker, owner=owner)
        await history.until_bound(3, "llm")
        assert (await job_row(world, "llm")).min_member == 3
    history.check([("llm", 3)], lost=False)


async def test_pods_wait_for_an_owner_that_the_watch_has_not_shown(server: ApiServer, world: World) -> None:
    """Its kind is served, so it is sure to come: meanwhile one of its pods, for which there is room, does not start alone."""
    trainer = WORKLOADS[0]
    await queue(world, "department")
    await queue(world, "team", "department")
    await serve(world.client, trainer.resource, trainer.kind)
    await gpu_node(world, "n0", 3, **{"for": trainer.kind})
    history = await world.watch()
    async with world.scheduler(**KAI) as scheduler:
        await world.eventually(lambda: asyncio.sleep(0, scheduler.informers.serves(trainer.resource)), bool)
        server.faults.errors(500, path=trainer.resource.plural, method="GET")
        server.faults.cut_watches()
        uid = await make(world, trainer.resource, trainer.kind, trainer.spec)
        await add(world, trainer, uid, trainer.members[0])
        await refusal(world, trainer.members[0].name, f'the pytorchjob "{world.namespace}/llm" that owns it is not known')
        server.faults.clear()
        await world.eventually(lambda: asyncio.sleep(0, known(world, scheduler, trainer.resource)), lambda names: names == ["llm"])
        await refusal(world, trainer.members[0].name, "Waiting for 3 pods, currently 1 exist")
        assert history.bound() == []
        for each in trainer.members[1:]:
            await add(world, trainer, uid, each)
        await history.until_bound(3)
    history.check([("llm", 3)], lost=False)
