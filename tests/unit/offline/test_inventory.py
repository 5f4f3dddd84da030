"""A heap of manifests as one inventory."""

from __future__ import annotations

import random
from typing import Any, cast

from navarch.apis.core.kept_objects import is_of_its_group
from navarch.apis.dialect import Settings
from navarch.apis.registry import KEPT
from navarch.offline.admission_lookups import LOOKED_UP
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.testing.builders import Builder, budget, namespace, node, pod, pod_group, priority_class, queue


def take(*objects: dict[str, Any], **settings: Any) -> Inventory:
    documents = [Document(each, f"f document {i}") for i, each in enumerate(objects, start=1)]
    return Inventory(documents, Settings(**settings))


def test_objects_that_depend_on_others_are_resolved_in_any_order() -> None:
    objects: list[dict[str, Any]] = [
        pod("a", "prod").in_group("g").priority_class("high"),
        pod("b", "prod").owned_by("Job", "j"),
        pod_group("g", 2, "prod").priority_class("high"),
        priority_class("high", 9),
        namespace("prod").annotate("scheduling.volcano.sh/queue-name", "q"),
        queue("q"),
        node("n"),
    ]
    seen = set()
    for seed in range(10):
        random.Random(seed).shuffle(objects)
        found = take(*objects)
        assert not found.mistakes
        seen.add(
            (
                tuple(sorted((job.key, job.queue, job.priority) for job in found.jobs.values())),
                tuple(sorted((task.key, task.job, task.pod_priority) for task in found.tasks.values())),
            )
        )
    assert seen == {
        (
            (("prod/g", "q", 9), ("prod/job/j", "q", 0)),
            (("prod/a", "prod/g", 9), ("prod/b", "prod/job/j", 0)),
        )
    }


def test_queues_that_need_no_object() -> None:
    assert sorted(take(queue("q")).cluster.queues) == ["default", "q", "root"]
    assert sorted(take(queue("q"), imply_queues=False).cluster.queues) == ["q", "root"], "Volcano's root needs no object"
    assert sorted(take(imply_queues=False).cluster.queues) == ["default", "root"], "nothing is said about queues at all"
    named = take(pod("a", "team"), namespace("idle"), namespace_as_queue=True)
    assert sorted(named.cluster.queues) == ["default", "idle", "root", "team"]
    assert named.jobs["team/pod/a"].queue == "team"


def test_objects_of_unread_kinds_are_counted() -> None:
    found = take(Builder("v1", "ConfigMap", "a"), Builder("v1", "ConfigMap", "b"), Builder("v1", "Service", "s"))
    assert found.ignored == {"v1 ConfigMap": 2}
    assert list(found.cluster.objects["Service"]) == [("default", "s")]


def test_an_object_of_an_unread_kind_needs_no_name() -> None:
    workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"generateName": "w-"}}
    found = take(workflow, workflow)
    assert found.ignored == {"argoproj.io/v1alpha1 Workflow": 2} and not found.mistakes
    assert take({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}}).mistakes


def test_the_newest_time_stamp_of_all_objects_is_kept() -> None:
    late = pod("a").created("2026-01-01T00:00:00Z")
    late["status"]["startTime"] = "2026-01-01T00:00:10Z"
    assert take(late, node("n").created("2025-01-01T00:00:00Z")).newest == 1767225610.0
    assert take(node("n")).newest == 0.0


