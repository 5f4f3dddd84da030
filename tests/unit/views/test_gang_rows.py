"""`navarch jobs` shows the groups of coscheduling and of Kubernetes as it shows any other."""

from __future__ import annotations

from typing import Any

import msgspec

from navarch.apis.core.pod_objects import Pod
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.testing.builders import node
from navarch.views.jobs import JobRow
from navarch.views.overview import Overview, overview

UPSTREAM = "scheduling.k8s.io/"
TEAM = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "team"}, "spec": {"resources": {}}}


def group(version: str, name: str, spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec, "status": status}


def pod(name: str, where: str = "", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    status = {"phase": "Running" if where else "Pending"}
    whole = {"containers": [{"name": "main", "image": "busybox"}], **({"nodeName": where} if where else {}), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": whole, "status": status}


def rows(*objects: dict[str, Any]) -> list[JobRow]:
    return overviewed(*objects).jobs


def overviewed(*objects: dict[str, Any], served: frozenset[str] | None = None) -> Overview:
    policy = read_policy("navarch", installed())
    cluster = Inventory([Document(each) for each in (node("n1").cpu("4"), *objects)], settings_for(policy)).cluster
    pods = {each["metadata"]["name"]: msgspec.convert(each, Pod, strict=False) for each in objects if each["kind"] == "Pod"}
    return overview(cluster, policy, installed(), 1000.0, lambda namespace, name: pods.get(name), served)


def test_groups_of_both_apis() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "one"}
    said = {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "message": "2/2 unschedulable: no room"}
    one, two = rows(
        group("scheduling.x-k8s.io/v1alpha1", "one", {"minMember": 2}, {"phase": "Scheduling"}),
        pod("a", "n1", labels, priority=7),
        pod("b", "n1", labels, priority=7),
        group(f"{UPSTREAM}v1alpha2", "two", {"schedulingPolicy": {"gang": {"minCount": 2}}}, {"conditions": [said]}),
        pod("c", schedulingGroup={"podGroupName": "two"}),
        pod("d", schedulingGroup={"podGroupName": "two"}),
    )
    assert (one.name, one.kind, one.queue, one.phase, one.min_member, one.running) == ("one", "PodGroup", "default", "Running", 2, 2)
    assert one.priority == 7, "its pods'"
    assert (two.name, two.phase, two.pending, two.why) == ("two", "Inqueue", 2, "2/2 unschedulable: no room")


def test_gangs_of_a_workload() -> None:
    workload = {
        "apiVersion": f"{UPSTREAM}v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "train"},
        "spec": {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 2}}}]},
    }
    reference = {"name": "train", "podGroup": "workers", "podGroupReplicaKey": "0"}
    lost, known = rows(
        workload,
        pod("a", workloadRef=reference),
        pod("b", workloadRef=reference),
        pod("c", workloadRef={"name": "train", "podGroup": "chief"}),
    )
    assert (known.name, known.kind, known.min_member, known.pending) == ("train:workers:0", "Workload", 2, 2)
    assert (lost.name, lost.why) == ("train:chief", 'there is no Workload "default/train" with a group "chief"')


