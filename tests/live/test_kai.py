"""In the place of KAI's scheduler: its groups and queues, its binder, and what its users read in a group's status."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import yaml
from tests.worlds.kube.crds import serve
from tests.worlds.live.cluster import World
from tests.worlds.live.conditions import conditions
from tests.worlds.live.stored_kinds import stored

from navarch.kube.client import PatchType
from navarch.kube.resources import PODS, Resource

pytestmark = pytest.mark.live

GROUPS = Resource("scheduling.run.ai", "v2alpha2", "podgroups")
QUEUES = Resource("scheduling.run.ai", "v2", "queues", namespaced=False)
REQUESTS = Resource("scheduling.run.ai", "v1alpha2", "bindrequests")
PYTORCH_JOBS = Resource("kubeflow.org", "v1", "pytorchjobs")
FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
KAI: dict[str, Any] = {"policy": "kai", "scheduler_names": ("kai-scheduler",)}


async def queues(world: World) -> None:
    resources = {"gpu": FREE, "cpu": FREE, "memory": FREE}
    for name, parent in (("department", ""), ("team", "department")):
        spec: dict[str, Any] = {"resources": resources}
        if parent:
            spec["parentQueue"] = parent
        body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
        await world.client.create(QUEUES, body)


async def gang(world: World, name: str, members: int, **annotations: str) -> None:
    spec = {"minMember": members, "queue": "team"}
    body = {"apiVersion": GROUPS.api_version, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
    await world.client.create(GROUPS, body, namespace="default")
    for i in range(members):
        pod = world.pod_body(f"{name}-{i}", "1", "", "kai-scheduler")
        pod["metadata"]["annotations"] = {"pod-group-name": name, **annotations}
        pod["metadata"]["labels"] = {"kai.scheduler/queue": "team"}
        await world.client.create(PODS, pod, namespace="default")


async def binder(world: World) -> None:
    """KAI's binder: carries requests out."""
    done: set[str] = set()
    while True:
        for request in (await world.client.list(REQUESTS)).items:
            name = request["metadata"]["name"]
            if name not in done:
                done.add(name)
                pod = await world.get_pod(name)
                await world.client.bind("default", name, uid=pod["metadata"]["uid"], node=request["spec"]["selectedNode"])
                succeeded = {"status": {"phase": "Succeeded"}}
                await world.client.patch(REQUESTS, name, succeeded, PatchType.MERGE, namespace="default", subresource="status")
        await asyncio.sleep(0.02)


async def test_a_gang_is_bound_through_bind_requests(world: World) -> None:
    await queues(world)
    await world.node("n0")
    history = await world.watch()
    work = asyncio.create_task(binder(world))
    async with world.scheduler(**KAI):
        await gang(world, "whole", 3)
        await history.until_bound(3)
        request = await world.client.get(REQUESTS, "whole-0", namespace="default")
        assert request["spec"]["receivedResourceType"] == "Regular"
        assert request["metadata"]["labels"]["selected-node"] == "n0"
        assert request["metadata"]["ownerReferences"][0]["kind"] == "Pod"
        # A pod that its binder handles does not count as waiting.
        await gang(world, "next", 1)
        await history.until_bound(4)
    work.cancel()
    history.check([("whole", 3)])


async def test_without_the_binder_pods_are_bound_directly(world: World) -> None:
    await queues(world)
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler(**KAI, bind_requests=False):
        await gang(world, "whole", 3)
        await history.until_bound(3)
    assert (await world.client.list(REQUESTS)).items == []


async def test_a_request_that_failed_for_good_is_removed_and_the_pod_decided_again(world: World) -> None:
    await queues(world)
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler(**KAI):
        await gang(world, "one", 1)
        first = await world.eventually(lambda: world.client.list(REQUESTS), lambda found: len(found.items) == 1)
        failed = {"status": {"phase": "Failed", "failedAttempts": 3}}
        await world.client.patch(REQUESTS, "one-0", failed, PatchType.MERGE, namespace="default", subresource="status")
        await world.eventually(
            lambda: world.client.list(REQUESTS),
            lambda found: found.items and found.items[0]["metadata"]["uid"] != first.items[0]["metadata"]["uid"],
        )
        work = asyncio.create_task(binder(world))
        await history.until_bound(1)
        work.cancel()


