"""A claim with a bad selector or an endless search costs its own pod its place, and no other pod anything."""

from __future__ import annotations

from typing import Any

import pytest

import navarch
from navarch.plugins.predicates.devices import claims, selectors
from navarch.plugins.predicates.devices.cel.selector import compile_selector
from navarch.plugins.predicates.devices.search import Search
from navarch.testing.builders import node, pod

RESOURCE = "resource.k8s.io/v1"
Object = dict[str, Any]
COSTLY = "[1,2,3,4,5,6,7,8,9,0].all(x, " * 8 + "true" + ")" * 8
HOSTILE = {
    "regex": f'"{"a" * 40}!".matches("(a+)+$")',
    "split": '"x".split("").size() < 0',
    "parentheses": "(" * 200 + "false" + ")" * 200,
    "or": "false||" * 1400 + "false",
    "not": "!" * 9999 + "true",
    "costly": COSTLY,
    "not CEL": "!" * 10000,
    "escape": '"\\U00110000" == ""',
    "long number": "1" * 5000 + " == 1",
}


def world(nodes: int, devices: int, version: str = "1.0.0") -> list[Object]:
    spec = {"selectors": [{"cel": {"expression": 'device.driver == "d"'}}]}
    found: list[Object] = [{"apiVersion": RESOURCE, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}]
    for number in range(nodes):
        name = f"n{number}"
        made = [{"name": f"g{i}", "attributes": {"half": {"int": i % 2}, "v": {"version": version}}} for i in range(devices)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        slice_ = {"driver": "d", "nodeName": name, "pool": pool, "devices": made}
        found += [node(name), {"apiVersion": RESOURCE, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": slice_}]
    return found


def claim(name: str, expression: str = "", count: int = 1, **more: Any) -> Object:
    exactly: Object = {"deviceClassName": "gpu", "count": count}
    if expression:
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    devices = {"requests": [{"name": "r", "exactly": exactly}], **more}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": RESOURCE, "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}}


def user(name: str, claim_name: str) -> Object:
    made = pod(name)
    made["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": claim_name}]
    return made


def words(record: Any, name: str) -> str:
    return " ".join(r.message for job in record.jobs for r in job.refusals if r.pod == f"default/{name}")


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("policy", ["navarch", "kube-scheduler"])
def test_others_are_placed_beside_a_hostile_claim(kind: str, policy: str) -> None:
    objects = [*world(2, 2), claim("bad", HOSTILE[kind]), user("a-bad", "bad"), claim("good"), user("good", "good"), pod("plain")]
    record = navarch.plan(objects, policy=policy).records[0]
    assert sorted(bind.pod for bind in record.binds) == ["default/good", "default/plain"]


@pytest.mark.parametrize("policy", ["navarch", "kube-scheduler"])
def test_the_refusal_of_an_expensive_selector_names_the_claim(policy: str) -> None:
    objects = [*world(2, 2), claim("b1", COSTLY), user("p1", "b1"), claim("b2", COSTLY), user("p2", "b2")]
    record = navarch.plan(objects, policy=policy).records[0]
    for number in (1, 2):
        text = words(record, f"p{number}")
        assert f"claim default/b{number}: selector #0: CEL cost error: the expression costs more than 1000000 steps" in text


def test_a_costly_selector_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(text: str) -> Any:
        asked.append(text)
        return compile_selector(text)

    monkeypatch.setattr(selectors, "compile_selector", counted)
    navarch.plan([*world(20, 4), claim("bad", COSTLY), user("p", "bad")], policy="navarch")
    assert asked.count(COSTLY) == 1


def test_namespaces_have_allowances_of_their_own() -> None:
    """Each evaluation costs 500,000: ten of them exhaust the allowance of the first namespace, and of that one alone."""
    dear = "[1,2,3,4,5,6,7,8,9,0].all(a, " * 5 + "true" + ")" * 5 + ' && device.attributes["d"].half == 2'
    one, two = claim("c", dear), claim("c", dear)
    two["metadata"]["namespace"] = "other"
    second = user("p", "c")
    second["metadata"]["namespace"] = "other"
    objects = [*world(1, 40), one, user("p", "c"), two, second, claim("cheap"), user("q", "cheap")]
    record = navarch.plan(objects, policy="navarch").records[0]
    assert {bind.pod for bind in record.binds} >= {"default/q"}
    assert "used up 5000000" in words(record, "p")


def test_the_search_for_devices_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty of forty devices agree in the attribute: there is no set of twenty-one, and there are millions to try."""
    steps: list[int] = []
    run = Search.run

    def counted(self: Search) -> Any:
        try:
            return run(self)
        finally:
            steps.append(self.steps)

    monkeypatch.setattr(Search, "run", counted)
    bad = claim("bad", count=21, constraints=[{"matchAttribute": "d/half"}])
    objects = [*world(60, 40), bad, user("a-bad", "bad"), claim("good"), user("good", "good")]
    record = navarch.plan(objects, policy="navarch").records[0]
    assert [bind.pod for bind in record.binds] == ["default/good"]
    assert sum(steps) <= claims.STEPS_BEYOND + claims.FREE_STEPS * len(steps)
    assert "60 cannot allocate all claims: there are too many combinations of devices to try" in words(record, "a-bad")


def test_a_device_that_cannot_be_read_is_left_out() -> None:
    record = navarch.plan([*world(1, 1, version="one"), *world(2, 1)[3:], claim("c"), user("p", "c")], policy="navarch").records[0]
    assert [(bind.pod, bind.node) for bind in record.binds] == [("default/p", "n1")]
    assert any("ResourceSlice n0: device g0 is left out" in text for text in record.warnings)
