"""`navarch.plan`: decoded manifests in, decisions out."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import navarch
from navarch.actions import PLACES
from navarch.engine.plugin import Plugin
from navarch.engine.policy import PolicyError
from navarch.engine.registry import Registry
from navarch.offline.plan import Plan, PlanError, plan
from navarch.offline.policies import read_policy
from navarch.testing.builders import node, pod, pod_group, priority_class, queue

SIMPLE = {"actions": "allocate, backfill", "tiers": [{"plugins": [{"name": "priority"}, {"name": "gang"}]}]}


def binds(result: Plan, cycle: int = 1) -> dict[str, str]:
    return {bind["pod"]: bind["node"] for bind in result.to_dict()["cycles"][cycle - 1]["binds"]}


def jobs(result: Plan, cycle: int = 1) -> dict[str, dict[str, Any]]:
    return {job["job"]: job for job in result.to_dict()["cycles"][cycle - 1]["jobs"]}


def test_the_form_of_the_answer() -> None:
    objects = [node("n").cpu("4"), pod("a").cpu("1"), pod("b").cpu("8").owned_by("ReplicaSet", "web")]
    answer = plan(objects, SIMPLE).to_dict()
    (cycle,) = answer["cycles"]
    assert sorted(cycle) == ["binds", "cycle", "evictions", "jobs", "nominations", "queues"]
    assert cycle["binds"] == [{"node": "n", "pod": "default/a"}]
    placed, waiting = cycle["jobs"]
    assert sorted(placed) == ["conditions", "job", "minMember", "phase", "pods", "queue", "reasons"]
    assert (placed["job"], placed["pods"]) == ("default/a", {"Binding": 1})
    assert (waiting["job"], waiting["pods"], waiting["queue"]) == ("default/web", {"Pending": 1}, "default")
    assert waiting["reasons"], "what waits has a reason"
    assert sorted(waiting["reasons"][0]) == ["code", "figures", "message", "nodes", "undoneBy"]
    assert [reason["code"] for reason in waiting["reasons"]] == ["NeverStarts", "Unschedulable"]
    assert waiting["reasons"][1]["undoneBy"] == ["pod removed", "node added", "node changed"]
    assert [q["queue"] for q in cycle["queues"]] == ["default", "root"]
    assert sorted(cycle["queues"][0]) == ["allocated", "deserved", "queue", "request", "share"]
    json.dumps(answer)


def test_the_input_is_left_alone_and_its_order_does_not_matter() -> None:
    objects: list[dict[str, Any]] = [node(f"n{i}").cpu("2") for i in range(3)]
    objects += [pod_group("g", 3), *(pod(f"p{i}").cpu("1").in_group("g") for i in range(3)), pod("x").limit("cpu", "1")]
    before = deepcopy(objects)
    first = plan(objects, SIMPLE).to_dict()
    assert objects == before
    assert plan(list(reversed(objects)), SIMPLE).to_dict() == first
    assert len(first["cycles"][0]["binds"]) == 4


def test_lists_are_taken_apart() -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": [node("n").cpu("1"), pod("a")]}
    assert binds(plan([items], SIMPLE)) == {"default/a": "n"}
    assert binds(plan(items, SIMPLE)) == {"default/a": "n"}, "a list alone will do"


def test_one_scheduler_name_alone_will_do() -> None:
    objects = [node("n").cpu("4"), pod("a").scheduler("mine"), pod("b").scheduler("other")]
    assert set(binds(plan(objects, SIMPLE, scheduler_names="mine"))) == {"default/a"}


def test_a_moment_that_is_none() -> None:
    with pytest.raises(ValueError, match="now: found nan, expected seconds since the epoch"):
        plan([node("n")], SIMPLE, now=float("nan"))


def test_gated_pods_say_what_they_wait_for() -> None:
    objects = [node("n").cpu("4"), pod("a").gate("example.com/wait"), pod("b").in_group("absent")]
    for policy in (SIMPLE, "kube-scheduler"):
        found = jobs(plan(objects, policy))
        assert found["default/a"]["reasons"][0]["message"] == "1 pod waits for scheduling gates: [example.com/wait]"
        assert list(found) == ["default/a", "default/absent"]


def test_bound_pods_run_in_the_next_cycle() -> None:
    objects = [node("n").cpu("1"), pod_group("g", 1), pod("a").cpu("1").in_group("g")]
    result = plan(objects, SIMPLE, cycles=3)
    assert binds(result, 1) == {"default/a": "n"}
    assert binds(result, 2) == {} and binds(result, 3) == {}
    assert jobs(result, 2)["default/g"]["pods"] == {"Running": 1}
    assert jobs(result, 2)["default/g"]["phase"] == "Running"
    second, third = result.to_dict()["cycles"][1:]
    assert second | {"cycle": 3} == third


def test_a_pod_of_a_group_or_queue_that_does_not_exist() -> None:
    objects = [node("n").cpu("4"), pod("a").in_group("none"), pod_group("g").queue("nowhere"), pod("b").in_group("g")]
    result = plan(objects, SIMPLE)
    assert binds(result) == {}
    assert jobs(result)["default/none"]["reasons"][0]["code"] == "PodGroupNotFound"
    assert jobs(result)["default/g"]["reasons"][0]["message"] == 'the queue "nowhere" does not exist'


def test_only_pods_of_the_named_schedulers() -> None:
    objects = [node("n").cpu("4"), pod("a").scheduler("navarch"), pod("b").scheduler("other"), pod("c")]
    assert sorted(binds(plan(objects, SIMPLE, scheduler_names=["navarch"]))) == ["default/a"]
    assert sorted(binds(plan(objects, SIMPLE, scheduler_names=["navarch", "other"]))) == ["default/a", "default/b"]
    assert len(binds(plan(objects, SIMPLE))) == 3


def test_mistakes_are_told_together_or_left_out() -> None:
    objects = [node("n").cpu("4"), pod("a"), pod("b").cpu("much"), pod("c").priority_class("none")]
    with pytest.raises(PlanError) as caught:
        plan(objects, SIMPLE)
    assert [mistake.name for mistake in caught.value.mistakes] == ["default/b", "default/c"]
    result = plan(objects, SIMPLE, keep_going=True)
    assert sorted(binds(result)) == ["default/a"] and len(result.mistakes) == 2


def test_policies_by_name_path_and_mapping(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(SIMPLE))
    objects = [node("n").cpu("4"), pod("a")]
    assert binds(plan(objects, path)) == binds(plan(objects, str(path))) == binds(plan(objects, SIMPLE))
    with pytest.raises(PolicyError, match="expected a preset"):
        plan(objects, "no-such-policy")
    with pytest.raises(PolicyError):
        plan(objects, {"actions": "allocat", "tiers": []})


def test_a_namespace_is_the_queue_of_pods_that_name_none() -> None:
    objects = [node("n").cpu("4"), pod("a", "team"), pod_group("g", 1, "team").queue("default"), queue("default")]
    found = jobs(plan(objects, SIMPLE, namespace_as_queue=True))
    assert (found["team/a"]["queue"], found["team/g"]["queue"]) == ("team", "default")


def test_priority_goes_first() -> None:
    objects = [
        node("n").cpu("1"),
        priority_class("high", 10),
        pod("early").cpu("1").created("2026-01-01T00:00:00Z"),
        pod("late").cpu("1").priority_class("high").created("2026-01-02T00:00:00Z"),
    ]
    assert binds(plan(objects, SIMPLE)) == {"default/late": "n"}


def test_timings_stand_beside_the_answer() -> None:
    result = plan([node("n").cpu("1"), pod("a")], SIMPLE)
    assert {"read", "snapshot", "allocate", "backfill"} <= set(result.timings)
    assert "timings" not in result.to_dict()


def test_navarch_plan_is_the_function_and_costs_nothing_until_called() -> None:
    objects = [node("n").cpu("1"), pod("a")]
    assert navarch.plan(objects, SIMPLE).to_dict() == plan(objects, SIMPLE).to_dict()
    assert navarch.PlanError is PlanError
    script = "import sys, navarch; sys.exit('numpy' in sys.modules or 'msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_plan_without_extenders_needs_no_http_client() -> None:
    """It would take longer to import than all else."""
    script = "import sys, navarch; navarch.plan([]); sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_evicted_pods_are_pending_again_and_nominations_are_kept() -> None:
    policy = {
        "actions": "allocate, preempt",
        "tiers": [{"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "conformance"}]}],
    }
    objects = [
        node("n").cpu("2"),
        priority_class("high", 10),
        pod_group("old", 1).phase("Running"),
        pod("old-1").cpu("1").in_group("old").on("n"),
        pod("old-2").cpu("1").in_group("old").on("n"),
        pod_group("new", 1).priority_class("high"),
        pod("urgent").cpu("1").in_group("new").priority_class("high"),
    ]
    result = plan(objects, policy, cycles=3)
    first, second, third = result.to_dict()["cycles"]
    (eviction,) = first["evictions"]
    assert eviction | {"pod": ""} == {
        "pod": "",
        "node": "n",
        "action": "preempt",
        "for": "default/new",
        "reason": eviction["reason"],
    }
    assert first["nominations"] == [{"node": "n", "pod": "default/urgent"}] and not first["binds"]
    assert second["binds"] == [{"node": "n", "pod": "default/urgent"}] and not second["evictions"]
    assert jobs(result, 2)["default/old"]["pods"] == {"Pending": 1, "Running": 1}
    assert not third["binds"] and not third["evictions"]


def test_parameters_of_the_policy_choose_pods_and_nodes() -> None:
    objects = [
        node("a").cpu("4").label("kai.scheduler/node-pool", "blue"),
        node("b").cpu("4"),
        pod("x").scheduler("one"),
        pod("y").scheduler("two"),
    ]
    named = {**SIMPLE, "schedulerParams": {"schedulerName": "one"}}
    assert list(binds(plan(objects, named))) == ["default/x"]
    assert list(binds(plan(objects, named, scheduler_names=["two"]))) == ["default/y"]
    pooled = {**SIMPLE, "schedulerParams": {"partitionLabelValue": "blue"}}
    assert set(binds(plan(objects, pooled)).values()) == {"a"}


def test_a_policy_is_read_anew_for_other_plugins_whatever_was_known_of_those_that_are_gone() -> None:
    class Mine(Plugin):
        name = "mine"

    policy = {"actions": "allocate", "tiers": [{"plugins": [{"name": "mine"}]}]}
    for _ in range(20):  # each takes the place in memory that the one before it has left
        assert read_policy(policy, Registry([Mine], action_places=PLACES)).actions == ("allocate",)
        with pytest.raises(PolicyError, match="unknown plugin 'mine'"):
            read_policy(policy, Registry(action_places=PLACES))


def test_a_plan_leaves_the_garbage_collector_of_the_process_alone() -> None:
    seen: list[bool] = []

    def objects() -> Iterator[dict[str, Any]]:
        for each in (node("n").cpu("1"), pod("a").cpu("1")):
            seen.append(gc.isenabled())
            yield each

    assert gc.isenabled()
    plan(objects())
    assert seen == [True, True] and gc.isenabled()


def test_a_group_with_the_minimum_that_volcanos_controller_writes_is_admitted() -> None:
    """The controller copies the pod's use of quotas (kube's quota evaluator for pods, Volcano 1.14.1 `GetPodQuotaUsage`)."""
    written = {
        "count/pods": "2",
        "pods": "2",
        "cpu": "2",
        "requests.cpu": "2",
        "limits.cpu": "2",
        "memory": "2Gi",
        "requests.memory": "2Gi",
        "limits.memory": "2Gi",
        "ephemeral-storage": "2Gi",
        "requests.ephemeral-storage": "2Gi",
        "nvidia.com/gpu": "2",
        "requests.nvidia.com/gpu": "2",
        "hugepages-2Mi": "4Mi",
        "requests.hugepages-2Mi": "4Mi",
        "requests.deviceclass.resource.kubernetes.io/gpu": "2",
    }
    worker = node("n").cpu("4").memory("8Gi").gpu(2).pods(9).has("ephemeral-storage", "9Gi").has("hugepages-2Mi", "8Mi")
    result = plan([worker, queue("default"), pod_group("g", 2).role("t", 2).min_resources(**written)], "volcano")
    assert jobs(result)["default/g"]["phase"] == "Inqueue"


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("volcano", "0/0 tasks in gang unschedulable: pod group is not ready, 2 minAvailable. Origin reason is: "),
        ({"actions": "enqueue, allocate", "tiers": [{"plugins": [{"name": "gang"}, {"name": "overcommit"}]}]}, "it is not admitted: "),
    ],
)
def test_a_group_without_pods_that_is_not_admitted_has_a_reason_and_a_condition(policy: Any, said: str) -> None:
    objects = [node("n").cpu("4"), queue("default"), pod_group("g", 2).min_resources(cpu="40")]
    job = jobs(plan(objects, policy))["default/g"]
    assert (job["phase"], [reason["code"] for reason in job["reasons"]]) == ("Pending", ["ClusterOverused"])
    (condition,) = job["conditions"]
    assert condition["type"] == "Unschedulable"
    assert f"{said}resource in cluster is overused: overused cpu" in condition["message"]
    (admitted,) = jobs(plan([node("n").cpu("64"), *objects[1:]], policy)).values()
    assert (admitted["phase"], admitted["reasons"], admitted["conditions"]) == ("Inqueue", [], [])
