"""What a job is told when several things stand in its way at once."""

from __future__ import annotations

from typing import Any

import pytest

import navarch

NODES: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": {"pool": pool}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
    for number, pool in enumerate(("a", "b", "b"))
]


LIMITED = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "default"},
    "spec": {"weight": 1, "capability": {"cpu": "12"}},
}


def gang(pods: int, cpu: str, selector: dict[str, str] | None = None) -> list[dict[str, Any]]:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": pods, "queue": "default"},
    }
    members = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"g-{number}", "annotations": {"scheduling.k8s.io/group-name": "g"}},
            "spec": {
                "nodeSelector": selector or {},
                "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
            },
        }
        for number in range(pods)
    ]
    return [group, *members]


def reasons(objects: list[dict[str, Any]], policy: str = "navarch") -> list[str]:
    (job,) = navarch.plan([*NODES, *objects], policy=policy).to_dict()["cycles"][0]["jobs"]
    return [reason["message"] for reason in job["reasons"] if reason["code"] != "NeverStarts"]


def test_a_full_queue_is_told_in_one_unit_and_does_not_hide_a_selector_that_no_node_has() -> None:
    full = "queue default would exceed its capability: insufficient cpu (asks 500.5, holds 0 of 12)"
    assert reasons([LIMITED, *gang(1, "500500m")]) == [full]
    nowhere = "nor would any node take it: 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
    assert reasons([LIMITED, *gang(1, "500500m", {"pool": "c"})]) == [full, nowhere]


def test_a_pod_that_no_node_could_hold_is_told_of_the_nodes_and_not_of_its_queue() -> None:
    assert reasons(gang(1, "500500m")) == ["g-0: 0/3 nodes are available: 3 Insufficient cpu."]
    selector = "3 node(s) didn't match Pod's node affinity/selector"
    assert reasons(gang(1, "500500m", {"pool": "c"})) == [f"g-0: 0/3 nodes are available: {selector}."]


def test_pods_of_the_gang_itself_do_not_count_as_held_by_others() -> None:
    other = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "runs"},
        "spec": {"nodeName": "n0", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Running"},
    }
    found = navarch.plan([*NODES, LIMITED, other, *gang(12, "1")]).to_dict()["cycles"][0]["jobs"]
    (told,) = next(job["reasons"] for job in found if job["job"] == "default/g")
    assert told["message"] == (
        "queue default would exceed its capability: insufficient cpu (12 pods of this job ask 12, others hold 1 of 12)"
    )
    assert (told["figures"]["cpu held"], told["figures"]["cpu asked"], told["figures"]["pods"]) == (1000, 12000, 12)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("navarch", "available: 2 node(s) didn't match Pod's node affinity/selector, 1 Insufficient cpu."),
        ("volcano", "unavailable: 3 Insufficient cpu."),
    ],
)
def test_a_node_that_its_labels_rule_out_does_not_lack_room(policy: str, said: str) -> None:
    assert reasons(gang(1, "5", {"pool": "a"}), policy) == [f"g-0: 0/3 nodes are {said}"]
