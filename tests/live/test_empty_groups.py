"""Volcano's controller makes the pods of a Job once its group is admitted: by the scheduler that the Job names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from click.testing import CliRunner
from tests.worlds.kube.crds import serve, withdraw
from tests.worlds.live.cluster import GROUPS, World

from navarch.cli.main import main
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


async def job(world: World, name: str, scheduler: str, **spec_of_group: Any) -> None:
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
        "spec": {"minMember": 2, "queue": "default", **spec_of_group},
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


async def test_a_group_that_is_not_admitted_says_why(jobs: World) -> None:
    """As Volcano says it: the phase, an event of what refuses it, and one of the gang."""
    world, overused = jobs, "resource in cluster is overused: overused cpu"
    await world.node(f"n-{world.namespace}", cpu="4")
    async with world.scheduler(policy="volcano", scheduler_names=("navarch",)):
        await job(world, "large", "navarch", minResources={"cpu": "400", "pods": "2", "count/pods": "2"})
        await world.eventually(lambda: phase(world, "large"), lambda found: found == "Pending")
        (condition,) = (await world.get_group("large"))["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Unschedulable", "True")
        wanted = {
            ("Normal", "Unschedulable", overused),
            ("Warning", "Unschedulable", condition["message"]),
        }
        assert condition["message"].startswith("0/0 tasks in gang unschedulable: pod group is not ready, 2 minAvailable")
        assert overused in condition["message"]
        await world.eventually(lambda: world.events("large"), lambda found: wanted <= set(found))
        told = await asyncio.to_thread(
            CliRunner().invoke, main, ["jobs", "-o", "json", "-n", world.namespace, "--kubeconfig", str(world.kubeconfig)]
        )
        (row,) = json.loads(told.stdout)["items"]
        assert (row["phase"], row["why"]) == ("Pending", condition["message"])


@pytest.mark.parametrize("policy", ["navarch", "volcano"])
async def test_nothing_is_written_to_groups_of_other_schedulers(jobs: World, policy: str) -> None:
    world, node = jobs, f"n-{jobs.namespace}"
    await world.node(node, cpu="8")
    await world.group("runs", 1)
    await world.pod("runs-0", group="runs", scheduler="volcano", nodeName=node)
    await job(world, "waits", "volcano", minResources={"cpu": "2"})
    await world.group("alone", 2)
    async with world.scheduler(policy=policy, scheduler_names=("navarch",)):
        await world.gang("ours", 2)
        await world.eventually(lambda: phase(world, "ours"), lambda found: found == "Running")
    for name in ("runs", "waits", "alone"):
        assert not (await world.get_group(name)).get("status"), name
        assert await world.events(name) == [], name
