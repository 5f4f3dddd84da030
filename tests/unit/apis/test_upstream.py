"""PodGroups of Kubernetes itself and the Workload before them, as jobs; pods as their members."""

from __future__ import annotations

from typing import Any

import pytest

import navarch
from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.errors import ObjectError
from navarch.apis.registry import KINDS
from navarch.apis.upstream.podgroups import group_of
from navarch.live.cache.assumed_pods import AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.model.spec import Condition, JobSpec, TopologyDemand
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.testing.builders import node

GROUP = "scheduling.k8s.io/"
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 4}}}
SINCE = "2026-01-01T00:00:00Z"


def read(manifest: dict[str, Any]) -> Any:
    kind = KINDS[manifest["apiVersion"], manifest["kind"]]
    return kind.read(from_manifest(manifest, kind.struct), Settings())


def group(version: str = "v1alpha2", conditions: list[dict[str, str]] | None = None, **spec: Any) -> JobSpec:
    manifest = {
        "apiVersion": GROUP + version,
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "team", "uid": "u"},
        "spec": spec,
        "status": {"conditions": conditions} if conditions else {},
    }
    job = read(manifest)
    assert isinstance(job, JobSpec)
    return job


def workload(*groups: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "train", "namespace": "team", "uid": "w"}
    return {"apiVersion": f"{GROUP}v1alpha1", "kind": "Workload", "metadata": metadata, "spec": {"podGroups": list(groups)}}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "namespace": "team", "uid": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1"])
def test_min_count_of_a_gang_is_its_minimum(version: str) -> None:
    mode = "PodGroup" if version == "v1alpha2" else {"all": {}}
    job = group(version, **GANG, disruptionMode=mode)
    assert (job.key, job.min_member, job.queue, job.dialect, job.api_version) == ("team/g", 4, "", "upstream", GROUP + version)
    assert (job.phase, job.conditions, job.priority_of_tasks) == ("Inqueue", (), True)
    assert group(version, schedulingPolicy={"basic": {}}).min_member == 1


def test_a_group_names_its_queue_as_pods_do() -> None:
    manifest = {"metadata": {"name": "g", "annotations": {"scheduling.volcano.sh/queue-name": "research"}}, "spec": GANG}
    assert read({"apiVersion": f"{GROUP}v1alpha2", "kind": "PodGroup", **manifest}).queue == "research"


def test_the_groups_own_priority_counts() -> None:
    """Admission resolves the class and writes the value beside it."""
    job = group(**GANG, priorityClassName="high", priority=100)
    assert (job.priority_class, job.default_priority, job.priority_of_tasks) == ("high", 100, False)
    assert group(**GANG, priority=0).priority_of_tasks, "what admission writes where no class is named"


@pytest.mark.parametrize(("version", "kind"), [("v1alpha2", "PodGroupScheduled"), ("v1beta1", "PodGroupInitiallyScheduled")])
def test_the_condition_of_a_group_is_read_as_its_last_reason(version: str, kind: str) -> None:
    said = {"type": kind, "lastTransitionTime": SINCE}
    other = {"type": "DisruptionTarget", "status": "True", "reason": "Preempted", "message": "m", "lastTransitionTime": SINCE}
    waits = group(version, [other, {**said, "status": "False", "reason": "Unschedulable", "message": "no room"}], **GANG)
    assert waits.phase == "Inqueue"
    assert waits.conditions == (
        Condition("DisruptionTarget", "True", "Preempted", "m", last_transition=1767225600.0),
        Condition("Unschedulable", "True", "NotEnoughResources", "no room", last_transition=1767225600.0),
    )
    runs = group(version, [{**said, "status": "True", "reason": "Scheduled", "message": ""}], **GANG)
    assert (runs.phase, runs.conditions[0].type) == ("Running", "Scheduled")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.schedulingPolicy: found neither, expected basic or gang"),
        ({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}, "spec.schedulingPolicy: found both, expected basic or gang"),
        ({"schedulingPolicy": {"gang": {}}}, "spec.schedulingPolicy.gang.minCount: found nothing, expected 1 or more"),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "spec.schedulingPolicy.gang.minCount: found 0, expected 1 or more"),
        ({"schedulingPolicy": {"gang": {"minCount": "all"}}}, "spec.schedulingPolicy.gang.minCount: found 'all', expected a whole"),
        (
            {**GANG, "schedulingConstraints": {"topology": [{"key": "rack"}, {"key": "zone"}]}},
            "spec.schedulingConstraints.topology: found 2 constraints, expected one at most",
        ),
        (
            {**GANG, "schedulingConstraints": {"topology": [{}]}},
            "spec.schedulingConstraints.topology[0].key: found nothing, expected the key of a node label",
        ),
        ({**GANG, "disruptionMode": "Some"}, "spec.disruptionMode: found 'Some', expected single or all"),
        ({**GANG, "disruptionMode": {"single": {}, "all": {}}}, "spec.disruptionMode: found {'all': {}, 'single': {}}, expected"),
        ({**GANG, "parentCompositePodGroupName": "p"}, "spec.parentCompositePodGroupName: found 'p', expected nothing: only kube"),
    ],
)
def test_unsupported_groups_are_invalid(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ObjectError) as caught:
        group(**spec)
    assert f"PodGroup team/g: {message}" in str(caught.value)