async def test_a_request_that_its_binder_tries_again_is_left_alone(world: World) -> None:
    """The rest of its gang runs, so every cycle looks at it: none may ask for the pod once more."""
    await queues(world)
    await world.node("n0")

    async def says(pod: str, **status: Any) -> None:
        await world.client.patch(REQUESTS, pod, {"status": status}, PatchType.MERGE, namespace="default", subresource="status")

    async def uid_of(pod: str) -> str:
        found = {each["metadata"]["name"]: each["metadata"]["uid"] for each in (await world.client.list(REQUESTS)).items}
        return str(found.get(pod, ""))

    async with world.scheduler(**KAI) as scheduler:
        await gang(world, "two", 2)
        first = await world.eventually(lambda: uid_of("two-0"), bool)
        await world.eventually(lambda: uid_of("two-1"), bool)
        pod = await world.get_pod("two-1")
        await world.client.bind("default", "two-1", uid=pod["metadata"]["uid"], node="n0")
        await says("two-1", phase="Succeeded")
        await world.client.patch(
            PODS, "two-1", {"status": {"phase": "Running"}}, PatchType.MERGE, namespace="default", subresource="status"
        )
        await says("two-0", phase="Failed", failedAttempts=1)
        await gang(world, "next", 1)
        await world.eventually(lambda: uid_of("next-0"), bool)
        assert await uid_of("two-0") == first
        await says("two-0", phase="Failed", failedAttempts=3)
        await world.eventually(lambda: uid_of("two-0"), lambda uid: uid not in ("", first))
        assert scheduler.metrics.registry.get_sample_value("navarch_binds_total", {"result": "failed"}) == 0
        await world.eventually(lambda: world.events("two-0"), lambda said: any(reason == "Scheduled" for _, reason, _ in said))


async def test_a_request_for_an_older_pod_of_the_same_name_makes_way(world: World) -> None:
    await queues(world)
    await world.node("n0")
    old = {"apiVersion": "v1", "kind": "Pod", "name": "one-0", "uid": "older"}
    await world.client.create(
        REQUESTS,
        {
            "apiVersion": REQUESTS.api_version,
            "kind": "BindRequest",
            "metadata": {"name": "one-0", "ownerReferences": [old]},
            "spec": {"podName": "one-0", "selectedNode": "n0"},
        },
        namespace="default",
    )
    async with world.scheduler(**KAI):
        await gang(world, "one", 1)
        pod = await world.get_pod("one-0")

        async def owner() -> str:
            found = (await world.client.list(REQUESTS)).items
            return str(found[0]["metadata"]["ownerReferences"][0]["uid"]) if found else ""

        await world.eventually(owner, lambda uid: uid == pod["metadata"]["uid"])


async def test_a_group_that_does_not_fit_says_so_in_kais_words(world: World) -> None:
    await queues(world)
    await world.node("n0", cpu="2")
    history = await world.watch()
    async with world.scheduler(**KAI):
        await gang(world, "big", 3)
        group = await world.eventually(
            lambda: world.client.get(GROUPS, "big", namespace="default"),
            lambda found: found.get("status", {}).get("schedulingConditions"),
        )
        condition = group["status"]["schedulingConditions"][-1]
        assert (condition["type"], condition["status"], condition["transitionID"]) == ("UnschedulableOnNodePool", "True", "1")
        assert condition["message"] and condition["reason"] and condition["reasons"][0]["message"]
    assert history.bound() == []


async def test_a_group_that_lacks_pods_says_what_it_waits_for(world: World) -> None:
    await queues(world)
    await world.node("n0")
    async with world.scheduler(**KAI):
        spec = {"minMember": 3, "queue": "team"}
        body = {"apiVersion": GROUPS.api_version, "kind": "PodGroup", "metadata": {"name": "few"}, "spec": spec}
        await world.client.create(GROUPS, body, namespace="default")
        pod = world.pod_body("few-0", "1", "", "kai-scheduler")
        pod["metadata"]["annotations"] = {"pod-group-name": "few"}
        await world.client.create(PODS, pod, namespace="default")
        note = "Job is not ready for scheduling. Waiting for 3 pods, currently 1 exist, 0 are gated"
        told = await world.eventually(lambda: world.events("few"), lambda found: ("Normal", "NotReady", note) in found)
        assert {reason for _, reason, _ in told} == {"NotReady"}  # it may have been told so when it had no pod yet as well
        group = await world.client.get(GROUPS, "few", namespace="default")
        assert not group.get("status", {}).get("schedulingConditions"), "that is no fault of the cluster"


async def test_the_rest_of_a_broken_gang_is_evicted_with_a_reason(world: World) -> None:
    await queues(world)
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler(**KAI, bind_requests=False):
        await gang(world, "broken", 2)
        await history.until_bound(2)
        grace = {"spec": {"stalenessGracePeriod": "0s"}}
        await world.client.patch(GROUPS, "broken", grace, PatchType.MERGE, namespace="default")
        await world.client.delete(PODS, "broken-0", namespace="default", grace_period=0)
        told = await world.eventually(
            lambda: world.events("broken"), lambda found: any(reason == "StaleJob" for _, reason, _ in found)
        )
        assert ("Normal", "StaleJob", "Job is stale. 1 pods are active, minMember is 2") in told