def test_a_queue_that_does_not_exist_is_named() -> None:
    lost = group("scheduling.volcano.sh/v1beta1", "lost", {"minMember": 1, "queue": "nowhere"}, {})
    member = pod("a")
    member["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "lost"}
    (row,) = rows(lost, member)
    assert (row.name, row.queue, row.why) == ("lost", "nowhere", 'the queue "nowhere" does not exist')


def test_the_reason_from_before_a_gang_started_is_not_shown_for_later_pods() -> None:
    annotations = {"scheduling.k8s.io/group-name": "g"}
    old = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "2/1 tasks in gang unschedulable"}
    members = [pod("a", "n1"), pod("b", "n1"), pod("c"), pod("d")]
    for member in members:
        member["metadata"]["annotations"] = annotations
    for member, said in zip(members[2:], ("its gang is not ready: d: 0/1 nodes", "0/1 nodes")):
        member["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}]
    (row,) = rows(group("scheduling.volcano.sh/v1beta1", "g", {"minMember": 2}, {"phase": "Running", "conditions": [old]}), *members)
    assert (row.running, row.pending, row.why, row.messages) == (2, 2, "0/1 nodes", "0/1 nodes")
    (row,) = rows(group("scheduling.volcano.sh/v1beta1", "g", {"minMember": 3}, {"phase": "Pending", "conditions": [old]}), *members)
    assert row.messages == "0/1 nodes; 2/1 tasks in gang unschedulable"


def test_a_group_without_pods_and_pods_of_others_say_what_they_are() -> None:
    empty = group("scheduling.volcano.sh/v1beta1", "empty", {"minMember": 2}, {})
    theirs = group("scheduling.volcano.sh/v1beta1", "theirs", {"minMember": 1}, {})
    member = pod("a", schedulerName="somebody")
    member["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "theirs"}
    found = overviewed(empty, theirs, member, pod("b", schedulerName="navarch"), served=frozenset({"navarch"}))
    assert {row.name: row.why for row in found.jobs} == {
        "b": "",
        "empty": "it has no pods: none were made yet, or it is suspended",
        "theirs": "its pods name the scheduler somebody",
    }
    assert found.others == {("default", "somebody"): 1}


def test_a_group_without_pods_says_why_it_is_not_admitted() -> None:
    refused = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "overused cpu"}
    (row,) = rows(group("scheduling.volcano.sh/v1beta1", "g", {"minMember": 2}, {"phase": "Pending", "conditions": [refused]}))
    assert row.why == "overused cpu"
    (row,) = rows(group("scheduling.volcano.sh/v1beta1", "g", {"minMember": 2}, {"phase": "Inqueue", "conditions": [refused]}))
    assert row.why == "it has no pods: none were made yet, or it is suspended", "that refusal is over"


def test_nothing_is_said_twice() -> None:
    few = "Not enough valid tasks, valid: 1, min: 2"
    said = {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "message": f"2/1 unschedulable; {few}"}
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": few}
    gang = group(f"{UPSTREAM}v1alpha2", "two", {"schedulingPolicy": {"gang": {"minCount": 2}}}, {"conditions": [said]})
    member = pod("c", schedulingGroup={"podGroupName": "two"})
    member["status"]["conditions"] = [told]
    (row,) = rows(gang, member)
    assert row.why == few, "what keeps it waiting comes first, since the rest may be cut off"
    assert row.messages == row.to_dict()["why"] == f"2/1 unschedulable; {few}"


def test_a_gpu_that_pods_share_is_not_free() -> None:
    half = {"gpu-fraction": "0.5"}
    members = [pod("a", "n2", {"runai-gpu-group": "g1"}), pod("b", "n2", {"runai-gpu-group": "g1"}), pod("c", "n2")]
    for member in members[:2]:
        member["metadata"]["annotations"] = half
    members[2]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    gpus = node("n2").cpu("1").gpu(8)
    _, found = overviewed(gpus, *members).nodes
    assert (found.to_dict()["used"]["nvidia.com/gpu"], found.to_dict()["free"]["nvidia.com/gpu"]) == ("2", "6")


def test_a_group_of_kai_in_parts_shows_what_its_parts_need_and_all_that_was_said() -> None:
    parts = [{"name": "leader", "minMember": 1}, {"name": "workers", "minMember": 4}]
    full = "Resources were found for 2 pods while 4 are required"
    said = {"type": "UnschedulableOnNodePool", "status": "True", "message": f"{full}; team may not take from other queues"}
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": full}
    gang = group("scheduling.run.ai/v2alpha2", "g", {"queue": "team", "subGroups": parts}, {"schedulingConditions": [said]})
    member = pod("a", labels={"kai.scheduler/subgroup-name": "workers"})
    member["metadata"]["annotations"] = {"pod-group-name": "g"}
    member["status"]["conditions"] = [told]
    (row,) = rows(gang, member, TEAM)
    assert (row.min_member, row.why, row.messages) == (5, full, f"{full}; team may not take from other queues")


def test_a_pod_that_is_promised_a_node_says_so() -> None:
    words = "node n1 is promised to it: it starts there when pods that are leaving are gone"
    gang = group("scheduling.run.ai/v2alpha2", "g", {"queue": "team", "minMember": 1}, {})
    member = pod("a")
    member["metadata"]["annotations"] = {"pod-group-name": "g"}
    member["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Schedulable", "message": words}]
    (row,) = rows(gang, member, TEAM)
    assert row.why == words
