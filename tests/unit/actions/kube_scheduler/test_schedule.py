"""The kube-scheduler preset as its users see it: placements, their order, evictions, and messages."""

from __future__ import annotations

from typing import Any

import navarch
from navarch.testing.builders import budget, node, pod

AFTER = "no new claims to deallocate, preemption: "
NO_HELP = "Preemption is not helpful for scheduling"


def decided(*objects: Any, **options: Any) -> navarch.Plan:
    return navarch.plan(objects, policy=options.pop("policy", "kube-scheduler"), **options)


def binds(plan: navarch.Plan) -> dict[str, str]:
    return {bind.pod.removeprefix("default/"): bind.node for bind in plan.records[0].binds}


def said(plan: navarch.Plan, name: str) -> str:
    return next(r.message for job in plan.records[0].jobs for r in job.refusals if r.pod == f"default/{name}")


def evicted(plan: navarch.Plan) -> list[str]:
    return sorted(e.pod.removeprefix("default/") for e in plan.records[0].evictions)


def nominated(plan: navarch.Plan) -> dict[str, str]:
    return {n.pod.removeprefix("default/"): n.node for n in plan.records[0].nominations}


def test_the_emptier_node_is_better_and_names_break_ties() -> None:
    plan = decided(node("n1").cpu("4"), node("n2").cpu("4"), pod("x").cpu("1").on("n1"), pod("a").cpu("1"), pod("b").cpu("1"))
    assert binds(plan) == {"a": "n2", "b": "n1"}


def test_pods_are_ordered_by_priority_then_age_then_name() -> None:
    young = pod("young").cpu("1").created("2026-01-02T00:00:00Z")
    old = pod("old").cpu("1").created("2026-01-01T00:00:00Z")
    plan = decided(node("n1").cpu("1"), young, old)
    assert binds(plan) == {"old": "n1"}
    plan = decided(node("n1").cpu("1"), young.priority(5), old)
    assert binds(plan) == {"young": "n1"}


def test_why_no_node_takes_a_pod() -> None:
    plan = decided(node("n1").cpu("2"), node("n2").cpu("9").taint("k"), node("n3").cpu("9").cordoned(), pod("big").cpu("4"))
    assert said(plan, "big") == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. "
        f"{AFTER}0/3 nodes are available: 3 {NO_HELP}."
    )


def test_a_pod_that_names_its_node() -> None:
    pinned = pod("d").cpu("9")
    pinned["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
            }
        }
    }
    plan = decided(node("n1").cpu("2"), node("n2").cpu("16"), pinned)
    assert said(plan, "d").startswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
    )
    pinned["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    assert binds(decided(node("n1").cpu("2"), node("n2").cpu("16"), pinned)) == {"d": "n1"}


def test_no_nodes_at_all() -> None:
    assert said(decided(pod("a")), "a") == "no nodes available to schedule pods"


def test_the_cheapest_victims_go_and_the_pod_is_promised_the_node() -> None:
    nodes = [node("n1").cpu("2"), node("n2").cpu("2")]
    running = [pod("mid").cpu("2").priority(5).on("n1"), pod("low").cpu("2").priority(1).on("n2")]
    plan = decided(*nodes, *running, pod("high").cpu("1").priority(9))
    assert evicted(plan) == ["low"]
    assert nominated(plan) == {"high": "n2"}
    assert said(plan, "high") == "0/2 nodes are available: 2 Insufficient cpu."


def test_a_budget_is_kept_where_another_victim_will_do() -> None:
    victims = [pod(f"v{i}").label("app", "a" if i else "b").cpu("1").priority(1).on(f"n{i}") for i in range(2)]
    plan = decided(node("n0").cpu("1"), node("n1").cpu("1"), *victims, budget("b", {"app": "b"}, 0), pod("high").cpu("1").priority(9))
    assert evicted(plan) == ["v1"]


def test_a_pod_that_never_preempts_says_so() -> None:
    polite = pod("polite").cpu("1").priority(9)
    polite["spec"]["preemptionPolicy"] = "Never"
    plan = decided(node("n1").cpu("1"), pod("low").cpu("1").priority(1).on("n1"), polite)
    assert not evicted(plan)
    assert said(plan, "polite") == f"0/1 nodes are available: 1 Insufficient cpu. {AFTER}not eligible due to preemptionPolicy=Never."


def test_a_promised_node_is_kept_from_the_less_important_and_taken_by_its_owner() -> None:
    owner = pod("owner").cpu("2").priority(5)
    owner["status"]["nominatedNodeName"] = "n2"
    plan = decided(node("n1").cpu("2"), node("n2").cpu("2"), owner, pod("other").cpu("2").priority(1))
    assert binds(plan) == {"owner": "n2", "other": "n1"}
    taken = pod("taken").cpu("1").priority(5).on("n2")
    owner["spec"]["preemptionPolicy"] = "Never"  # else it would find that no eviction helps, and the promise would be void
    plan = decided(node("n2").cpu("2"), taken, owner, pod("small").cpu("1").priority(1))
    assert "small" not in binds(plan)
    assert "1 Insufficient cpu" in said(plan, "small")


def test_two_pods_in_one_cycle_do_not_count_on_the_same_volume() -> None:
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"}}
    storage |= {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    volume: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}}
    volume["status"] = {"phase": "Available"}
    volume["spec"] = {"capacity": {"storage": "1Gi"}, "storageClassName": "local", "accessModes": ["ReadWriteOnce"]}
    objects: list[Any] = [storage, volume, node("n1").cpu("4")]
    for name in ("a", "b"):
        meta = {"name": name, "namespace": "default"}
        claim: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
        claim["spec"] = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}
        claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
        user = pod(name)
        user["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        objects += [claim, user]
    plan = decided(*objects)
    assert binds(plan) == {"a": "n1"}
    assert "1 node(s) didn't find available persistent volumes to bind" in said(plan, "b")


def test_each_placement_counts_for_the_next_pod() -> None:
    web = [pod(f"w{i}").label("app", "w").spread("kubernetes.io/hostname", {"matchLabels": {"app": "w"}}) for i in range(4)]
    nodes = [node(f"n{i}").label("kubernetes.io/hostname", f"n{i}").cpu("4") for i in range(2)]
    placed = binds(decided(*nodes, *web))
    assert sorted(placed.values()) == ["n0", "n0", "n1", "n1"]


def test_an_extended_resource_that_no_device_serves() -> None:
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}
    device_class["spec"] = {"extendedResourceName": "example.com/gpu"}
    plan = decided(node("n1").cpu("4"), device_class, pod("a").request("example.com/gpu", 1))
    assert not binds(plan)
    assert "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1" in said(plan, "a")


def test_fewer_nodes_are_looked_at_where_the_policy_says_so() -> None:
    policy = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 50,
    }
    nodes = [node(f"n{i:03d}").cpu("4") for i in range(300)]
    pods = [pod(f"p{i:03d}").cpu("1") for i in range(3)]
    assert binds(decided(*nodes, *pods, policy=policy)) == {"p000": "n000", "p001": "n150", "p002": "n001"}
