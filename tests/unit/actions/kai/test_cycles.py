"""Cycles over a tree of queues as a user sees them: manifests in, binds, moves and refusals out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.kai_objects import NOW, cycle, group, node, pod, queue

from navarch.offline.plan import plan


def strict() -> dict[str, Any]:
    from navarch.engine.policy import PRESETS

    return {**PRESETS["kai"], "compat": "strict"}


TREE = (queue("dep"), queue("a", "dep", quota=1), queue("b", "dep", quota=1))


def test_the_preset_binds_and_says_what_each_queue_is_due() -> None:
    found = cycle(node("n"), *TREE, group("j", "a"), pod("j-0", "j", gpus=1))
    assert found["binds"] == [{"node": "n", "pod": "ns/j-0"}]
    shares = {each["queue"]: each["fairShare"]["nvidia.com/gpu"] for each in found["queues"]}
    assert shares == {"a": "1", "b": "0", "dep": "1"}


def test_fractions_share_a_gpu_that_has_room() -> None:
    pods = [pod("r-0", "r", fraction="0.5", on="n", shares="g1"), pod("j-0", "j", fraction="0.5"), pod("k-0", "k", fraction="0.75")]
    found = cycle(node("n"), *TREE, group("r", "a"), group("j", "a", age=2), group("k", "b"), *pods)
    groups = {each["pod"]: each["gpuGroups"] for each in found["binds"]}
    assert groups["ns/j-0"] == ["g1"]
    assert len(groups["ns/k-0"]) == 1 and groups["ns/k-0"] != ["g1"]


def test_two_new_gpus_of_two_cycles_are_not_taken_for_one() -> None:
    pods = [pod("j-0", "j", fraction="0.75"), pod("k-0", "k", fraction="0.75")]
    policy = {**strict(), "queueDepthPerAction": {"allocate": 1}}
    objects = (node("n"), queue("dep"), queue("a", "dep"), group("j", "a", age=2), group("k", "a"), *pods)
    first = plan(objects, policy=policy, now=NOW, cycles=2).to_dict()["cycles"]
    names = [each["gpuGroups"][0] for one in first for each in one["binds"]]
    assert len(names) == 2 and len(set(names)) == 2


def test_a_queue_below_its_share_takes_one_pod_and_no_more() -> None:
    running = [pod(f"r{i}-0", f"r{i}", gpus=1, on="n") for i in range(2)]
    groups = [group(f"r{i}", "a", age=9 - i) for i in range(2)]
    found = cycle(node("n"), *TREE, *groups, *running, group("j", "b"), pod("j-0", "j", gpus=1), policy=strict())
    assert [(each["pod"], each["action"], each["for"]) for each in found["evictions"]] == [("ns/r1-0", "reclaim", "ns/j")]
    assert [each["pod"] for each in found["nominations"]] == ["ns/j-0"]


def test_pods_are_consolidated_before_any_is_evicted() -> None:
    running = [pod("r0-0", "r0", gpus=1, on="n1"), pod("r1-0", "r1", gpus=1, on="n2")]
    objects = (node("n1"), node("n2"), queue("dep"), queue("a", "dep"), group("r0", "a", age=5), group("r1", "a", age=4))
    found = cycle(*objects, *running, group("j", "a"), pod("j-0", "j", gpus=2), policy=strict())
    moved = [each["pod"] for each in found["evictions"]]
    assert len(moved) == 1
    assert {each["pod"] for each in found["nominations"]} == {"ns/j-0", *moved}


def test_a_refusal_names_the_bound_and_the_figures() -> None:
    objects = (node("n"), queue("dep"), queue("a", "dep", quota=0, limit=1))
    found = cycle(*objects, group("j", "a", least=2), pod("j-0", "j", gpus=1), pod("j-1", "j", gpus=1))
    (job,) = found["jobs"]
    text = "a quota has reached the allowable limit of GPUs. Limit is 1 GPUs, currently 0 GPUs allocated and workload requested 2 GPUs"
    assert [(each["code"], each["message"]) for each in job["reasons"]] == [("OverLimit", text)]
    assert [(each["type"], each["status"], each["reason"]) for each in job["conditions"]] == [
        ("UnschedulableOnNodePool", "True", "OverLimit")
    ]


def test_a_gang_that_fits_in_part_says_how_much_of_it() -> None:
    pods = [pod(f"j-{i}", "j", gpus=1) for i in range(2)]
    found = cycle(node("n", 1), queue("dep"), queue("a", "dep"), group("j", "a", least=2), *pods)
    (job,) = found["jobs"]
    assert job["reasons"][0]["message"] == (
        "Resources were found for 1 pods while 2 are required for gang scheduling. Additional pods cannot be scheduled due to: "
        "no nodes with enough resources were found: 1 node(s) didn't have enough resources: GPUs."
    )


@pytest.mark.parametrize("policy", ["kai", "strict"])
def test_an_elastic_job_gives_its_surplus_first(policy: str) -> None:
    running = [pod(f"r-{i}", "r", gpus=1, on="n") for i in range(2)]
    found = cycle(
        node("n"), *TREE, group("r", "a", least=1, age=9), *running, group("j", "b"), pod("j-0", "j", gpus=1),
        policy="kai" if policy == "kai" else strict(),
    )  # fmt: skip
    assert [each["pod"] for each in found["evictions"]] == ["ns/r-1"]
    assert [each["pod"] for each in found["nominations"]] == ["ns/j-0"]


def test_nominations_are_kept_in_the_next_cycle() -> None:
    running = [pod(f"r{i}-0", f"r{i}", gpus=1, on="n") for i in range(2)]
    groups = [group(f"r{i}", "a", age=9 - i) for i in range(2)]
    objects = (node("n"), *TREE, *groups, *running, group("j", "b"), pod("j-0", "j", gpus=1))
    second = cycle(*objects, policy=strict(), cycles=2)
    assert second["binds"] == [{"node": "n", "pod": "ns/j-0"}]
    assert not second["evictions"]


def test_workers_take_only_their_kind_of_pods() -> None:
    policy = {**strict(), "schedulerParams": {"restrictSchedulingNodes": True}}
    plain, gpu = node("a-plain", gpus=1), node("b-gpu", gpus=1)
    plain["metadata"]["labels"]["node-role.kubernetes.io/cpu-worker"] = ""
    gpu["metadata"]["labels"]["node-role.kubernetes.io/gpu-worker"] = ""
    groups = (group("j", "a"), group("k", "b"))
    found = cycle(plain, gpu, *TREE, *groups, pod("j-0", "j", gpus=1), pod("k-0", "k"), policy=policy)
    assert found["binds"] == [{"node": "b-gpu", "pod": "ns/j-0"}, {"node": "a-plain", "pod": "ns/k-0"}]


def test_without_hierarchy_leaf_queues_compete_with_each_other() -> None:
    policy = {**strict(), "schedulerParams": {"fullHierarchyFairness": False}}
    queues = (queue("d1", quota=0), queue("d2", quota=0), queue("a", "d1", quota=1), queue("b", "d2", quota=2))
    pods = [pod(f"{g}-0", g, gpus=1) for g in ("j", "k", "l")]
    groups = (group("j", "a", age=9), group("k", "a", age=8), group("l", "b", age=1))
    found = cycle(node("n", 2), *queues, *groups, *pods, policy=policy)
    assert {each["pod"] for each in found["binds"]} == {"ns/j-0", "ns/l-0"}


@pytest.mark.parametrize("policy", ["kai", "strict"])
def test_the_rest_of_a_gang_that_was_a_victim_evicts_nothing(policy: str) -> None:
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("low", 50), ("mid", 60), ("high", 90))
    ]
    gang = [group("g", "a", 3, age=9, priorityClassName="mid"), *(pod(f"g-{i}", "g", gpus=2, on=f"n{i}") for i in range(2))]
    high = [group("j", "a", 2, age=5, priorityClassName="high"), *(pod(f"j-{i}", "j", gpus=2) for i in range(2))]
    low = [node("n2", gpus=1), group("l", "a", age=3, priorityClassName="low"), pod("l-0", "l", gpus=1, on="n2")]
    objects = (node("n0"), node("n1"), queue("dep"), queue("a", "dep"), *classes, *gang, pod("g-2", "g", gpus=1), *high, *low)
    found = cycle(*objects, policy="kai" if policy == "kai" else strict())
    assert [(each["pod"], each["for"]) for each in found["evictions"]] == [("ns/g-0", "ns/j"), ("ns/g-1", "ns/j")]
    assert [each["pod"] for each in found["nominations"]] == ["ns/j-0", "ns/j-1"], "one of three would be of no use"
    (broken,) = (job for job in found["jobs"] if job["job"] == "ns/g")
    told = [each["message"] for each in broken["reasons"] if each["code"] == "NotReady"]
    assert told == ["Waiting for 3 pods, currently 3 exist, 0 are gated, 2 are leaving"]


@pytest.mark.parametrize("policy", ["kai", "strict"])
def test_a_pod_whose_node_is_gone_is_no_victim_and_makes_no_room(policy: str) -> None:
    running = [pod("r-0", "r", gpus=1, on="n"), pod("r-1", "r", gpus=1, on="gone"), pod("s-0", "s", gpus=1, on="n")]
    objects = (node("n"), *TREE, group("r", "a", least=2, age=9), group("s", "a", age=12), *running)
    found = cycle(
        *objects, group("j", "b"), pod("j-0", "j", gpus=1),
        policy="kai" if policy == "kai" else strict(),
    )  # fmt: skip
    assert [each["pod"] for each in found["evictions"]] == ["ns/s-0"], "the younger gang would go first, were it whole"


@pytest.mark.parametrize("policy", ["kai", "strict"])
def test_running_pods_of_a_broken_gang_are_evicted_and_pending_ones_stay(policy: str) -> None:
    broken = group("r", "a", least=3, age=9)
    broken["metadata"]["annotations"] = {"kai.scheduler/stale-podgroup-timestamp": "2025-12-31T23:00:00Z"}
    running = [pod("r-0", "r", gpus=1, on="n"), pod("r-1", "r", gpus=1, on="gone")]
    found = cycle(node("n"), node("z"), *TREE, broken, *running, policy="kai" if policy == "kai" else strict())
    assert [(each["pod"], each["action"]) for each in found["evictions"]] == [("ns/r-0", "stalegangeviction")]


def test_an_extended_resource_that_no_node_reports_is_served_by_devices_until_they_are_used_up() -> None:
    classes = {"extendedResourceName": "example.com/fpga", "selectors": [{"cel": {"expression": "true"}}]}
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    slices = {"driver": "fpga.example.com", "nodeName": "n", "pool": pool, "devices": [{"name": "d0"}, {"name": "d1"}]}
    devices = [
        {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "fpga"}, "spec": spec}
        for kind, spec in (("DeviceClass", classes), ("ResourceSlice", slices))
    ]
    pods = [pod(f"j{i}-0", f"j{i}") for i in range(4)]
    for each in pods[:3]:
        each["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1", "example.com/fpga": "1"}
    groups = [group(f"j{i}", "a", age=9 - i) for i in range(4)]
    found = cycle(node("n"), queue("dep"), queue("a", "dep"), *devices, *groups, *pods)
    assert [each["pod"] for each in found["binds"]] == ["ns/j0-0", "ns/j1-0", "ns/j3-0"], "the last pod asks for no device"
