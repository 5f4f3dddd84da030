"""Admission as `plan` sees it: what a server would add to a manifest, and what it would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.apis.admission.admission import AdmissionContext, admit

Manifest = dict[str, Any]


def pod(**spec: Any) -> Manifest:
    spec.setdefault("containers", [{"name": "main", "image": "busybox:1.36"}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}, "spec": spec}


def container(**resources: Manifest) -> Manifest:
    return {"name": "main", "image": "x", "resources": resources}


def admitted(obj: Manifest, *others: Manifest) -> Manifest:
    answer = admit(obj, AdmissionContext.of(others))
    assert answer.errors == ()
    return answer.obj


def refused(obj: Manifest, *others: Manifest) -> str:
    answer = admit(obj, AdmissionContext.of(others))
    assert len(answer.errors) == 1
    return answer.errors[0]


def priority_class(name: str, value: int, **fields: Any) -> Manifest:
    obj = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    return {**obj, **fields}


def test_a_bare_pod_gets_what_a_server_gives_it() -> None:
    obj = admitted(pod())
    spec = obj["spec"]
    assert spec["schedulerName"] == "default-scheduler" and spec["restartPolicy"] == "Always"
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert spec["terminationGracePeriodSeconds"] == 30 and spec["serviceAccountName"] == "default"
    assert [(each["key"], each["tolerationSeconds"]) for each in spec["tolerations"]] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    assert obj["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_the_manifest_given_is_left_alone() -> None:
    given = pod(containers=[container(limits={"cpu": "1"})])
    before = repr(given)
    admitted(given)
    assert repr(given) == before


def test_limits_become_requests_where_none_are_asked() -> None:
    obj = admitted(pod(containers=[container(limits={"cpu": "2", "memory": "1024Mi"}, requests={"cpu": "1.0001"})]))
    assert obj["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1001m", "memory": "1Gi"}
    assert obj["status"]["qosClass"] == "Burstable"


def test_pod_level_requests_follow_containers_and_limits() -> None:
    spec = admitted(
        pod(
            containers=[container(requests={"cpu": "500m"}), container(requests={"cpu": "250m"})],
            resources={"limits": {"cpu": "2", "memory": "1Gi"}},
        )
    )["spec"]
    assert spec["resources"]["requests"] == {"cpu": "750m", "memory": "1Gi"}


def test_host_network_ports_are_host_ports() -> None:
    spec = admitted(pod(hostNetwork=True, containers=[{"name": "c", "ports": [{"containerPort": 80}]}]))["spec"]
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_priority_comes_from_the_class_the_default_class_or_the_system() -> None:
    high = priority_class("high", 1000, preemptionPolicy="Never")
    default = priority_class("usual", 10, globalDefault=True)
    spec = admitted(pod(priorityClassName="high"), high, default)["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    spec = admitted(pod(), high, default)["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (10, "usual")
    assert admitted(pod(priorityClassName="system-node-critical"))["spec"]["priority"] == 2_000_001_000


def test_an_unknown_class_and_a_priority_of_ones_own_are_refused() -> None:
    assert refused(pod(priorityClassName="nobody")) == "no PriorityClass with name nobody was found"
    assert "must not be provided in pod spec" in refused(pod(priority=5))
    assert admitted(pod(priority=0))["spec"]["priority"] == 0


def test_a_toleration_of_all_taints_keeps_the_defaults_away() -> None:
    spec = admitted(pod(tolerations=[{"operator": "Exists"}]))["spec"]
    assert spec["tolerations"] == [{"operator": "Exists"}]


def test_a_runtime_class_brings_overhead_selector_and_tolerations() -> None:
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
    }
    spec = admitted(pod(runtimeClassName="kata"), runtime)["spec"]
    assert spec["overhead"] == {"cpu": "250m"} and spec["nodeSelector"] == {"kata": "yes"}
    assert spec["tolerations"][-1] == {"key": "kata", "operator": "Exists"}
    assert refused(pod(runtimeClassName="none")) == 'pod rejected: RuntimeClass "none" not found'
    assert "conflict: runtimeClass" in refused(pod(runtimeClassName="kata", nodeSelector={"kata": "no"}), runtime)


def test_a_limit_range_fills_and_refuses() -> None:
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "defaultRequest": {"cpu": "100m"}}]},
    }
    obj = admitted(pod(), limits)
    assert obj["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "100m"}, "limits": {"cpu": "2"}}
    said = obj["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    assert said == "LimitRanger plugin set: cpu request for container main; cpu limit for container main"
    greedy = pod(containers=[container(limits={"cpu": "3"})])
    assert refused(greedy, limits) == "maximum cpu usage per Container is 2, but limit is 3"


def test_match_label_keys_become_requirements_of_the_pods_own_values() -> None:
    obj = pod(
        topologySpreadConstraints=[
            {
                "topologyKey": "zone",
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "a"}},
                "matchLabelKeys": ["hash", "absent"],
            }
        ]
    )
    obj["metadata"]["labels"] = {"hash": "7"}
    constraint = admitted(obj)["spec"]["topologySpreadConstraints"][0]
    assert constraint["labelSelector"]["matchExpressions"] == [{"key": "hash", "operator": "In", "values": ["7"]}]


def test_a_gated_pod_says_so() -> None:
    conditions = admitted(pod(schedulingGates=[{"name": "wait"}]))["status"]["conditions"]
    assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [("PodScheduled", "False", "SchedulingGated")]


def test_a_claim_gets_the_default_storage_class() -> None:
    def storage(name: str, default: str) -> Manifest:
        notes = {"storageclass.kubernetes.io/is-default-class": default}
        metadata = {"name": name, "annotations": notes}
        return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata}

    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {}}
    assert admitted(claim, storage("a", "false"), storage("b", "true"))["spec"]["storageClassName"] == "b"


@pytest.mark.parametrize(
    ("kind", "version", "field", "value"),
    [
        ("Job", "batch/v1", "backoffLimit", 6),
        ("Deployment", "apps/v1", "replicas", 1),
        ("StatefulSet", "apps/v1", "replicas", 1),
    ],
)
def test_workloads_and_their_templates_get_defaults(kind: str, version: str, field: str, value: Any) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    obj = admitted({"apiVersion": version, "kind": kind, "metadata": {"name": "w"}, "spec": {"template": template}})
    assert obj["spec"][field] == value
    assert obj["spec"]["template"]["spec"]["schedulerName"] == "default-scheduler"


def test_a_node_without_allocatable_offers_its_capacity() -> None:
    node = admitted({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": 4}}})
    assert node["status"]["allocatable"] == {"cpu": "4"}


def test_a_broken_quantity_is_an_error_not_a_crash() -> None:
    assert "'lots' is not a quantity" in refused(pod(containers=[container(limits={"cpu": "lots"})]))
