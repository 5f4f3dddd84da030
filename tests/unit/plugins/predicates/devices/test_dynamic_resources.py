"""Claims on devices: counts, all devices, selectors, constraints, alternatives, and what placements take from each other."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.device_objects import Object, claim, device_class, exactly, slice_of, user

import navarch
from navarch.testing.builders import node, pod


def outcome(*objects: Any, policy: str = "kube-scheduler") -> tuple[dict[str, str], dict[str, list[str]], str]:
    """Binds, devices by claim, and the messages of waiting pods."""
    record = navarch.plan(objects, policy=policy).records[0]
    binds = {bind.pod.removeprefix("default/"): bind.node for bind in record.binds}
    devices = {each.claim.removeprefix("default/"): [d.device for d in each.devices] for each in record.claims}
    return binds, devices, " ".join(r.message for job in record.jobs for r in job.refusals)


@pytest.mark.parametrize("policy", ["kube-scheduler", "volcano", "navarch"])
def test_devices_that_one_pod_takes_are_gone_for_the_next(policy: str) -> None:
    world = [node("n1"), node("n2"), device_class(), slice_of("n1", "a"), slice_of("n2", "a", "b")]
    claims = [claim("c1", exactly()), claim("c2", exactly(2)), claim("c3", exactly())]
    binds, devices, words = outcome(*world, *claims, user("p1", "c1"), user("p2", "c2"), user("p3", "c3"), policy=policy)
    assert binds == {"p1": "n1", "p2": "n2"}
    assert devices == {"c1": ["g0"], "c2": ["g0", "g1"]}
    assert "2 cannot allocate all claims" in words


def test_an_allocated_claim_holds_its_pod_to_the_devices() -> None:
    world = [node("n1"), node("n2"), device_class(), slice_of("n1", "a"), slice_of("n2", "a")]
    binds, devices, _ = outcome(*world, claim("c", exactly(), allocated="n2"), user("p", "c"))
    assert binds == {"p": "n2"} and not devices
    full = [node("n1"), device_class(), slice_of("n1", "a"), claim("c", exactly(), allocated="n2"), user("p", "c")]
    assert "1 resourceclaim not available on the node" in outcome(*full)[2]


def test_a_claim_keeps_its_devices_where_another_node_would_not_help() -> None:
    """The pod goes to n1 alone, and n1 is full: kube-scheduler looks at no other node's devices."""
    full = [
        node("n1").cpu("1"),
        node("n2").cpu("1"),
        device_class(),
        slice_of("n1", "a"),
        slice_of("n2", "a"),
        pod("f").cpu("1").on("n1"),
    ]
    held = claim("c", exactly(), allocated="n1")
    pinned, free = user("p", "c"), user("p", "c")
    for each in (pinned, free):
        each["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    pinned["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    kept = navarch.plan([*full, held, pinned], policy="kube-scheduler").records[0]
    assert not kept.releases
    assert "still not schedulable" in outcome(*full, held, pinned)[2]
    given_up = navarch.plan([*full, held, free], policy="kube-scheduler").records[0]
    assert [each.claim for each in given_up.releases] == ["default/c"]


def test_a_node_without_devices_for_one_claim_is_told_so_although_it_lacks_the_other_too() -> None:
    world = [
        node("n1"),
        node("n2"),
        device_class(),
        slice_of("n1", "a"),
        claim("c", exactly(), allocated="n1"),
        claim("more", exactly()),
    ]
    _, _, words = outcome(*world, user("p", "c", "more"))
    assert words.startswith("0/2 nodes are available: 2 cannot allocate all claims. still not schedulable")


def test_a_claim_that_its_controller_finds_needless_is_not_waited_for() -> None:
    made = user("p", "c")
    made["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": "t"}]
    world = [node("n1"), device_class()]
    assert outcome(*world, made)[2].startswith('0/1 nodes are available: pod "default/p": ResourceClaim not created yet.')
    made["status"]["resourceClaimStatuses"] = [{"name": "c"}]
    assert outcome(*world, made)[0] == {"p": "n1"}