def test_constraints_of_a_group_are_read() -> None:
    job = group(
        **GANG,
        schedulingConstraints={"topology": [{"key": "rack"}]},
        disruptionMode="PodGroup",
        preemptionPolicy="Never",
        resourceClaims=[{"name": "c", "resourceClaimName": "shared"}],
    )
    assert job.topology == TopologyDemand(label="rack") and job.disrupted_together and job.preemption_policy == "Never"
    assert group("v1beta1", **GANG, disruptionMode={"all": {}}).disrupted_together
    assert not group("v1beta1", **GANG, disruptionMode={"single": {}}).disrupted_together
    assert not group(**GANG).disrupted_together and group(**GANG).topology is None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ""),
        ({"schedulingGroup": {}}, ""),
        ({"schedulingGroup": {"podGroupName": "g"}}, "g"),
        ({"workloadRef": {"name": "train", "podGroup": "workers"}}, "workload/train:workers"),
        ({"workloadRef": {"name": "train", "podGroup": "workers", "podGroupReplicaKey": "0"}}, "workload/train:workers:0"),
        ({"workloadRef": {"name": "train"}}, ""),
    ],
)
def test_a_pod_names_its_group(spec: dict[str, Any], expected: str) -> None:
    assert group_of(from_manifest(pod("p", **spec), Pod)) == expected


def test_a_workloads_mistakes_name_the_group() -> None:
    with pytest.raises(ObjectError) as caught:
        read(workload({"name": "a", "policy": {"basic": {}}}, {"name": "b", "policy": {"gang": {"minCount": -1}}}))
    assert "Workload team/train: spec.podGroups[1].policy.gang.minCount: found -1, expected 1 or more" in str(caught.value)


def test_replicas_of_a_workloads_group_are_learned_of_in_any_order() -> None:
    """Pods first: they wait until the Workload says how many of them make a gang."""
    cache = ClusterCache(Settings(), AssumedPods(), lambda event, job="", urgent=True, freed=None: None)
    for key in ("0", "1"):
        reference = {"name": "train", "podGroup": "workers", "podGroupReplicaKey": key}
        for i in range(2):
            cache.put_pod(from_manifest(pod(f"p-{key}-{i}", workloadRef=reference), Pod))
    jobs = cache.cluster.jobs
    keys = [f"team/workload/train:workers:{key}" for key in ("0", "1")]
    assert [jobs.specs[jobs.rows.of[key]] for key in keys] == [None, None]
    cache.put(read(workload({"name": "workers", "policy": {"gang": {"minCount": 2}}})))
    found = [jobs.specs[jobs.rows.of[key]] for key in keys]
    assert [(spec.min_member, spec.queue, spec.shadow, spec.owner) for spec in found if spec] == [
        (2, "default", True, ("Workload", "train", "w"))
    ] * 2
    cache.remove(read(workload({"name": "workers", "policy": {"gang": {"minCount": 2}}})))
    assert jobs.specs[jobs.rows.of[keys[0]]] is not None, "its pods are being deleted with it"
    for i in range(2):
        cache.remove_pod(f"p-0-{i}")
    assert keys[0] not in jobs.rows.of


def test_a_pod_without_its_group_says_so_in_a_plan() -> None:
    lonely = pod("lonely", schedulingGroup={"podGroupName": "missing"})
    (cycle,) = navarch.plan([node("n1").cpu("4"), lonely]).to_dict()["cycles"]
    (job,) = cycle["jobs"]
    assert job["reasons"][0]["message"] == 'the PodGroup "team/missing" does not exist' and cycle["binds"] == []


def test_two_groups_of_one_name_are_one_job_and_the_elder_api_speaks() -> None:
    """Pods name a group without its API, so both mean the same pods; files and the live cache agree on whose word counts."""
    volcano = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}}
    ours = {"apiVersion": f"{GROUP}v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": GANG}
    cache = ClusterCache(Settings(), AssumedPods(), lambda event, job="", urgent=True, freed=None: None)
    for order in ((volcano, ours), (ours, volcano)):
        found = Inventory([Document(each) for each in order], Settings()).jobs
        for each in order:
            cache.put(read(each))
        live = cache.cluster.jobs.specs[cache.cluster.jobs.rows.of["default/g"]]
        assert found["default/g"].min_member == 3 and live is not None and live.min_member == 3
