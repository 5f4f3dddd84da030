"""Pods as tasks: what a user writes on a pod and what the scheduler then sees."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.apis.admission.admission import AdmissionContext
from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.errors import ObjectError
from navarch.ingest.pod_reader import PodReader
from navarch.model.spec import (
    HostPort,
    LabelSelector,
    NodeAffinity,
    NodeTerm,
    PriorityClassSpec,
    Requirement,
    TaskSpec,
    Toleration,
    VolumeUse,
)
from navarch.model.status import TaskStatus
from navarch.testing.builders import PodBuilder, pod


def read(manifest: dict[str, Any], **settings: Any) -> TaskSpec:
    task = PodReader(Settings(**settings)).read(from_manifest(manifest, Pod))
    assert task is not None
    return task


def admitted(manifest: dict[str, Any], **classes: int) -> TaskSpec:
    known = {name: PriorityClassSpec(name, value) for name, value in classes.items()}
    task = PodReader(Settings(), AdmissionContext(), known).read(from_manifest(manifest, Pod))
    assert task is not None
    return task


@pytest.mark.parametrize(
    ("manifest", "status"),
    [
        (pod("a"), TaskStatus.PENDING),
        (pod("a").bound_to("n"), TaskStatus.BOUND),
        (pod("a").on("n"), TaskStatus.RUNNING),
        (pod("a").on("n").deleting(), TaskStatus.RELEASING),
        (pod("a").deleting(), TaskStatus.RELEASING),
        (pod("a").on("n").phase("Succeeded").deleting(), TaskStatus.SUCCEEDED),
        (pod("a").on("n").phase("Failed"), TaskStatus.FAILED),
        (pod("a").on("n").phase("Unknown"), TaskStatus.UNKNOWN),
    ],
)
def test_the_node_and_status_of_a_pod(manifest: PodBuilder, status: TaskStatus) -> None:
    assert read(manifest).status == status


def test_a_pod_without_a_group_is_in_its_owners_job() -> None:
    assert read(pod("a")).job == "default/pod/a"
    assert read(pod("a", "prod").owned_by("ReplicaSet", "web")).job == "prod/replicaset/web"
    assert read(pod("a").in_group("g").owned_by("ReplicaSet", "web")).job == "default/g"
    assert read(pod("a").annotate("scheduling.volcano.sh/group-name", "v")).job == "default/v"


def test_pods_of_another_scheduler() -> None:
    reader = PodReader(Settings(scheduler_names=frozenset({"navarch"})))
    assert reader.read(from_manifest(pod("a").scheduler("other"), Pod)) is None
    assert reader.read(from_manifest(pod("a"), Pod)) is None, "an absent name is default-scheduler"
    placed = reader.read(from_manifest(pod("a").scheduler("other").on("n"), Pod))
    assert placed is not None and placed.job == "", "it only occupies its node"
    ours = reader.read(from_manifest(pod("a").scheduler("navarch"), Pod))
    assert ours is not None and ours.job == "default/pod/a"


def test_a_pod_that_reserves_a_shared_gpu_counts_without_the_gpu() -> None:
    requests = {"cpu": "1m", "nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "reserve", "resources": {"requests": requests, "limits": requests}}
    labels = {"app": "kai-resource-reservation", "runai-gpu-group": "group-0"}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "gpu-reservation", "namespace": "kai-resource-reservation", "labels": labels},
        "spec": {"nodeName": "n", "containers": [container]},
        "status": {"phase": "Running"},
    }
    task = read(manifest)
    assert (task.job, task.node, task.gpu_groups) == ("", "n", ())
    assert "nvidia.com/gpu" not in dict(task.shape.requests)
    for namespace, carried in (
        ("ns", labels),
        ("kai-resource-reservation", {"app": "kai-resource-reservation"}),
        ("ns", {"app": "web"}),
    ):
        manifest["metadata"] = {"name": "other", "namespace": namespace, "labels": carried}
        assert dict(read(manifest).shape.requests)["nvidia.com/gpu"] == 1000, "a tenant's label hides no GPU"


def test_equal_templates_share_one_shape_object() -> None:
    first = read(pod("a").cpu("1").memory("1Gi").on("n1"))
    second = read(pod("b", "elsewhere").cpu("1").memory("1Gi").on("n2"))
    other = read(pod("c").cpu("2").memory("1Gi").on("n1"))
    assert first.shape is second.shape
    assert first.shape != other.shape
    assert first.shape.requests == (("cpu", 1000), ("memory", 1 << 30))
    assert read(pod("d").cpu(1).memory("1024Mi").on("n")).shape is first.shape, "the same amounts in other words"


def test_a_generated_token_volume_does_not_part_shapes() -> None:
    def with_token(name: str) -> PodBuilder:
        made = pod(name).cpu("1")
        made["spec"]["volumes"] = [{"name": f"kube-api-access-{name}", "projected": {"sources": []}}]
        return made

    assert read(with_token("a")).shape is read(with_token("b")).shape


def test_claims_and_disks_of_a_pod_are_part_of_its_shape() -> None:
    manifest = pod("a")
    manifest["spec"]["volumes"] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "scratch", "ephemeral": {}},
        {"name": "disk", "rbd": {"monitors": ["m1"], "image": "i"}},
    ]
    shape = read(manifest).shape
    assert shape.volumes == VolumeUse((("c", False), ("a-scratch", True)), (("rbd", ("rbd", "i", "m1"), False),))
    assert shape.namespace == "default"


def test_ports_of_containers_and_sidecars_only() -> None:
    manifest = pod("a").host_port(80)
    manifest["spec"]["initContainers"] = [
        {"name": "once", "ports": [{"containerPort": 1, "hostPort": 1}]},
        {"name": "side", "restartPolicy": "Always", "ports": [{"containerPort": 2, "hostPort": 2, "hostIP": "10.0.0.1"}]},
    ]
    assert read(manifest).shape.ports == (HostPort(2, "TCP", "10.0.0.1"), HostPort(80))


def test_presence_is_not_truth() -> None:
    empty = pod("a").affinity(nodeAffinity={"requiredDuringSchedulingIgnoredDuringExecution": {}})
    assert read(empty).shape.node_affinity == NodeAffinity(required=())
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}
    near = pod("a").affinity(podAffinity={"requiredDuringSchedulingIgnoredDuringExecution": [term]})
    affinity = read(near).shape.pod_affinity
    assert affinity is not None
    assert affinity.required[0].selector == LabelSelector()
    assert affinity.required[0].namespaces == () and affinity.required[0].namespace_selector == LabelSelector()
    absent = pod("a").affinity(podAffinity={"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]})
    affinity = read(absent).shape.pod_affinity
    assert affinity is not None
    assert affinity.required[0].selector is None and affinity.required[0].namespaces == ("default",)


def test_match_label_keys_are_folded_once() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "matchLabelKeys": ["version", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    manifest = pod("a").label("version", "7").label("tenant", "t")
    manifest.affinity(podAntiAffinity={"requiredDuringSchedulingIgnoredDuringExecution": [term]})
    affinity = read(manifest).shape.pod_affinity
    assert affinity is not None
    wanted = (Requirement("app", "In", ("x",)), Requirement("version", "In", ("7",)), Requirement("tenant", "NotIn", ("t",)))
    assert affinity.anti_required[0].selector == LabelSelector(wanted)
    term["labelSelector"] = {
        "matchLabels": {"app": "x"},
        "matchExpressions": [{"key": "version", "operator": "In", "values": ["7"]}],
    }
    again = read(manifest).shape.pod_affinity
    assert again is not None and again.anti_required[0].selector == LabelSelector(wanted)


def test_spread_constraints_differ_by_labels_only_where_keys_say_so() -> None:
    selector = {"matchLabels": {"app": "x"}}
    plain = read(pod("a").spread("zone", selector)).shape
    assert plain.has_own_spread and plain.spread[0].hard and plain.spread[0].honor_node_affinity
    assert read(pod("b").label("any", "thing").spread("zone", selector)).shape == plain


def test_node_affinity_and_selector() -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    manifest = (
        pod("a")
        .select("disk", "ssd")
        .affinity(
            nodeAffinity={
                "requiredDuringSchedulingIgnoredDuringExecution": required,
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}}
                ],
            }
        )
    )
    shape = read(manifest).shape
    assert shape.node_selector == (("disk", "ssd"),)
    assert shape.node_affinity == NodeAffinity(
        (NodeTerm((Requirement("zone", "In", ("a",)),)),),
        ((5, NodeTerm((), (Requirement("metadata.name", "In", ("n",)),))),),
    )


def test_volcanos_annotations_of_pods() -> None:
    task = read(pod("a").role("ps").priority(7).annotate("volcano.sh/task-priority", "9").label("volcano.sh/preemptable", "false"))
    assert (task.role, task.priority, task.pod_priority, task.preemptable) == ("ps", 9, 7, False)
    annotated = pod("a").label("volcano.sh/preemptable", "false").preemptable(True)
    assert read(annotated).preemptable, "the annotation goes before the label"
    assert read(annotated).shape.hints == (("volcano.sh/revocable-zone", "*"),)


def test_a_resize_counts_on_a_node_and_not_before() -> None:
    manifest = pod("a").cpu("1")
    manifest["status"]["containerStatuses"] = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
    assert dict(read(manifest).shape.requests)["cpu"] == 1000
    assert dict(read(manifest.on("n")).shape.requests)["cpu"] == 2000


def test_defaults_of_admission_apply_to_files() -> None:
    manifest = pod("a").limit("cpu", "2").host_port(80)
    manifest["spec"]["hostNetwork"] = True
    manifest["spec"]["containers"][0]["ports"].append({"containerPort": 81})
    before = PodBuilder("a") | manifest
    shape = admitted(manifest).shape
    assert shape.requests == (("cpu", 2000),)
    assert shape.ports == (HostPort(80), HostPort(81))
    assert Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute") in shape.tolerations
    assert read(manifest).shape.requests == (), "a pod that a server has admitted is taken at its word"
    assert manifest == before, "the input is left alone"


def test_priority_classes_are_resolved_for_files() -> None:
    assert admitted(pod("a").priority_class("high"), high=100).pod_priority == 100
    assert admitted(pod("a").priority_class("high").priority(7), high=100).pod_priority == 7
    assert admitted(pod("a").priority_class("system-node-critical")).pod_priority == 2_000_001_000
    with pytest.raises(ObjectError, match=r"Pod default/a: spec.priorityClassName: found 'nope'"):
        admitted(pod("a").priority_class("nope"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cpu": "much"}, "spec.containers[0].resources.requests[cpu]: found 'much', expected a quantity such as"),
        ({"cpu": ["1"]}, "spec.containers[0].resources.requests[cpu]: found ['1'], expected a quantity such as"),
    ],
)
@pytest.mark.parametrize("reader", [read, admitted])
def test_a_bad_quantity_is_named(change: dict[str, Any], message: str, reader: Any) -> None:
    manifest = pod("a")
    manifest["spec"]["containers"][0]["resources"] = {"requests": change}
    with pytest.raises(ObjectError) as caught:
        reader(manifest)
    assert message in str(caught.value)
    assert str(caught.value).startswith("Pod default/a:")


def test_a_preemption_under_way_is_seen() -> None:
    manifest = pod("a").on("n")
    manifest["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
    ]
    assert read(manifest).disruption_target
    manifest["status"]["conditions"][0]["reason"] = "EvictionByEvictionAPI"
    assert not read(manifest).disruption_target


def reread(manifest: dict[str, Any], changed: dict[str, Any]) -> TaskSpec | None:
    """What is made of the change alone; it must be what a fresh reading makes of the whole."""
    reader = PodReader(Settings())
    old, new = from_manifest(manifest, Pod), from_manifest(changed, Pod)
    before = reader.read(old)
    assert before is not None
    found = reader.reread(new, old, before)
    assert found is None or found == reader.read(new)
    return found


def changed(manifest: dict[str, Any], **parts: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, **{name: {**manifest.get(name, {}), **part} for name, part in parts.items()}}


PLAIN = {"metadata": {"name": "p", "labels": {"app": "x"}}, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Pending"}}
SPREAD = changed(PLAIN, spec={"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]})
BY_NODE = {"app": "x", "topology.kubernetes.io/zone": "a"}


@pytest.mark.parametrize(
    "parts",
    [
        {"spec": {"nodeName": "n"}},
        {"spec": {"nodeName": "n"}, "metadata": {"labels": BY_NODE}},
        {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}, "spec": {"nodeName": "n"}},
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}},
        {"status": {"nominatedNodeName": "n"}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ],
)
def test_a_pod_that_only_stands_elsewhere_is_not_read_again(parts: dict[str, Any]) -> None:
    assert reread(PLAIN, changed(PLAIN, **parts)) is not None


@pytest.mark.parametrize(
    "parts",
    [
        {"spec": {"schedulingGates": [{"name": "g"}]}},
        {"metadata": {"labels": {"app": "y"}}},
        {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "g"}}},
        {"metadata": {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "u", "controller": True}]}},
        {"status": {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}, "spec": {"nodeName": "n"}},
    ],
)
def test_a_pod_of_which_more_has_changed_is_read_again(parts: dict[str, Any]) -> None:
    assert reread(PLAIN, changed(PLAIN, **parts)) is None


def test_labels_of_the_node_matter_to_a_pod_that_spreads() -> None:
    assert reread(SPREAD, changed(SPREAD, spec={"nodeName": "n"})) is not None
    assert reread(SPREAD, changed(SPREAD, metadata={"labels": BY_NODE})) is None