@pytest.mark.parametrize(("older", "newer", "chosen"), [("a", "b", "b"), ("b", "a", "a"), ("a", "a", "a")])
def test_of_two_classes_behind_one_resource_the_newer_counts(older: str, newer: str, chosen: str) -> None:
    """kube-scheduler: a class that replaces another one is the newer one; the name decides among equals."""
    classes = []
    for name, model in (("a", "x"), ("b", "y")):
        made = device_class(name, f'device.attributes["d"].model == "{model}"')
        made["spec"]["extendedResourceName"] = "example.com/gpu"
        made["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z" if name == newer or newer == older else "2026-01-01T00:00:00Z"
        classes.append(made)
    asking = pod("p").request("example.com/gpu", "1")
    _, devices, _ = outcome(node("n1"), *classes, slice_of("n1", "x", "y"), asking)
    assert list(devices.values()) == [["g0" if chosen == "a" else "g1"]]


def test_two_pods_share_a_claim() -> None:
    world = [node("n1"), node("n2"), device_class(), slice_of("n1", "a"), slice_of("n2", "a"), claim("c", exactly())]
    binds, _, _ = outcome(*world, user("p1", "c"), user("p2", "c"))
    assert binds["p1"] == binds["p2"]


def test_all_devices_of_a_kind_or_none() -> None:
    every = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    world = [node("n1"), node("n2"), device_class(), slice_of("n1", "a", "b"), slice_of("n2")]
    assert outcome(*world, claim("c", every), user("p", "c"))[1] == {"c": ["g0", "g1"]}
    taken = [claim("c0", exactly(), allocated="n1"), claim("c", every), user("p", "c")]
    assert not outcome(*world, *taken)[0]


def test_selectors_constraints_and_alternatives() -> None:
    only_b = [{"cel": {"expression": 'device.attributes["d"].model == "b"'}}]
    world = [node("n1"), device_class(), slice_of("n1", "a", "b", "b")]
    assert outcome(*world, claim("c", exactly(selectors=only_b)), user("p", "c"))[1] == {"c": ["g1"]}
    alike = ({"requests": ["r", "s"], "matchAttribute": "d/model"},)
    pair = claim("c", exactly(), exactly(name="s"), constraints=alike)
    assert outcome(*world, pair, user("p", "c"))[1] == {"c": ["g1", "g2"]}
    choices = [{"name": "many", "deviceClassName": "gpu", "count": 5}, {"name": "one", "deviceClassName": "gpu"}]
    first = {"name": "r", "firstAvailable": choices}
    assert outcome(*world, claim("c", first), user("p", "c"))[1] == {"c": ["g0"]}


def test_only_complete_pools_of_the_newest_generation_count() -> None:
    old, new = slice_of("n1", "a", "b"), slice_of("n1", "a", generation=2)
    assert not outcome(node("n1"), device_class(), old, new, claim("c", exactly(2)), user("p", "c"))[0]
    half = slice_of("n1", "a", slices=2)
    assert not outcome(node("n1"), device_class(), half, claim("c", exactly()), user("p", "c"))[0]


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ([], 'resourceclaim.resource.k8s.io "c" not found'),
        ([claim("c", exactly())], "request r: device class gpu does not exist"),
    ],
)
def test_missing_objects_are_named(claims: list[Object], words: str) -> None:
    assert f"0/1 nodes are available: {words}." in outcome(node("n1"), *claims, user("p", "c"))[2]


def test_a_selector_that_fails_says_how() -> None:
    broken = device_class(expression='device.attributes["d"].healthy')
    words = outcome(node("n1"), broken, slice_of("n1", "a"), claim("c", exactly()), user("p", "c"))[2]
    assert "class gpu: selector #0: CEL runtime error: no such key: healthy" in words


def held(name: str, node_name: str, *users: str) -> Object:
    found = claim(name, exactly(), allocated=node_name)
    found["status"]["reservedFor"] = [{"resource": "pods", "name": each, "uid": f"default/{each}"} for each in users]
    return found


@pytest.mark.parametrize(("users", "released"), [((), True), (("p",), True), (("other",), False), (("p", "other"), False)])
def test_a_claim_that_holds_its_pod_to_a_full_node_loses_its_devices(users: tuple[str, ...], released: bool) -> None:
    """No other pod uses it, and its devices are on a node that has no room for the pod."""
    world = [node("n1").cpu(0), node("n2").cpu(4), device_class(), slice_of("n1", "a"), slice_of("n2", "a"), held("c", "n1", *users)]
    made = user("p", "c")
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    plan = navarch.plan([*world, made], policy="kube-scheduler", cycles=2)
    first, second = plan.records
    assert not first.binds
    assert [(each.claim, each.uid) for each in first.releases] == ([("default/c", "default/p")] if released else [])
    (words,) = [each.message for job in first.jobs for each in job.refusals]
    assert ("deallocation of ResourceClaim completed" if released else "still not schedulable") in words
    assert [bind.node for bind in second.binds] == (["n2"] if released else [])


def test_a_claim_whose_devices_every_node_reaches_keeps_them() -> None:
    found = held("c", "n1")
    del found["status"]["allocation"]["nodeSelector"]
    made = user("p", "c")
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "9"}}
    record = navarch.plan([node("n1").cpu(4), device_class(), slice_of("n1", "a"), found, made], policy="kube-scheduler").records[0]
    assert not record.binds and not record.releases
