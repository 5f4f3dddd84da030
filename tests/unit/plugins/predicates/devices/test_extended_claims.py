"""Extended resources that devices of a class serve where the node does not report them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.device_objects import Object, claim, device_class, exactly, slice_of

import navarch
from navarch.testing.builders import node, pod, pod_group, queue

GPU, NIC = "example.com/gpu", "example.com/nic"


def named_class(name: str, resource: str) -> Object:
    found = device_class(name)
    found["spec"]["extendedResourceName"] = resource
    return found


def asks(name: str, **resources: int) -> Any:
    made = pod(name)
    for resource, count in resources.items():
        made = made.request(resource, count)
    return made


def outcome(*objects: Any, policy: str = "kube-scheduler") -> tuple[dict[str, str], dict[str, list[tuple[str, str]]], str]:
    """Binds, (request, device) of the claims that are made by node, and the words of pods that wait."""
    record = navarch.plan(objects, policy=policy).records[0]
    binds = {bind.pod.removeprefix("default/"): bind.node for bind in record.binds}
    devices = {each.uid.removeprefix("default/"): [(d.request, d.device) for d in each.devices] for each in record.claims}
    return binds, devices, " ".join(r.message for job in record.jobs for r in job.refusals)


@pytest.mark.parametrize("policy", ["kube-scheduler", "navarch"])
@pytest.mark.parametrize("resource", [GPU, "deviceclass.resource.kubernetes.io/gpu"])
def test_devices_serve_the_resource(resource: str, policy: str) -> None:
    world = [node("n1"), node("n2"), named_class("gpu", GPU), slice_of("n2", "a", "a")]
    binds, devices, words = outcome(*world, asks("p0", **{resource: 2}), asks("p1", **{resource: 1}), policy=policy)
    assert (binds, devices) == ({"p0": "n2"}, {"p0": [("container-0-request-0", "g0"), ("container-0-request-0", "g1")]})
    assert "0/2 nodes are available: 2 cannot allocate all claims." in words


@pytest.mark.parametrize("policy", ["kube-scheduler", "navarch"])
def test_a_node_that_reports_the_resource_serves_it_by_its_plugin(policy: str) -> None:
    world = [node("n1").has(GPU, 1), node("n2"), named_class("gpu", GPU), slice_of("n1", "a", "a"), slice_of("n2", "a")]
    binds, devices, _ = outcome(*world, *(asks(f"p{i}", **{GPU: 1}) for i in range(3)), policy=policy)
    assert sorted(binds.values()) == ["n1", "n2"]
    assert list(devices) == [name for name, where in binds.items() if where == "n2"]


def test_a_node_may_report_one_of_two_resources() -> None:
    world = [node("n1").has(NIC, 1), named_class("gpu", GPU), named_class("nic", NIC), slice_of("n1", "a", "a")]
    binds, devices, _ = outcome(*world, asks("p", **{GPU: 1, NIC: 1}))
    assert (binds, devices) == ({"p": "n1"}, {"p": [("container-0-request-0", "g0")]})
    world = [node("n1"), named_class("gpu", GPU), named_class("nic", NIC), slice_of("n1", "a", "a")]
    devices = outcome(*world, asks("p", **{GPU: 1, NIC: 1}))[1]
    assert devices == {"p": [("container-0-request-0", "g0"), ("container-0-request-1", "g1")]}


def test_claims_and_extended_resources_of_one_pod() -> None:
    made = asks("p", **{GPU: 1})
    made["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "c"}]
    world = [node("n1"), named_class("gpu", GPU), claim("c", exactly())]
    record = navarch.plan([*world, slice_of("n1", "a", "a"), made], policy="kube-scheduler").records[0]
    assert [(each.claim, [d.device for d in each.devices]) for each in record.claims] == [
        ("default/c", ["g0"]),
        ("default/<extended-resources>", ["g1"]),
    ]
    assert not navarch.plan([*world, slice_of("n1", "a"), made], policy="kube-scheduler").records[0].binds


def left_claim(owner: str) -> Object:
    """A claim that a scheduler made for a pod's extended resources."""
    found = claim("left", exactly(), allocated="n1")
    found["metadata"] |= {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}],
    }
    return found


@pytest.mark.parametrize(("owner", "bound"), [("default/p", True), ("uid-of-another", False)])
def test_a_claim_of_an_earlier_attempt_does_not_hold_its_devices(owner: str, bound: bool) -> None:
    world = [node("n1"), named_class("gpu", GPU), slice_of("n1", "a"), left_claim(owner)]
    assert bool(outcome(*world, asks("p", **{GPU: 1}))[0]) is bound


def test_queues_share_the_devices_behind_a_resource() -> None:
    world = [node("n1"), queue("a"), queue("b"), named_class("gpu", GPU), slice_of("n1", *"aaaa")]
    groups = [pod_group(f"{name}{i}").queue(name) for name in "ab" for i in range(4)]
    pods = [asks(f"{name}{i}", **{GPU: 1}).in_group(f"{name}{i}") for name in "ab" for i in range(4)]
    record = navarch.plan([*world, *groups, *pods], policy="navarch").records[0]
    assert sorted(bind.pod[8] for bind in record.binds) == ["a", "a", "b", "b"]
    assert {each.queue: each.deserved[GPU] for each in record.queues if GPU in each.deserved} == {"a": 2000, "b": 2000}


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    world = [node("n1"), node("n2"), named_class("gpu", GPU), slice_of("n1", "a"), slice_of("n2", "a")]
    for size, placed in ((2, 2), (3, 0)):
        gang = [asks(f"p{i}", **{GPU: 1}).in_group("g") for i in range(size)]
        binds, devices, _ = outcome(*world, pod_group("g", size), *gang, policy="navarch")
        assert (len(binds), len(devices)) == (placed, placed)


def test_an_eviction_makes_room_beside_devices_that_are_free() -> None:
    world = [node("n1").cpu(2), named_class("gpu", GPU), slice_of("n1", "a")]
    low = pod("low").cpu(2).on("n1")
    high = asks("high", **{GPU: 1}).cpu(2).priority(10)
    policy = {
        "actions": "allocate, preempt",
        "tiers": [{"plugins": [{"name": name} for name in ("priority", "predicates")]}],
    }
    (eviction,) = navarch.plan([*world, low, high], policy=policy).records[0].evictions
    assert eviction.pod == "default/low"


def test_a_policy_that_serves_no_classes_says_so() -> None:
    off = {"name": "predicates", "arguments": {"predicate.DynamicResourceAllocationEnable": False}}
    policy = {"actions": "allocate", "tiers": [{"plugins": [off]}]}
    world = [node("n1"), named_class("gpu", GPU), slice_of("n1", "a"), queue("default").state("Open"), asks("p", **{GPU: 1})]
    record = navarch.plan(world, policy=policy).records[0]
    assert not record.binds
    warning = f"no node reports {GPU}: this policy does not serve extended resources by devices of a DeviceClass"
    assert record.warnings == [warning]


@pytest.mark.parametrize("policy", ["volcano", "navarch"])
def test_a_resource_that_no_node_offers_is_not_told_as_a_full_queue(policy: str) -> None:
    record = navarch.plan([node("n1"), queue("default").state("Open"), asks("p", **{GPU: 1})], policy=policy).records[0]
    (job,) = record.jobs
    assert job.reasons[0].message == f"cannot start: no node offers {GPU}"
