"""Volcano Jobs without Volcano: group and pods are made, phases follow the pods, policies are obeyed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.embedded.hollow_cluster import World

pytestmark = pytest.mark.looptime


def job(tasks: dict[str, int], annotations: dict[str, dict[str, str]] | None = None, **spec: Any) -> dict[str, Any]:
    def task(name: str, replicas: int) -> dict[str, Any]:
        template = {
            "metadata": {"annotations": {f"navarch.io/{k}": v for k, v in (annotations or {}).get(name, {}).items()}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "b"}]},
        }
        return {"name": name, "replicas": replicas, "template": template}

    made = [task(name, replicas) for name, replicas in tasks.items()]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"tasks": made, **spec},
    }


def phase(world: World) -> str:
    return str(world.get("jobs.batch.volcano.sh", "j").get("status", {}).get("state", {}).get("phase"))


async def test_a_job_makes_its_group_and_pods_and_completes() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(job({"master": 1, "worker": 3}, queue="team", minAvailable=4))
        await world.until(lambda: phase(world) == "Running")
        (group,) = world.store.list("podgroups.scheduling.volcano.sh")
        assert group.obj["spec"]["minMember"] == 4 and group.obj["spec"]["queue"] == "team"
        names = [pod["metadata"]["name"] for pod in world.pods()]
        assert names == ["j-master-0", "j-worker-0", "j-worker-1", "j-worker-2"]
        assert all(p["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == group.name for p in world.pods())
        await world.until(lambda: phase(world) == "Completed")
        status = world.get("jobs.batch.volcano.sh", "j")["status"]
        assert status["succeeded"] == 4
        assert [each["status"] for each in status["conditions"]] == ["Pending", "Running", "Completed"]


async def test_a_pod_that_is_lost_is_made_again_without_a_policy() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(job({"worker": 2}, {"worker": {"run-for": "100s"}}))
        await world.until(lambda: phase(world) == "Running")
        uid = world.get("pods", "j-worker-1")["metadata"]["uid"]
        world.delete("pods", "j-worker-1")
        await world.until(lambda: (p := world.store.find("pods", "default", "j-worker-1")) is not None and p.uid != uid)
        await world.until(lambda: phase(world) == "Completed")


async def test_a_failure_restarts_the_whole_job_until_it_has_had_enough() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        policies = [{"event": "PodFailed", "action": "RestartJob"}]
        failing = {"worker": {"run-for": "3s", "exit-code": "1"}, "other": {"run-for": "1h"}}
        world.create(job({"worker": 1, "other": 1}, failing, policies=policies, maxRetry=3))
        await world.until(lambda: phase(world) == "Failed")
        status = world.get("jobs.batch.volcano.sh", "j")["status"]
        assert status["retryCount"] == 3
        assert [each["status"] for each in status["conditions"]].count("Restarting") == 2
        await world.until(lambda: not world.pods("Running"))


async def test_the_end_of_one_task_may_complete_the_job() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        made = job({"master": 1, "worker": 2}, {"master": {"run-for": "5s"}, "worker": {"run-for": "1h"}})
        made["spec"]["tasks"][0]["policies"] = [{"event": "TaskCompleted", "action": "CompleteJob"}]
        world.create(made)
        await world.until(lambda: phase(world) == "Completed")
        assert [pod["metadata"]["name"] for pod in world.pods()] == ["j-master-0"]


async def test_a_job_with_failures_fails_in_the_end() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(job({"worker": 2}, {"worker": {"exit-code": "1"}}))
        await world.until(lambda: phase(world) == "Failed")


async def test_group_and_pods_follow_a_job_that_is_scaled_and_nothing_counts_as_evicted() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        policies = [{"event": "PodEvicted", "action": "RestartJob"}]
        world.create(job({"worker": 2}, {"worker": {"run-for": "1h"}}, policies=policies, minAvailable=2))
        await world.until(lambda: phase(world) == "Running")

        async def scaled(replicas: int) -> None:
            def change(obj: dict[str, Any]) -> None:
                obj["spec"]["tasks"][0]["replicas"] = obj["spec"]["minAvailable"] = replicas

            world.patch("jobs.batch.volcano.sh", "j", change)
            await world.until(
                lambda: [pod["metadata"]["name"] for pod in world.pods("Running")] == [f"j-worker-{i}" for i in range(replicas)]
            )
            (group,) = world.store.list("podgroups.scheduling.volcano.sh")
            assert (group.obj["spec"]["minMember"], group.obj["spec"]["minTaskMember"]) == (replicas, {"worker": replicas})

        await scaled(4)
        await scaled(1)
        status = world.get("jobs.batch.volcano.sh", "j")["status"]
        assert [each["status"] for each in status["conditions"]] == ["Pending", "Running"]


async def test_a_task_waits_until_those_it_depends_on_run() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        policies = [{"event": "PodEvicted", "action": "RestartJob"}]
        made = job(
            {"worker": 2, "master": 1}, {"worker": {"start-after": "30s", "run-for": "100s"}}, policies=policies, minAvailable=2
        )
        made["spec"]["tasks"][1]["dependsOn"] = {"name": ["worker"]}
        world.create(made)
        await world.until(lambda: len(world.pods()) == 2)
        assert {pod["metadata"]["name"] for pod in world.pods()} == {"j-worker-0", "j-worker-1"}
        await world.until(lambda: len(world.pods()) == 3)
        assert len([pod for pod in world.pods("Running") if "worker" in pod["metadata"]["name"]]) == 2
        await world.until(lambda: phase(world) == "Completed")
        status = world.get("jobs.batch.volcano.sh", "j")["status"]
        assert (status["succeeded"], [each["status"] for each in status["conditions"]]) == (3, ["Pending", "Running", "Completed"])
