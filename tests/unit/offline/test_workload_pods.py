"""The pods that workloads would make."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.offline.manifests import Document
from navarch.offline.workload_pods import expand
from navarch.testing.builders import Builder, node, pod

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
}


def workload(kind: str, version: str = "apps/v1", **spec: Any) -> Builder:
    made = Builder(version, kind, "w", "prod").created("2026-01-01T00:00:00Z")
    made["spec"] = {"template": TEMPLATE, **spec}
    return made


def made_from(*objects: Builder) -> list[dict[str, Any]]:
    made, mistakes = expand(Document(each, "f document 1") for each in objects)
    assert not mistakes
    assert all(each.source == "f document 1" for each in made)
    return [dict(each.manifest) for each in made]


def names(*objects: Builder) -> list[str]:
    return [each["metadata"]["name"] for each in made_from(*objects)]


def owner(made: dict[str, Any]) -> tuple[str, str]:
    (reference,) = made["metadata"]["ownerReferences"]
    assert reference["controller"]
    return reference["kind"], reference["name"]


def test_a_replica_set_makes_the_same_pods_each_time() -> None:
    first, second = made_from(workload("ReplicaSet", replicas=2))
    assert first["metadata"]["name"] == "w-0" and second["metadata"]["name"] == "w-1"
    assert first["metadata"]["namespace"] == "prod" and first["metadata"]["labels"] == {"app": "x"}
    assert first["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert owner(first) == ("ReplicaSet", "w")
    assert made_from(workload("ReplicaSet", replicas=2)) == [first, second], "the same each time"


def test_a_deployment_goes_through_a_replica_set() -> None:
    (only,) = made_from(workload("Deployment"))
    kind, name = owner(only)
    assert kind == "ReplicaSet" and name.startswith("w-")
    assert only["metadata"]["labels"]["pod-template-hash"] == name.removeprefix("w-")


def test_a_stateful_set_brings_its_claims() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    made = made_from(workload("StatefulSet", replicas=2, ordinals={"start": 3}, volumeClaimTemplates=[claim]))
    assert [each["metadata"]["name"] for each in made] == ["data-w-3", "w-3", "data-w-4", "w-4"]
    assert made[1]["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-w-3"}}]


@pytest.mark.parametrize(
    ("spec", "status", "count"),
    [
        ({}, {}, 1),
        ({"parallelism": 3}, {}, 3),
        ({"parallelism": 3, "completions": 5}, {"succeeded": 4}, 1),
        ({"parallelism": 3, "suspend": True}, {}, 0),
        ({"parallelism": 3}, {"conditions": [{"type": "Complete", "status": "True"}]}, 0),
    ],
)
def test_a_job_makes_what_may_run_at_once(spec: dict[str, Any], status: dict[str, Any], count: int) -> None:
    job = workload("Job", "batch/v1", **spec)
    job["status"] = status
    assert len(made_from(job)) == count


def test_a_daemon_set_is_pinned_to_the_nodes_its_controller_chooses() -> None:
    nodes = [
        node("b").label("disk", "ssd"),
        node("a").label("disk", "ssd").cordoned().taint("node.kubernetes.io/unschedulable"),
        node("c").label("disk", "ssd").taint("gpu"),
        node("d"),
    ]
    daemon = workload("DaemonSet")
    daemon["spec"]["template"] = {"spec": {**TEMPLATE["spec"], "nodeSelector": {"disk": "ssd"}}}
    made = made_from(daemon, *nodes)
    assert [each["metadata"]["name"] for each in made] == ["w-a", "w-b"], "tolerates closed nodes, not foreign taints"
    required = made[0]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required == {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]}


def test_nothing_is_made_for_a_workload_whose_pods_are_there() -> None:
    assert names(workload("ReplicaSet"), pod("x", "prod").owned_by("ReplicaSet", "w")) == []
    assert names(workload("ReplicaSet"), pod("x", "other").owned_by("ReplicaSet", "w")) == ["w-0"]
    assert names(workload("Deployment"), pod("x", "prod").owned_by("ReplicaSet", "w-12ab")) == []
    replica_set = workload("ReplicaSet").owned_by("Deployment", "w")
    assert [owner(made) for made in made_from(workload("Deployment"), replica_set)] == [("ReplicaSet", "w")]


def test_a_volcano_job_makes_a_group_and_its_pods() -> None:
    job = Builder("batch.volcano.sh/v1alpha1", "Job", "train", "prod").uid("u")
    worker = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 2, "nvidia.com/gpu": 1}}}]}}
    job["spec"] = {
        "queue": "q",
        "minAvailable": 2,
        "tasks": [
            {"name": "ps", "replicas": 1, "template": {"spec": TEMPLATE["spec"]}},
            {"name": "worker", "replicas": 2, "minAvailable": 1, "template": worker},
        ],
    }
    group, *pods = made_from(job)
    assert group["metadata"]["name"] == "train-u"
    assert group["spec"] == {
        "minMember": 2,
        "minTaskMember": {"ps": 1, "worker": 1},
        "queue": "q",
        "minResources": {"cpu": "3", "nvidia.com/gpu": "1"},
    }
    assert [each["metadata"]["name"] for each in pods] == ["train-ps-0", "train-worker-0", "train-worker-1"]
    assert pods[1]["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "train-u"
    assert pods[1]["spec"]["schedulerName"] == "volcano"


def test_a_workload_that_makes_no_sense_is_told() -> None:
    made, (mistake,) = expand([Document(workload("ReplicaSet", replicas="many"), "f document 2")])
    assert not made
    assert str(mistake).startswith("f document 2: ReplicaSet prod/w: spec.replicas: found 'many', expected a whole number")
    bare = Builder("apps/v1", "Deployment", "w")
    _, (mistake,) = expand([Document(bare, "")])
    assert mistake.kind == "Deployment"


@pytest.mark.parametrize(
    ("kind", "spec", "field", "found"),
    [
        ("Deployment", {"replicas": 2}, "spec.template", "nothing"),
        ("Deployment", {"template": {"metadata": {"labels": ["a"]}, "spec": {}}}, "spec.template.metadata.labels", "['a']"),
        ("Deployment", {"replicas": 3_000_000_000, "template": TEMPLATE}, "spec.replicas", "3000000000"),
        ("DaemonSet", {"template": {"spec": "x"}}, "spec.template.spec", "'x'"),
        ("StatefulSet", {"template": TEMPLATE, "volumeClaimTemplates": [{}]}, "spec.volumeClaimTemplates[0].metadata", "nothing"),
        ("StatefulSet", {"template": TEMPLATE, "ordinals": {"start": -1}}, "spec.ordinals.start", "-1"),
        ("ReplicaSet", None, "spec", "nothing"),
    ],
)
def test_a_mistake_in_a_workload_names_the_field(kind: str, spec: object, field: str, found: str) -> None:
    made = Builder("apps/v1", kind, "w", "prod")
    made["spec"] = spec
    _, (mistake,) = expand([Document(made, "f document 1")])
    assert (mistake.kind, mistake.name, mistake.path, mistake.found) == (kind, "prod/w", field, found)


@pytest.mark.parametrize(
    ("spec", "field", "found"),
    [
        ({"tasks": "x"}, "spec.tasks", "'x'"),
        ({"tasks": [{"replicas": "2", "template": TEMPLATE}]}, "spec.tasks[0].replicas", "'2'"),
        ({"tasks": [{"replicas": 1}]}, "spec.tasks[0].template", "nothing"),
        ({"minAvailable": -1, "tasks": []}, "spec.minAvailable", "-1"),
    ],
)
def test_a_mistake_in_a_volcano_job_names_the_field(spec: object, field: str, found: str) -> None:
    job = Builder("batch.volcano.sh/v1alpha1", "Job", "train", "prod")
    job["spec"] = spec
    _, (mistake,) = expand([Document(job, "")])
    assert (mistake.name, mistake.path, mistake.found) == ("prod/train", field, found)