def test_every_mistake_with_its_place_and_nothing_else_stops() -> None:
    found = take(
        pod("a").cpu("much"),
        pod("b"),
        pod("b"),
        {"kind": "Pod", "metadata": {"name": "c"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {}},
        queue("q", -1),
        pod("d").label("n", cast(Any, 1)),
    )
    assert [task.key for task in found.tasks.values()] == ["default/b"]
    assert sorted(str(mistake) for mistake in found.mistakes) == [
        "f document 1: Pod default/a: spec.containers[0].resources.requests[cpu]: found 'much', "
        "expected a quantity such as 500m, 2 or 1.5Gi",
        "f document 3: Pod default/b: metadata.name: found 'b', expected an object that is given once; the first is in f document 2",
        "f document 4: Pod c: apiVersion: found nothing, expected text",
        "f document 5: Pod ?: metadata.name: found nothing, expected a name",
        "f document 6: Queue q: spec.weight: found -1, expected 1 or more",
        "f document 7: Pod default/d: metadata.labels[n]: found 1, expected text",
    ]


def test_mistakes_come_in_the_order_of_the_input() -> None:
    found = take(pod("a").cpu("much"), queue("q", -1), pod("b").cpu("-1"))
    assert [mistake.source for mistake in found.mistakes] == ["f document 1", "f document 2", "f document 3"]
    assert str(found.mistakes[2]).endswith("found '-1', expected a quantity of 0 or more")


def test_a_mistake_in_a_template_is_the_workloads_and_is_told_once() -> None:
    workload = Builder("apps/v1", "Deployment", "web", "default")
    container = {"name": "c", "resources": {"requests": {"cpu": "much"}}}
    workload["spec"] = {"replicas": 3, "template": {"spec": {"containers": [container]}}}
    assert [str(mistake) for mistake in take(workload).mistakes] == [
        "f document 1: Deployment default/web: spec.template.spec.containers[0].resources.requests[cpu]: found 'much', "
        "expected a quantity such as 500m, 2 or 1.5Gi"
    ]


def test_numbers_that_no_column_holds() -> None:
    huge = pod("a")
    huge["spec"]["priority"] = 1 << 40
    found = take(huge, node("n").cpu("1e30").memory("9999Ei"), pod("b").cpu("9e18"))
    assert [str(mistake) for mistake in found.mistakes] == [
        "f document 1: Pod default/a: spec.priority: found 1099511627776, expected a whole number <= 2147483647"
    ]
    (machine,) = found.cluster.snapshot().nodes.specs
    assert dict(machine.allocatable)["cpu"] == dict(machine.allocatable)["memory"] == (1 << 53) - 1


def test_more_gpus_than_any_machine_has() -> None:
    machine = node("n").cpu("1")
    machine["status"]["allocatable"]["nvidia.com/gpu"] = "1e12"
    (mistake,) = take(machine).mistakes
    assert str(mistake) == "f document 1: Node n: status.allocatable[nvidia.com/gpu]: found '1e12', expected at most 4096 devices"


def test_pods_without_containers_are_warned_of() -> None:
    empty = pod("a")
    del empty["spec"]["containers"]
    assert take(empty, pod("b")).warnings == ["no containers, so nothing is asked for: default/a"]


def test_an_unread_version_of_a_kind_is_reported_with_the_versions_that_are_read() -> None:
    found = take(Builder("scheduling.volcano.sh/v1", "Queue", "q"), Builder("apps/v1beta1", "Deployment", "d", "default"))
    assert sorted(found.ignored) == [
        "apps/v1beta1 Deployment (only apps/v1 is read)",
        "scheduling.volcano.sh/v1 Queue (only scheduling.volcano.sh/v1beta1 is read)",
    ]


def test_a_claim_that_is_there_is_not_made_again() -> None:
    workload = Builder("apps/v1", "StatefulSet", "db", "default")
    workload["spec"] = {
        "template": {"spec": {"containers": [{"name": "c"}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}],
    }
    claim = Builder("v1", "PersistentVolumeClaim", "data-db-0", "default").label("mine", "yes")
    found = take(workload, claim)
    assert not found.mistakes
    (kept,) = found.cluster.objects["PersistentVolumeClaim"].values()
    assert isinstance(kept, dict) and kept["metadata"]["labels"] == {"mine": "yes"}


def test_limit_ranges_and_runtime_classes_shape_pods() -> None:
    limits = Builder("v1", "LimitRange", "l", "default")
    limits["spec"] = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "250m"}}]}
    runtime = Builder("node.k8s.io/v1", "RuntimeClass", "kata")
    runtime["handler"] = "kata"
    runtime["overhead"] = {"podFixed": {"cpu": "50m"}}
    heavy = pod("a")
    heavy["spec"]["runtimeClassName"] = "kata"
    found = take(heavy, pod("b"), pod("c", "free"), limits, runtime)
    assert not found.mistakes and not found.ignored
    requests = {task.name: dict(task.shape.requests) for task in found.tasks.values()}
    assert requests == {"a": {"cpu": 300}, "b": {"cpu": 250}, "c": {}}


def test_a_budget_that_no_controller_has_counted_for() -> None:
    def allowed(spec: dict[str, Any]) -> int:
        made = Builder("policy/v1", "PodDisruptionBudget", "b", "default")
        made["spec"] = {"selector": {"matchLabels": {"app": "x"}}, **spec}
        running = [pod(f"p{i}").label("app", "x").on("n") for i in range(3)]
        found = take(made, *running, pod("waits").label("app", "x"), pod("other").on("n"), pod("far", "a").label("app", "x"))
        assert not found.mistakes
        (only,) = found.cluster.budgets.values()
        assert found.measure(found.tasks.values()) == [only]
        return only.allowed

    assert allowed({"minAvailable": 2}) == 1
    assert allowed({"minAvailable": "50%"}) == 1
    assert allowed({"maxUnavailable": 2}) == 1, "one of the four already does not run"
    assert allowed({"maxUnavailable": "100%"}) == 3
    assert allowed({"minAvailable": 9}) == 0
    assert [each.allowed for each in take(budget("b", {"app": "x"}, 7)).cluster.budgets.values()] == [7], "a controller's count stands"


def test_a_budget_that_makes_no_sense() -> None:
    made = Builder("policy/v1", "PodDisruptionBudget", "b", "default")
    made["spec"] = {"selector": {}, "minAvailable": "half"}
    (mistake,) = take(made).mistakes
    assert str(mistake).startswith("f document 1: PodDisruptionBudget default/b: spec.minAvailable: found 'half'")


def test_a_kind_of_another_api_with_a_known_name_is_counted_and_not_read() -> None:
    knative = Builder("serving.knative.dev/v1", "Service", "web", "default")
    limits = Builder("example.com/v1", "LimitRange", "l", "default")
    limits["spec"] = {"limits": [{"type": "Container", "default": {"cpu": "7"}}]}
    others = [Builder("example.com/v1", kind, "x") for kind in ("ResourceSlice", "RuntimeClass", "StorageClass")]
    found = take(knative, limits, *others, pod("a"))
    assert sorted(found.ignored) == [
        "example.com/v1 LimitRange",
        "example.com/v1 ResourceSlice",
        "example.com/v1 RuntimeClass",
        "example.com/v1 StorageClass",
        "serving.knative.dev/v1 Service",
    ]
    assert not found.mistakes and not found.cluster.objects
    (task,) = [task for task in found.cluster.tasks.specs if task is not None]
    assert dict(task.shape.requests).get("cpu", 0) == 0


def test_the_api_group_of_every_kept_kind_is_known() -> None:
    groups = ("", "apps", "node.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "shard.volcano.sh", "storage.k8s.io")
    versions = [f"{group}/v1".removeprefix("/") for group in groups]
    assert [kind for kind in sorted(KEPT | LOOKED_UP) if not any(is_of_its_group(version, kind) for version in versions)] == []
