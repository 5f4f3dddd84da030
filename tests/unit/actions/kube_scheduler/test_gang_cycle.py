"""Groups of `scheduling.k8s.io` under kube-scheduler's rules: whole or not at all, and what their pods are told."""

from __future__ import annotations

from typing import Any

import pytest

import navarch
from navarch.testing.builders import node, pod

PLAIN = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
GANGS = {**PLAIN, "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}}]}


def group(name: str, least: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }


def member(name: str, of: str, cpu: str = "1", priority: int = 0) -> Any:
    made = pod(name).cpu(cpu).priority(priority)
    made["spec"]["schedulingGroup"] = {"podGroupName": of}
    return made


def decided(*objects: Any, policy: Any = "kube-scheduler") -> navarch.Plan:
    return navarch.plan(objects, policy=policy)


def bound(plan: navarch.Plan) -> list[str]:
    return sorted(bind.pod.removeprefix("default/") for bind in plan.records[0].binds)


def said(plan: navarch.Plan, name: str) -> str:
    return next(r.message for job in plan.records[0].jobs for r in job.refusals if r.pod == f"default/{name}")


def test_a_gang_of_two_with_room_for_one_binds_nothing() -> None:
    for policy in ("kube-scheduler", GANGS):
        plan = decided(node("n1").cpu("1"), group("g", 2), member("a", "g"), member("b", "g"), policy=policy)
        assert bound(plan) == []
        words = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining: 0/1 nodes are available: 1 Insufficient cpu."
        words += ", preemption: No preemption victims found for incoming preemptor"
        assert said(plan, "a") == said(plan, "b") == words


def test_a_gang_starts_with_its_minimum_and_the_others_wait() -> None:
    members = [member(name, "g") for name in ("a", "b", "c")]
    plan = decided(node("n1").cpu("2"), group("g", 2), *members)
    assert bound(plan) == ["a", "b"]
    assert said(plan, "c") == "0/1 nodes are available: 1 Insufficient cpu."


def test_resources_that_a_failed_gang_gives_back_go_to_the_next_pod() -> None:
    first, second = member("a", "g", priority=9), member("b", "g", priority=9)
    plan = decided(node("n1").cpu("1"), group("g", 2), first, second, pod("single").cpu("1"))
    assert bound(plan) == ["single"]


def test_pods_that_run_already_count() -> None:
    running = member("a", "g").on("n1")
    plan = decided(node("n1").cpu("2"), group("g", 2), running, member("b", "g"))
    assert bound(plan) == ["b"]


def together(name: str, least: int) -> dict[str, Any]:
    made = group(name, least)
    made["spec"] |= {"disruptionMode": "PodGroup", "priority": 0}
    return made


@pytest.mark.parametrize("leaving", [1, 2])
def test_a_group_whose_pods_are_leaving_is_a_victim_as_a_whole(leaving: int) -> None:
    running = [member("a", "whole").on("n1").deleting(), member("b", "whole").on("n2")]
    if leaving == 2:
        running[1] = running[1].deleting()
    waiting = [member("c", "g", priority=9), member("d", "g", priority=9)]
    plan = decided(node("n1").cpu("1"), node("n2").cpu("1"), together("whole", 2), *running, group("g", 2), *waiting)
    evicted = [each.pod for each in plan.records[0].evictions]
    assert evicted == (["default/b"] if leaving == 1 else [])
    assert {each.pod for each in plan.records[0].nominations} == {"default/c", "default/d"}


def test_a_gang_waits_for_all_its_pods_to_appear() -> None:
    plan = decided(node("n1").cpu("4"), group("g", 2), member("a", "g"))
    assert bound(plan) == []
    assert said(plan, "a") == "waiting for minCount pods from a gang to appear in scheduling queue"


def test_without_the_plugin_a_group_is_no_gang_and_that_is_said() -> None:
    plan = decided(node("n1").cpu("1"), group("g", 2), member("a", "g"), member("b", "g"), policy=PLAIN)
    assert bound(plan) == ["a"]
    words = "default/g is no gang here, so pods start one by one: "
    words += "under kube-scheduler's rules only scheduling.k8s.io groups are gangs, with GangScheduling"
    assert words in plan.warnings


def test_a_group_of_another_api_is_announced_as_no_gang() -> None:
    volcano = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "v", "namespace": "default"},
        "spec": {"minMember": 2},
    }
    pods = [pod(name).cpu("1").in_group("v") for name in ("a", "b")]
    plan = decided(node("n1").cpu("1"), volcano, *pods)
    assert bound(plan) == ["a"]
    assert any(warning.startswith("default/v is no gang here") for warning in plan.warnings)