async def test_usage_over_time_is_kept_and_reaches_the_cycles(world: World) -> None:
    policy = world.folder / "policy.yaml"
    usage = {"clientType": "builtin", "connectionString": str(world.folder / "usage.db"), "usageParams": {"fetchInterval": "1s"}}
    policy.write_text(yaml.safe_dump({"compat": "kai", "usageDBConfig": usage}))
    await queues(world)
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler(**{**KAI, "policy": str(policy)}, bind_requests=False) as scheduler:
        await gang(world, "whole", 2)
        await history.until_bound(2)
        held = await world.eventually(
            lambda: asyncio.sleep(0, dict(scheduler.cache.cluster.objects.get("QueueUsage", {}))),
            lambda found: found.get(("", "team"), {}).get("cpu", 0.0) > 0,
        )
        assert held["", "team"]["cpu"] <= 0.5


async def test_a_job_without_a_group_starts_as_the_gang_that_its_owner_says(world: World) -> None:
    """On a cluster without KAI's pod grouper: the operator's kind is watched where it is served."""
    await serve(world.client, PYTORCH_JOBS, "PyTorchJob")
    await queues(world)
    await world.node("n0", cpu="2")
    history = await world.watch()
    async with world.scheduler(**KAI, bind_requests=False) as scheduler:
        spec = {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}}
        body = {"apiVersion": PYTORCH_JOBS.api_version, "kind": "PyTorchJob", "metadata": {"name": "llm"}, "spec": spec}
        job = await world.client.create(PYTORCH_JOBS, body, namespace="default")
        # As an operator does, which makes pods when it has seen the job: of two watches neither waits for the other.
        await world.eventually(lambda: asyncio.sleep(0, stored(scheduler, PYTORCH_JOBS)), lambda names: names == ["llm"])
        owner = {"apiVersion": PYTORCH_JOBS.api_version, "kind": "PyTorchJob", "name": "llm", "controller": True}
        for role, index in (("worker", 0), ("worker", 1), ("master", 0)):
            pod = world.pod_body(f"llm-{role}-{index}", "1", "", "kai-scheduler")
            pod["metadata"]["ownerReferences"] = [{**owner, "uid": job["metadata"]["uid"]}]
            pod["metadata"]["labels"] = {"kai.scheduler/queue": "team", "training.kubeflow.org/replica-type": role}
            await world.client.create(PODS, pod, namespace="default")
        waiting = await world.eventually(lambda: world.get_pod("llm-master-0"), lambda found: "PodScheduled" in conditions(found))
        told = conditions(waiting)["PodScheduled"]["message"]
        assert told.startswith("the task could run, but its gang is not ready: Resources were found for 1 pods from all sub-groups")
        assert history.bound() == [], "two would fit, three are needed"
        await world.node("n1", cpu="2")
        await history.until_bound(3)


async def test_the_pool_of_nodes_may_stand_in_the_policy(world: World) -> None:
    """KAI's own without a word: the nodes that are in no pool."""
    await queues(world)
    await world.node("ours", cpu="1")
    await world.node("theirs", cpu="1", **{"kai.scheduler/node-pool": "blue"})
    policy = world.folder / "policy.yaml"
    policy.write_text(yaml.safe_dump({"compat": "kai", "schedulerParams": {"partitionLabelValue": "blue"}}), encoding="utf-8")
    history = await world.watch()
    async with world.scheduler(**KAI, bind_requests=False):
        await gang(world, "rest", 1)
        await history.until_bound(1)
    async with world.scheduler(**{**KAI, "policy": str(policy)}, bind_requests=False):
        pod = world.pod_body("alone", "1", "", "kai-scheduler")
        pod["metadata"]["labels"] = {"kai.scheduler/queue": "blue", "kai.scheduler/node-pool": "blue"}
        queue = {"resources": {"gpu": FREE, "cpu": FREE, "memory": FREE}}
        for name, more in (("blues", {}), ("blue", {"parentQueue": "blues"})):
            labels = {"kai.scheduler/node-pool": "blue"}
            body = {
                "apiVersion": QUEUES.api_version,
                "kind": "Queue",
                "metadata": {"name": name, "labels": labels},
                "spec": queue | more,
            }
            await world.client.create(QUEUES, body)
        await world.client.create(PODS, pod, namespace="default")
        await history.until_bound(2)
    assert [(await world.get_pod(name))["spec"]["nodeName"] for name in ("rest-0", "alone")] == ["ours", "theirs"]
