"""Volcano's NodeShard: the nodes that this scheduler has to itself, or likes best."""

from __future__ import annotations

from typing import Any

import pytest

import navarch
from navarch.testing.builders import node, pod


def shard(name: str, *desired: str, used: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "apiVersion": "shard.volcano.sh/v1alpha1",
        "kind": "NodeShard",
        "metadata": {"name": name},
        "spec": {"nodesDesired": list(desired)},
        "status": {"nodesInUse": list(used)},
    }


def decided(mode: str, *objects: Any, pods: int = 1, name: str | None = "mine", listed: tuple[str, ...] = ()) -> navarch.Plan:
    named: dict[str, Any] = {} if name is None else {"scheduler-sharding-name": name}
    named |= {"nodesInShard": list(listed)} if listed else {}
    policy = {
        "compat": "volcano",
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "predicates"}]}],
        "schedulerParams": {"scheduler-sharding-mode": mode, **named},
    }
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
    queue["status"] = {"state": "Open"}
    nodes = [node(name).cpu("1") for name in ("n1", "n2")]
    return navarch.plan([queue, *nodes, *(pod(f"p{i}").cpu("1") for i in range(pods)), *objects], policy=policy)


def places(plan: navarch.Plan) -> list[str]:
    return sorted(bind.node for bind in plan.records[0].binds)


def test_a_hard_shard_is_the_nodes_of_its_object() -> None:
    assert places(decided("hard", shard("mine", "n2"), pods=2)) == ["n2"]


def test_a_soft_shard_comes_first_and_others_follow() -> None:
    assert places(decided("soft", shard("mine", "n2"))) == ["n2"]
    assert places(decided("soft", shard("mine", "n2"), pods=2)) == ["n1", "n2"]


def test_a_node_that_another_shard_still_uses_is_not_ours_yet() -> None:
    both = [shard("mine", "n1", "n2"), shard("theirs", "n3", used=("n2",))]
    assert places(decided("hard", *both, pods=2)) == ["n1"]


def reason(plan: navarch.Plan) -> str:
    (job,) = plan.records[0].jobs
    assert [each.code for each in job.reasons] == ["NoNodeInShard"]
    return job.reasons[0].message.partition("no node is in the shard of this scheduler: ")[2]


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([shard("theirs", "n1")], "NodeShard mine does not exist"),
        ([shard("mine")], "NodeShard mine wants no nodes (spec.nodesDesired)"),
        ([shard("mine", "n8", "n9")], "the nodes of NodeShard mine do not exist"),
        ([shard("mine", "n1"), shard("theirs", used=("n1",))], "other shards still use the nodes of NodeShard mine"),
    ],
)
def test_a_waiting_pod_is_told_why_the_shard_has_no_nodes(objects: list[Any], why: str) -> None:
    plan = decided("hard", *objects)
    assert places(plan) == []
    assert reason(plan) == why
    assert [refusal.message for refusal in plan.records[0].jobs[0].refusals] == [f"no node is in the shard of this scheduler: {why}"]
    assert f"no node is in the shard of this scheduler: {why}" in plan.warnings


@pytest.mark.parametrize(
    ("listed", "name", "why"),
    [
        (("n-1",), None, "none of nodesInShard exists (n-1)"),
        (tuple(f"x{i}" for i in range(7)), None, "none of nodesInShard exists (x0, x1, x2, x3, x4 and 2 more)"),
        (("n-1",), "mine", "NodeShard mine does not exist, and none of nodesInShard exists (n-1)"),
    ],
)
def test_listed_nodes_that_do_not_exist_are_named(listed: tuple[str, ...], name: str | None, why: str) -> None:
    plan = decided("hard", name=name, listed=listed)
    assert places(plan) == []
    assert reason(plan) == why


def test_listed_nodes_are_the_shard() -> None:
    assert places(decided("hard", pods=2, name=None, listed=("n2", "n-1"))) == ["n2"]


def test_the_shard_is_volcanos_where_none_is_named() -> None:
    assert places(decided("hard", shard("volcano", "n2"), pods=2, name=None)) == ["n2"]


def test_a_soft_shard_without_nodes_is_a_warning_alone() -> None:
    plan = decided("soft")
    assert places(plan) == ["n1"]
    assert "no node is in the shard of this scheduler: NodeShard mine does not exist" in plan.warnings


def test_nodes_outside_of_a_hard_shard_are_not_counted_in_a_refusal() -> None:
    plan = decided("hard", shard("mine", "n2"), node("n3").cpu("0"), pods=2)
    waiting = next(job for job in plan.records[0].jobs if job.reasons)
    assert waiting.reasons[0].nodes == {"Insufficient cpu": 1}
    assert "0/1 nodes are unavailable" in waiting.reasons[0].message
