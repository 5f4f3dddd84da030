"""Volcano's controller makes the pods of a Job once its group is admitted: by the scheduler that the Job names."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.worlds.kube.crds import serve, withdraw
from tests.worlds.live.cluster import GROUPS, World

from navarch.kube.resources import PODS, Resource

pytestmark = pytest.mark.live
JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs")
WITH_ENQUEUE = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: proportion}]
"""
WITHOUT = WITH_ENQUEUE.replace("enqueue, ", "")


@pytest.fixture
async def jobs(any_world: World) -> AsyncIterator[World]:
    """With Volcano's Jobs, which belong to its controller, for as long as a test lasts."""
    await serve(any_world.client, JOBS, "Job")
    yield any_world
    await withdraw(any_world.client, JOBS)


async def job(world: World, name: str, scheduler: str) -> None:
    """A Job, and the group that the controller makes of it."""
    template = {"spec": {"containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Never"}}
    spec = {"schedulerName": scheduler, "minAvailable": 2, "tasks": [{"name": "worker", "replicas": 2, "template": template}]}
    body = {"apiVersion": JOBS.api_version, "kind": "Job", "metadata": {"name": name}, "spec": spec}
    made = await world.client.create(JOBS, body, namespace=world.namespace)
    owner = {"apiVersion": JOBS.api_version, "kind": "Job", "name": name, "uid": made["metadata"]["uid"], "controller": True}
    group = {
        "apiVersion": GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {"minMember": 2, "queue": "default"},
    }
    await world.client.create(GROUPS, group, namespace=world.namespace)


async def phase(world: World, name: str) -> str:
    return str((await world.get_group(name)).get("status", {}).get("phase", ""))


@pytest.mark.parametrize("policy", [WITH_ENQUEUE, WITHOUT], ids=["enqueue", "none"])
async def test_a_group_without_pods_is_admitted_by_the_scheduler_that_its_job_names(jobs: World, policy: str) -> None:
    world = jobs
    file = world.folder / "policy.yaml"
    file.write_text(policy, encoding="utf-8")
    await world.node(f"n-{world.namespace}", cpu="4")
    history = await world.watch()
    async with world.scheduler(policy=str(file), scheduler_names=("navarch",)):
        await job(world, "theirs", "volcano")
        await job(world, "ours", "navarch")
        await world.eventually(lambda: phase(world, "ours"), lambda found: found == "Inqueue")
        assert await phase(world, "theirs") in ("", "Pending")  # a scheduler that admitted the one has seen the other
        for i in range(2):
            await world.client.create(PODS, world.pod_body(f"ours-{i}", "1", "ours", "navarch"), namespace=world.namespace)
        await history.until_bound(2, "ours")
        await world.eventually(lambda: phase(world, "ours"), lambda found: found == "Running")
    assert await phase(world, "theirs") in ("", "Pending")
