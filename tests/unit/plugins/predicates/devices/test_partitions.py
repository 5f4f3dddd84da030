"""Devices that are parts of a card (counters of a pool), and devices that several claims share (capacity)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.device_objects import RESOURCE, Object, claim, device_class, exactly, user

import navarch
from navarch.plugins.predicates.devices.search import Search
from navarch.testing.builders import node


def pool(name: str, devices: list[Object], counters: Object | None = None, **place: Any) -> list[Object]:
    """Slices of one pool: devices, and the counters of its cards."""
    parts: list[Object] = [{"devices": devices}]
    if counters is not None:
        parts.append({"sharedCounters": [{"name": "card", "counters": {key: {"value": value} for key, value in counters.items()}}]})
    of = {"name": name, "generation": 1, "resourceSliceCount": len(parts)}
    where = place or {"nodeName": name}
    return [
        {
            "apiVersion": RESOURCE,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{name}-{number}"},
            "spec": {"driver": "d", "pool": of, **where, **part},
        }
        for number, part in enumerate(parts)
    ]


def part(name: str, memory: str, **more: Any) -> Object:
    return {"name": name, "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": memory}}}], **more}


def shared(name: str, memory: str) -> Object:
    return {"name": name, "allowMultipleAllocations": True, "capacity": {"memory": {"value": memory}}}


def outcome(*objects: Any, policy: str = "kube-scheduler") -> tuple[dict[str, str], dict[str, list[str]], str]:
    record = navarch.plan(objects, policy=policy).records[0]
    binds = {bind.pod.removeprefix("default/"): bind.node for bind in record.binds}
    devices = {each.claim.removeprefix("default/"): [d.device for d in each.devices] for each in record.claims}
    return binds, devices, " ".join(r.message for job in record.jobs for r in job.refusals)


def asks(amount: str, name: str = "r") -> Object:
    return exactly(name=name, capacity={"requests": {"memory": amount}})


@pytest.mark.parametrize("policy", ["kube-scheduler", "volcano", "navarch"])
def test_parts_of_one_card_exclude_each_other(policy: str) -> None:
    """The whole card and its halves draw on the same memory."""
    slices = pool("n1", [part("whole", "8Gi"), part("left", "4Gi"), part("right", "4Gi")], {"memory": "8Gi"})
    world = [node("n1"), device_class(), *slices]
    pods = [user(f"p{i}", f"c{i}") for i in range(2)]
    binds, devices, words = outcome(*world, claim("c0", exactly()), claim("c1", exactly()), *pods, policy=policy)
    assert (binds, devices) == ({"p0": "n1"}, {"c0": ["whole"]})
    assert "1 cannot allocate all claims" in words
    small = exactly(selectors=[{"cel": {"expression": 'device.attributes["d"].half'}}])
    halves = [part("left", "4Gi", attributes={"half": {"bool": True}}), part("right", "4Gi", attributes={"half": {"bool": True}})]
    whole = part("whole", "8Gi", attributes={"half": {"bool": False}})
    world = [node("n1"), device_class(), *pool("n1", [whole, *halves], {"memory": "8Gi"})]
    assert outcome(*world, claim("c0", small), claim("c1", small), *pods, policy=policy)[1] == {"c0": ["left"], "c1": ["right"]}


def test_counters_of_a_pool_hold_for_all_nodes() -> None:
    """The devices are on different nodes and draw on one card."""
    devices = [part("a", "6Gi", nodeName="n1"), part("b", "6Gi", nodeName="n2")]
    slices = pool("cards", devices, {"memory": "8Gi"}, perDeviceNodeSelection=True)
    world = [node("n1"), node("n2"), device_class(), *slices, claim("c0", exactly()), claim("c1", exactly())]
    assert len(outcome(*world, user("p0", "c0"), user("p1", "c1"))[0]) == 1


def test_a_pool_whose_counters_are_unknown_gives_nothing() -> None:
    slices = pool("n1", [part("a", "1Gi")])
    binds, _, words = outcome(node("n1"), device_class(), *slices, claim("c", exactly()), user("p", "c"))
    assert not binds and "invalid resource pools were encountered" in words


def test_all_devices_wait_for_a_pool_that_is_being_updated() -> None:
    every = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    slices = pool("n1", [{"name": "a"}])
    slices[0]["spec"]["pool"]["resourceSliceCount"] = 2
    words = outcome(node("n1"), device_class(), *slices, claim("c", every), user("p", "c"))[2]
    assert "claim default/c, request r: asks for all devices, but resource pool d/n1 is currently being updated" in words


@pytest.mark.parametrize("policy", ["kube-scheduler", "volcano", "navarch"])
def test_claims_share_a_device_until_its_capacity_is_used_up(policy: str) -> None:
    world = [node("n1"), device_class(), *pool("n1", [shared("a", "10Gi")])]
    claims = [claim(f"c{i}", asks("4Gi")) for i in range(3)]
    record = navarch.plan([*world, *claims, *(user(f"p{i}", f"c{i}") for i in range(3))], policy=policy).records[0]
    found = [(each.claim, [(d.device, d.shared, d.consumed) for d in each.devices]) for each in record.claims]
    assert found == [(f"default/c{i}", [("a", True, (("memory", "4Gi"),))]) for i in range(2)]


def test_shares_that_claims_hold_count() -> None:
    held = claim("held", exactly(), allocated="n1")
    held["status"]["allocation"]["devices"]["results"] = [
        {"request": "r", "driver": "d", "pool": "n1", "device": "a", "shareID": "s", "consumedCapacity": {"memory": "7Gi"}}
    ]
    world = [node("n1"), device_class(), *pool("n1", [shared("a", "10Gi")]), held]
    assert outcome(*world, claim("c", asks("3Gi")), user("p", "c"))[1] == {"c": ["a"]}
    assert not outcome(*world, claim("c", asks("4Gi")), user("p", "c"))[0]


def test_pools_with_binding_conditions_come_last() -> None:
    """Their devices have to be attached first."""
    slices = [
        *pool("a", [{"name": "far", "bindingConditions": ["Attached"]}], allNodes=True),
        *pool("b", [{"name": "near"}], allNodes=True),
    ]
    world = [node("n1"), device_class(), *slices, *(claim(f"c{i}", exactly()) for i in range(2))]
    record = navarch.plan([*world, user("p0", "c0"), user("p1", "c1")], policy="kube-scheduler").records[0]
    assert [(d.device, d.binding_conditions) for each in record.claims for d in each.devices] == [("near", ()), ("far", ("Attached",))]


def test_administrators_share_a_device_but_not_within_a_claim() -> None:
    world = [node("n1"), device_class(), *pool("n1", [{"name": "a"}]), claim("held", exactly(), allocated="n1")]
    admin = exactly(adminAccess=True)
    assert outcome(*world, claim("c", admin), user("p", "c"))[1] == {"c": ["a"]}
    assert not outcome(*world, claim("c", admin, exactly(name="s", adminAccess=True)), user("p", "c"))[0]


@pytest.mark.parametrize(("labels", "bound"), [({}, False), ({"resource.kubernetes.io/admin-access": "true"}, True)])
def test_administrators_work_in_namespaces_with_a_label(labels: dict[str, str], bound: bool) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}
    world = [namespace, node("n1"), device_class(), *pool("n1", [{"name": "a"}])]
    binds, _, words = outcome(*world, claim("c", exactly(adminAccess=True)), user("p", "c"))
    assert bool(binds) is bound
    assert bound or "default lacks the label resource.kubernetes.io/admin-access=true that adminAccess needs" in words


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nodeAllocatableResourceMappings", {"cpu": {}}),
        ("nodeAllocatableResources", {"cpu": {}}),
        ("consumesCounters", [{"counterSet": "card", "counters": {"memory": {"value": "1"}}, "compatibilityGroups": ["a"]}]),
    ],
)
def test_a_device_that_is_not_modelled_is_named(field: str, value: Any) -> None:
    named = "compatibilityGroups" if field == "consumesCounters" else field
    slices = pool("n1", [{"name": "a", field: value}], {"memory": "8"})
    words = outcome(node("n1"), device_class(), *slices, claim("c", exactly()), user("p", "c"))[2]
    assert f"Navarch does not support devices with {named}" in words


def test_devices_of_a_slice_that_is_not_modelled_are_named() -> None:
    slices = pool("n1", [{"name": "a"}])
    for each in slices:
        each["spec"]["skipNodeOperations"] = ["NodePrepare"]
    words = outcome(node("n1"), device_class(), *slices, claim("c", exactly()), user("p", "c"))[2]
    assert "Navarch does not support devices with skipNodeOperations" in words


def test_a_request_that_is_not_modelled_is_named() -> None:
    derived = exactly(derivedAttributes=[{"name": "x"}])
    words = outcome(node("n1"), device_class(), *pool("n1", [{"name": "a"}]), claim("c", derived), user("p", "c"))[2]
    assert "Navarch does not support derivedAttributes" in words


def test_one_search_answers_for_nodes_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = []
    run = Search.run

    def counted(self: Any) -> Any:
        searches.append(self)
        return run(self)

    monkeypatch.setattr(Search, "run", counted)
    nodes = [f"n{i}" for i in range(50)]
    world = [device_class(), *(node(name) for name in nodes)]
    for number, name in enumerate(nodes):
        world += pool(name, [{"name": "a", "attributes": {"uuid": {"string": f"u{number}"}}}, {"name": "b"}])
    record = navarch.plan([*world, *(claim(f"c{i}", exactly()) for i in range(4)), *(user(f"p{i}", f"c{i}") for i in range(4))])
    assert len(record.records[0].claims) == 4
    assert len(searches) <= 8, "one for all nodes, and one for each node that changed"


def test_a_plan_names_the_devices() -> None:
    world = [node("n1"), device_class(), *pool("n1", [shared("a", "10Gi")]), claim("c", asks("4Gi")), user("p", "c")]
    (bind,) = navarch.plan(world, policy="kube-scheduler").to_dict()["cycles"][0]["binds"]
    assert bind["devices"] == [{"claim": "default/c", "device": "d/n1/a", "request": "r", "consumedCapacity": {"memory": "4Gi"}}]
