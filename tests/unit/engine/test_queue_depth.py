"""Trees of queues that are too deep, or rings: their jobs are refused, all others are placed, and nothing recurses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.kai_cluster import group, queue, worker

import navarch
from navarch.engine.policy.presets import PRESETS
from navarch.testing import builders
from navarch.testing.builders import node, pod, pod_group

DEEP = 1500


def hierarchical(plugin: str) -> dict[str, Any]:
    plugins = [{"name": "gang"}, {"name": "predicates"}, {"name": plugin, "enableHierarchy": True}]
    return {"actions": "allocate, reclaim", "tiers": [{"plugins": plugins}]}


def outcome(objects: list[Any], policy: Any) -> tuple[list[str], dict[str, str]]:
    record = navarch.plan(objects, policy=policy).records[0]
    return sorted(bind.job for bind in record.binds), {job.job: job.reasons[0].message for job in record.jobs if job.reasons}


def volcano() -> list[Any]:
    chain = [builders.queue(f"q{i}").parent(f"q{i - 1}" if i else "root").state("Open") for i in range(DEEP)]
    names = (f"q{DEEP - 1}", "good")
    jobs = [each for name in names for each in (pod_group(name).queue(name), pod(f"{name}-0").cpu(1).in_group(name))]
    ends = [builders.queue("root").state("Open"), builders.queue("good").parent("root").state("Open")]
    return [node("n").cpu("8"), *ends, *chain, *jobs]


@pytest.mark.parametrize("policy", ["navarch", hierarchical("drf")], ids=["navarch", "drf"])
def test_where_depth_does_not_matter_every_queue_is_served(policy: Any) -> None:
    assert outcome(volcano(), policy)[0] == ["default/good", f"default/q{DEEP - 1}"]


def test_capacity_refuses_a_queue_that_stands_too_deep() -> None:
    bound, told = outcome(volcano(), hierarchical("capacity"))
    assert bound == ["default/good"]
    assert told == {f"default/q{DEEP - 1}": f"queue q{DEEP - 1} stands more than 100 levels below root"}


@pytest.mark.parametrize("full", ["true", "false"])
def test_kai_refuses_a_queue_that_stands_too_deep_or_in_a_ring(full: str) -> None:
    chain = [queue(f"q{i}", f"q{i - 1}" if i else "") for i in range(DEEP)]
    ring = [queue("r0", "r1"), queue("r1", "r0"), queue("r2", "r1")]
    jobs = [each for name in (f"q{DEEP - 1}", "r2", "vision") for each in (group(name, 1, name), worker(f"{name}-0", name))]
    objects = [node("n").cpu("8").memory("8Gi"), *chain, *ring, queue("org", ""), queue("vision"), *jobs]
    bound, told = outcome(objects, {**PRESETS["kai"], "fullHierarchyFairness": full})
    assert bound == ["lab/vision"]
    assert "stands more than 100 levels deep" in told[f"lab/q{DEEP - 1}"]
    assert "its way up is a circle" in told["lab/r2"]
