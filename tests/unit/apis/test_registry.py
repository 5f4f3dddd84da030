"""Nodes, PodGroups and Queues of each API as specs of the model."""

from __future__ import annotations

from typing import Any, cast

import pytest

from navarch.apis.core.objects import from_manifest
from navarch.apis.dialect import Settings
from navarch.apis.errors import ObjectError
from navarch.apis.registry import KINDS
from navarch.model.spec import (
    Condition,
    DisruptionBudgetSpec,
    JobSpec,
    LabelSelector,
    NodeSpec,
    QueueSpec,
    QuotaSpec,
    Requirement,
    SubGroupSpec,
    Taint,
    TopologyDemand,
)
from navarch.testing.builders import Builder, budget, node, pod_group, priority_class, queue

KUBE_BATCH = ("scheduling.incubator.k8s.io/v1alpha1", "scheduling.sigs.dev/v1alpha2")


def read(manifest: dict[str, Any]) -> Any:
    kind = KINDS[manifest["apiVersion"], manifest["kind"]]
    return kind.read(from_manifest(manifest, kind.struct), Settings())


def test_a_node() -> None:
    found = read(node("n").cpu("4").memory("8Gi").gpu(2).has("rdma", 1).taint("gpu").cordoned())
    assert isinstance(found, NodeSpec)
    assert found.allocatable == (("cpu", 4000), ("memory", 8 << 30), ("nvidia.com/gpu", 2000), ("pods", 110))
    assert found.taints == (Taint("gpu"),) and found.unschedulable and found.ready


def test_a_node_that_reports_no_allocatable_has_its_capacity() -> None:
    manifest = node("n").cpu("4")
    del manifest["status"]["allocatable"]
    assert dict(read(manifest).allocatable)["cpu"] == 4000
    manifest["status"]["allocatable"] = {}
    assert read(manifest).allocatable == (), "empty is not absent"


def test_oversubscription_is_added() -> None:
    found = read(node("n").cpu("4").annotate("volcano.sh/oversubscription-cpu", "500"))
    assert dict(found.allocatable)["cpu"] == 4500
    for text in ("much", "9" * 30, "-1e300", "inf", "nan"):
        with pytest.raises(ObjectError, match="oversubscription-cpu"):
            read(node("n").annotate("volcano.sh/oversubscription-cpu", text))


def test_a_node_not_ready() -> None:
    manifest = node("n")
    manifest["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert not read(manifest).ready


@pytest.mark.parametrize("version", KUBE_BATCH)
def test_kube_batch(version: str) -> None:
    job = read(pod_group("g", 3, api_version=version).queue("q").priority_class("high"))
    assert isinstance(job, JobSpec)
    assert (job.key, job.min_member, job.queue, job.priority_class) == ("default/g", 3, "q", "high")
    assert (job.dialect, job.api_version, job.phase) == ("kube-batch", version, "Pending")
    found = read(queue("q", 4, api_version=version))
    assert isinstance(found, QueueSpec) and (found.weight, found.state) == (4, "Open")


def test_volcano_pod_group() -> None:
    manifest = pod_group("g", 4).role("ps", 1).role("worker", 3).min_resources(cpu="4").phase("Inqueue")
    manifest["spec"]["networkTopology"] = {"mode": "soft", "highestTierAllowed": 2}
    manifest["spec"]["subGroupPolicy"] = [
        {"name": "p", "subGroupSize": 2, "minSubGroups": 1, "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["k"]}
    ]
    manifest["status"]["conditions"] = [{"type": "Scheduled", "status": "True", "reason": "tasks", "transitionID": "t"}]
    job = read(manifest)
    assert job.roles == (("ps", 1), ("worker", 3))
    assert job.min_resources == (("cpu", 4000),)
    assert job.topology == TopologyDemand(hard=False, highest_tier=2)
    assert job.sub_groups == (
        SubGroupSpec("p", 2, min_groups=1, selector=LabelSelector((Requirement("a", "In", ("b",)),)), match_label_keys=("k",)),
    )
    assert job.conditions == (Condition("Scheduled", "True", "tasks", transition_id="t"),)
    assert read(pod_group("g")).min_resources is None
    assert read(pod_group("g").min_resources()).min_resources == (), "present but empty is not absent"


def test_volcano_queue() -> None:
    manifest = queue("q", 2).parent("root").deserved(cpu=2).guarantee(memory="1Gi").reclaimable(False).state("Closed")
    manifest["spec"]["affinity"] = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["a"]}}
    found = read(manifest)
    assert (found.weight, found.parent, found.reclaimable, found.state) == (2, "root", False, "Closed")
    assert found.deserved == (("cpu", 2000),) and found.guarantee == (("memory", 1 << 30),) and found.capability is None
    assert found.node_groups == {"affinity.required": ("a",), "affinity.preferred": ()}
    assert read(queue("q")).node_groups is None


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (pod_group("g", -1), "PodGroup default/g: spec.minMember: found -1, expected 0 or more"),
        (pod_group("g").role("ps", -1), "PodGroup default/g: spec.minTaskMember[ps]: found -1, expected 0 or more"),
        (queue("q", -2), "Queue q: spec.weight: found -2, expected 1 or more"),
        (queue("q").capability(cpu="x"), "Queue q: spec.capability[cpu]: found 'x', expected a quantity"),
        (node("n").cpu("4 cores"), "Node n: status.capacity[cpu]: found '4 cores', expected a quantity"),
        (node("n").label("zone", cast(Any, 3)), "Node n: metadata.labels[zone]: found 3, expected text"),
        (pod_group("g", cast(Any, "all")), "PodGroup default/g: spec.minMember: found 'all', expected a whole number"),
    ],
)
def test_mistakes_name_object_field_and_value(manifest: Builder, message: str) -> None:
    with pytest.raises(ObjectError) as caught:
        read(manifest)
    assert message in str(caught.value)


def test_the_rest() -> None:
    assert read(priority_class("high", 10, default=True)).global_default
    found = read(budget("b", {"app": "x"}, 1).owned_by("StatefulSet", "db"))
    assert isinstance(found, DisruptionBudgetSpec)
    assert found.allowed == 1 and found.owner == ("StatefulSet", "db", "StatefulSet-db")
    quota = Builder("v1", "ResourceQuota", "q", "default")
    quota["spec"] = {"hard": {"requests.cpu": "4", "pods": 10, "count/jobs.batch": 3}}
    found = read(quota)
    assert isinstance(found, QuotaSpec) and found.hard == (("cpu", 4000), ("pods", 10))
