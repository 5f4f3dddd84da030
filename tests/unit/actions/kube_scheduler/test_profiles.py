"""Several profiles in one kube-scheduler configuration: each judges the pods of its scheduler name."""

from __future__ import annotations

from typing import Any

import navarch
from navarch.engine.policy import load
from navarch.engine.session import Session
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.testing.builders import node, pod

PACKING = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}


def policy(*profiles: dict[str, Any], **settings: Any) -> dict[str, Any]:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**head, "percentageOfNodesToScore": 100, "profiles": list(profiles), **settings}


def decided(*objects: Any, policy: dict[str, Any]) -> navarch.Plan:
    return navarch.plan(objects, policy=policy)


def binds(plan: navarch.Plan) -> dict[str, str]:
    return {bind.pod.removeprefix("default/"): bind.node for bind in plan.records[0].binds}


SPREAD_OR_PACK = policy({"schedulerName": "spread"}, {"schedulerName": "pack", "pluginConfig": [PACKING]})


def test_each_profile_scores_its_own_pods() -> None:
    nodes = [node("empty").cpu("8").memory("32Gi"), node("used").cpu("8").memory("32Gi")]
    there = pod("x").cpu("2").memory("1Gi").on("used")
    for name, chosen in (("spread", "empty"), ("pack", "used"), ("somebody-else", "empty")):
        new = pod("new").cpu("1").memory("1Gi").scheduler(name)
        assert binds(decided(*nodes, there, new, policy=SPREAD_OR_PACK)) == {"new": chosen}, name


def test_pods_that_differ_in_nothing_but_the_scheduler_are_judged_apart_in_one_cycle() -> None:
    nodes = [node("a").cpu("8").memory("32Gi"), node("b").cpu("8").memory("32Gi")]
    there = pod("x").cpu("4").memory("1Gi").on("b")
    pods = [pod(f"p{i}").cpu("1").memory("1Gi").scheduler("pack" if i % 2 else "spread") for i in range(4)]
    found = binds(decided(*nodes, there, *pods, policy=SPREAD_OR_PACK))
    assert found == {"p0": "a", "p1": "b", "p2": "a", "p3": "b"}


def test_a_filter_is_asked_only_where_its_profile_has_it() -> None:
    lax = {"schedulerName": "lax", "plugins": {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}}
    both = policy({"schedulerName": "strict"}, lax)
    tainted = node("n").cpu("8").taint("k")
    plan = decided(tainted, pod("a").cpu("1").scheduler("strict"), pod("b").cpu("1").scheduler("lax"), policy=both)
    assert binds(plan) == {"b": "n"}
    (refusal,) = (r for job in plan.records[0].jobs for r in job.refusals if r.pod == "default/a")
    assert "untolerated taint" in refusal.message


def test_the_profile_decides_whether_its_pods_preempt() -> None:
    disabled = {"disabled": [{"name": "DefaultPreemption"}]}
    meek = {"schedulerName": "meek", "plugins": {"postFilter": disabled, "multiPoint": disabled}}
    both = policy({"schedulerName": "bold"}, meek)
    for name, leaving in (("bold", ["default/low"]), ("meek", [])):
        high = pod("high").cpu("2").priority(5).scheduler(name)
        plan = decided(node("n").cpu("2"), pod("low").cpu("2").on("n"), high, policy=both)
        assert [eviction.pod for eviction in plan.records[0].evictions] == leaving, name


def test_equal_plugins_of_profiles_are_shared() -> None:
    registry = installed()
    session = Session(Cluster().snapshot(), load(SPREAD_OR_PACK, registry.catalogue()), registry, now=0.0)
    names = [plugin.name for plugin in session.plugins]
    assert len(session.functions["pack"].filters) == len(session.functions[""].filters)
    assert {name for name in names if names.count(name) > 1} == {"NodeResourcesFit"}
