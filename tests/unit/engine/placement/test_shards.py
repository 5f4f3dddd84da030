"""Volcano's NodeShard: the nodes that this scheduler has to itself, or likes best."""

from __future__ import annotations

from typing import Any

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


def decided(mode: str, *objects: Any, pods: int = 1) -> navarch.Plan:
    policy = {
        "compat": "volcano",
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "predicates"}]}],
        "schedulerParams": {"scheduler-sharding-mode": mode, "scheduler-sharding-name": "mine"},
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


def test_a_shard_that_does_not_exist_is_named() -> None:
    plan = decided("hard", shard("theirs", "n1"))
    assert places(plan) == []
    assert "NodeShard mine does not exist: no node is in the shard" in plan.warnings
