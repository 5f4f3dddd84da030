"""A group of KAI's in parts is the same gang under every policy: all that its parts need at once, or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.kai_cluster import CLUSTER, NOW, Manifest, group, queue, worker, workers

from navarch.offline.plan import plan

TEAM = queue("vision", quota=16)
NESTED = [
    {"name": "ps", "minMember": 1},
    {"name": "workers", "minSubGroup": 2},
    {"name": "left", "parent": "workers", "minMember": 1},
    {"name": "right", "parent": "workers", "minMember": 2},
]


def bound(policy: str, parts: list[dict[str, Any]], pods: list[Manifest], **spec: Any) -> list[str]:
    """Names of the pods that start on two nodes of eight GPUs."""
    objects = [*CLUSTER, TEAM, group("g", subGroups=parts, **spec), *pods]
    (cycle,) = plan(objects, policy=policy, now=NOW).to_dict()["cycles"]
    assert [job["minMember"] for job in cycle["jobs"]] == [sum(part.get("minMember", 0) for part in parts)]
    return [each["pod"].removeprefix("lab/g-") for each in cycle["binds"]]


@pytest.mark.parametrize("policy", ["kai", "navarch", "volcano"])
def test_no_part_starts_without_the_others(policy: str) -> None:
    pods = [*workers("g", 1, 4, "ps"), *workers("g", 1, 4, "left"), *workers("g", 2, 8, "right")]
    assert bound(policy, NESTED, pods) == [], "ps and left would fit, and one of right"
    pods = [*workers("g", 1, 4, "ps"), *workers("g", 1, 4, "left"), *workers("g", 2, 4, "right")]
    assert sorted(bound(policy, NESTED, pods)) == ["left0", "ps0", "right0", "right1"]


@pytest.mark.parametrize("policy", ["kai", "navarch", "volcano"])
def test_pods_that_one_part_has_above_its_minimum_do_not_stand_in_for_another(policy: str) -> None:
    """Two pods are needed and four would fit, but none of them is the leader."""
    parts = [{"name": "leader", "minMember": 1}, {"name": "workers", "minMember": 1}]
    pods = [worker("g-leader0", "g", 9, "leader"), *workers("g", 4, 4, "workers")]
    assert bound(policy, parts, pods) == []


def test_a_part_that_has_too_few_pods_is_named_under_other_policies_too() -> None:
    parts = [{"name": "leader", "minMember": 1}, {"name": "workers", "minMember": 3}]
    pods = [*workers("g", 1, 1, "leader"), *workers("g", 2, 1, "workers")]
    (cycle,) = plan([*CLUSTER, TEAM, group("g", subGroups=parts), *pods], policy="navarch", now=NOW).to_dict()["cycles"]
    (job,) = cycle["jobs"]
    words = "Not enough valid sub-groups for gang-scheduling: workers has 2 of 3 pods"
    assert [(reason["code"], reason["message"]) for reason in job["reasons"]] == [("NotEnoughPodsOfTask", words)]


def test_a_tree_as_deep_as_may_be_is_walked() -> None:
    parts = [{"name": f"p{i}", "parent": f"p{i - 1}" if i else "", "minMember": i // 50} for i in range(51)]
    for policy in ("kai", "navarch"):
        assert bound(policy, parts, workers("g", 1, 1, "p50")) == ["p500"]


def test_a_nominated_pod_is_told_its_node_and_what_it_waits_for() -> None:
    quotas = [queue("vision", quota=8), queue("speech", quota=8)]
    taken = [
        *(group(f"old{i}", queue="speech") for i in range(2)),
        *(worker(f"old{i}-0", f"old{i}", 8).on(f"gpu-{i + 1}") for i in (0, 1)),
    ]
    objects = [*CLUSTER, *quotas, *taken, group("new"), *workers("new", 1)]
    result = plan(objects, policy="kai", now=NOW)
    (cycle,) = result.to_dict()["cycles"]
    (promise,) = cycle["nominations"]
    (job,) = (each for each in result.records[0].jobs if each.job == "lab/new")
    assert [refusal.message for refusal in job.refusals] == [
        f"node {promise['node']} is promised to it: it starts there when pods that are leaving are gone"
    ]
