"""Workload controllers on hollow nodes in virtual time; a scheduler of three lines places the pods."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.worlds.embedded.hollow_cluster import World

pytestmark = pytest.mark.looptime
Manifest = dict[str, Any]


def template(labels: dict[str, str] | None = None, image: str = "app:1", annotations: dict[str, str] | None = None) -> Manifest:
    told = {f"navarch.io/{key.replace('_', '-')}": value for key, value in (annotations or {}).items()}
    return {
        "metadata": {"labels": labels or {}, "annotations": told},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }


def job(name: str = "j", image: str = "app:1", annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    made = template(image=image, annotations=annotations)
    made["spec"]["restartPolicy"] = "Never"
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": made, **spec}}


def workload(kind: str, name: str = "web", image: str = "app:1", **spec: Any) -> Manifest:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template(labels, image), **spec},
    }


def has(world: World, resource: str, name: str, type_: str, status: str = "True") -> bool:
    found = world.get(resource, name).get("status", {}).get("conditions", ())
    return any(each["type"] == type_ and each["status"] == status for each in found)


# ---------------------------------------------------------------------- Job


async def test_a_job_runs_its_completions_a_few_at_a_time() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(job(completions=5, parallelism=2))
        most = 0

        def done() -> bool:
            nonlocal most
            most = max(most, len(world.pods("Running")))
            return has(world, "jobs.batch", "j", "Complete")

        await world.until(done)
        status = world.get("jobs.batch", "j")["status"]
        assert (status["succeeded"], most) == (5, 2)
        assert status["completionTime"] and "active" not in status
        assert len(world.pods("Succeeded")) == 5
        assert not any(pod["metadata"].get("finalizers") for pod in world.pods())


async def test_an_indexed_job_gives_each_pod_its_index() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(job(completions=4, parallelism=4, completionMode="Indexed"))
        await world.until(lambda: has(world, "jobs.batch", "j", "Complete"))
        assert world.get("jobs.batch", "j")["status"]["completedIndexes"] == "0-3"
        pods = world.pods()
        indexes = sorted(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in pods)
        assert indexes == ["0", "1", "2", "3"]
        assert all(pod["spec"]["hostname"].startswith("j-") for pod in pods)


async def test_a_job_that_fails_too_often_gives_up() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(job(backoffLimit=2, annotations={"exit_code": "1", "run_for": "1s"}))
        started = world.store.clock()
        await world.until(lambda: has(world, "jobs.batch", "j", "Failed"))
        status = world.get("jobs.batch", "j")["status"]
        assert status["failed"] == 3
        assert next(each["reason"] for each in status["conditions"] if each["type"] == "Failed") == "BackoffLimitExceeded"
        assert world.store.clock() - started >= 30, "retries wait 10 and 20 seconds"


async def test_a_job_whose_pod_is_deleted_starts_another_and_counts_the_failure() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(job(annotations={"run_for": "100s"}))
        await world.until(lambda: world.pods("Running"))
        (first,) = world.pods()
        world.delete("pods", first["metadata"]["name"])
        await world.until(lambda: has(world, "jobs.batch", "j", "Complete"))
        status = world.get("jobs.batch", "j")["status"]
        assert (status["failed"], status["succeeded"]) == (1, 1)


async def test_a_failure_policy_may_ignore_disruptions_and_fail_at_once() -> None:
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(job(podFailurePolicy={"rules": rules}, annotations={"exit_code": "42", "run_for": "1s"}))
        await world.until(lambda: has(world, "jobs.batch", "j", "Failed"))
        status = world.get("jobs.batch", "j")["status"]
        assert next(each["reason"] for each in status["conditions"] if each["type"] == "Failed") == "PodFailurePolicy"


async def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(job(suspend=True, parallelism=3, completions=3))
        await world.until(lambda: has(world, "jobs.batch", "j", "Suspended"))
        assert not world.pods()
        world.patch("jobs.batch", "j", lambda obj: obj["spec"].update(suspend=False))
        await world.until(lambda: len(world.pods("Running")) == 3)
        world.patch("jobs.batch", "j", lambda obj: obj["spec"].update(suspend=True))
        await world.until(lambda: not world.pods())
        assert "failed" not in world.get("jobs.batch", "j")["status"]


async def test_a_finished_job_goes_after_its_time_to_live_with_its_pods() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(job(ttlSecondsAfterFinished=60))
        await world.until(lambda: has(world, "jobs.batch", "j", "Complete"))
        finished = world.store.clock()
        await world.until(lambda: world.store.find("jobs.batch", "default", "j") is None)
        assert world.store.clock() - finished >= 59
        await world.until(lambda: not world.pods())


async def test_a_deleted_job_takes_its_running_pods_along() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(job(parallelism=2, completions=2, annotations={"run_for": "1h"}))
        await world.until(lambda: len(world.pods("Running")) == 2)
        world.delete("jobs.batch", "j", propagation="Background")
        await world.until(lambda: not world.pods(), within=60)


# ---------------------------------------------------------------------- ReplicaSet and Deployment


async def test_a_replica_set_replaces_what_is_lost_and_follows_its_scale() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(workload("ReplicaSet", replicas=3))
        await world.until(lambda: world.get("replicasets.apps", "web")["status"].get("readyReplicas") == 3)
        world.delete("pods", world.pods()[0]["metadata"]["name"])
        await world.until(lambda: world.get("replicasets.apps", "web")["status"].get("readyReplicas") == 3 == len(world.pods()))
        world.patch("replicasets.apps", "web", lambda obj: obj["spec"].update(replicas=1))
        await world.until(lambda: len(world.pods()) == 1)
        assert world.get("replicasets.apps", "web")["status"]["replicas"] == 1


async def test_a_replica_set_adopts_orphans_it_selects() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        orphan = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lone", "labels": {"app": "web"}}}
        world.create({**orphan, "spec": {"containers": [{"name": "main", "image": "app:1"}]}})
        world.create(workload("ReplicaSet", replicas=2))
        await world.until(lambda: world.get("replicasets.apps", "web").get("status", {}).get("readyReplicas") == 2)
        assert len(world.pods()) == 2
        assert world.get("pods", "lone")["metadata"]["ownerReferences"][0]["name"] == "web"


async def test_a_quota_that_refuses_pods_is_told_on_the_replica_set() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
        world.create(workload("ReplicaSet", replicas=2))
        await world.until(lambda: has(world, "replicasets.apps", "web", "ReplicaFailure"))
        assert len(world.pods()) == 1


async def test_a_deployment_rolls_without_losing_availability() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(workload("Deployment", replicas=4))
        await world.until(lambda: has(world, "deployments.apps", "web", "Available"))
        await world.until(lambda: world.get("deployments.apps", "web")["status"].get("availableReplicas") == 4)
        wanted: list[int] = []
        ready: list[int] = []
        world.patch("deployments.apps", "web", _image("app:2"))

        def done() -> bool:
            pods = world.pods()
            wanted.append(sum(each.obj["spec"]["replicas"] for each in world.store.list("replicasets.apps")))
            ready.append(sum(pod["status"]["phase"] == "Running" for pod in pods))
            status = world.get("deployments.apps", "web")["status"]
            images = {pod["spec"]["containers"][0]["image"] for pod in pods}
            counts = {status.get(name) for name in ("updatedReplicas", "availableReplicas", "replicas")}
            return images == {"app:2"} and counts == {4}

        await world.until(done)
        assert max(wanted) <= 5 and min(ready) >= 3
        deployment = world.get("deployments.apps", "web")
        assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
        progressing = next(each for each in deployment["status"]["conditions"] if each["type"] == "Progressing")
        assert progressing["reason"] == "NewReplicaSetAvailable"
        assert sorted(each.obj["spec"]["replicas"] for each in world.store.list("replicasets.apps")) == [0, 4]


async def test_a_deployment_of_recreate_stops_the_old_before_it_starts_the_new() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(workload("Deployment", replicas=2, strategy={"type": "Recreate"}))
        await world.until(lambda: len(world.pods("Running")) == 2)
        world.patch("deployments.apps", "web", _image("app:2"))

        def images() -> set[str]:
            found = {pod["spec"]["containers"][0]["image"] for pod in world.pods()}
            assert len(found) <= 1
            return found

        await world.until(lambda: images() == {"app:2"} and len(world.pods("Running")) == 2)


async def test_a_roll_back_is_a_new_revision_of_the_old_replica_set() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        world.create(workload("Deployment", replicas=1))
        await world.until(lambda: len(world.pods("Running")) == 1)

        def runs_only(image: str) -> bool:
            return [p["spec"]["containers"][0]["image"] for p in world.pods("Running")] == [image]

        for image in ("app:2", "app:1"):
            world.patch("deployments.apps", "web", _image(image))
            await world.until(partial(runs_only, image))
        assert len(world.store.list("replicasets.apps")) == 2
        assert world.get("deployments.apps", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


# ---------------------------------------------------------------------- StatefulSet and DaemonSet


async def test_a_stateful_set_starts_in_order_and_keeps_names_and_claims() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claims = [{"metadata": {"name": "data"}, "spec": wanted}]
        world.create(workload("StatefulSet", replicas=3, serviceName="web", volumeClaimTemplates=claims))
        order: list[str] = []

        def done() -> bool:
            order.extend(pod["metadata"]["name"] for pod in world.pods() if pod["metadata"]["name"] not in order)
            return bool(world.get("statefulsets.apps", "web").get("status", {}).get("readyReplicas") == 3)

        await world.until(done)
        assert order == ["web-0", "web-1", "web-2"]
        assert [each.name for each in world.store.list("persistentvolumeclaims")] == [f"data-web-{i}" for i in range(3)]
        uid = world.get("pods", "web-1")["metadata"]["uid"]
        world.delete("pods", "web-1")
        await world.until(lambda: (p := world.store.find("pods", "default", "web-1")) is not None and p.uid != uid)
        world.patch("statefulsets.apps", "web", lambda obj: obj["spec"].update(replicas=1))
        await world.until(lambda: [pod["metadata"]["name"] for pod in world.pods()] == ["web-0"])


async def test_a_stateful_set_is_updated_from_the_highest_ordinal_down_to_its_partition() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
        world.create(workload("StatefulSet", replicas=3, serviceName="web", updateStrategy=strategy))
        await world.until(lambda: world.get("statefulsets.apps", "web").get("status", {}).get("readyReplicas") == 3)
        world.patch("statefulsets.apps", "web", _image("app:2"))
        await world.until(lambda: world.get("statefulsets.apps", "web")["status"].get("updatedReplicas") == 2)
        await world.until(lambda: len(world.pods("Running")) == 3)
        assert [pod["spec"]["containers"][0]["image"] for pod in world.pods()] == ["app:1", "app:2", "app:2"]


async def test_a_daemon_set_has_a_pod_on_every_node_it_may_run_on() -> None:
    async with World(placing=True) as world:
        world.nodes(3)
        await world.settle()
        world.patch("nodes", "node-001", lambda obj: obj["spec"].update(taints=[{"key": "only", "effect": "NoSchedule"}]))
        world.create(workload("DaemonSet"))
        await world.until(lambda: world.get("daemonsets.apps", "web").get("status", {}).get("numberReady") == 2)
        assert sorted(pod["spec"]["nodeName"] for pod in world.pods()) == ["node-000", "node-002"]
        world.nodes(1, name="more")
        await world.until(lambda: world.get("daemonsets.apps", "web")["status"].get("numberReady") == 3)
        world.patch("daemonsets.apps", "web", _image("app:2"))

        def updated() -> bool:
            found = world.get("daemonsets.apps", "web")
            status = found["status"]
            if status["observedGeneration"] < found["metadata"]["generation"]:
                return False
            return bool(status.get("updatedNumberScheduled") == status.get("numberReady") == 3)

        await world.until(updated)
        assert {pod["spec"]["containers"][0]["image"] for pod in world.pods()} == {"app:2"}


def _image(image: str) -> Any:
    return lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(image=image)
