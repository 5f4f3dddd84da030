"""DeviceTaintRules: a device that a rule taints goes to no claim that does not tolerate it."""

from __future__ import annotations

from typing import Any

import pytest

import navarch
from navarch.testing.builders import node, pod

DRIVER = "gpu.example.com"
API = "resource.k8s.io/v1"


def slice_of(name: str, *devices: str) -> dict[str, Any]:
    attributes = {"model": {"string": "a100" if name == "n1" else "h100"}}
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": device, "attributes": attributes} for device in devices],
        },
    }


def rule(effect: str = "NoSchedule", **selector: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {"deviceSelector": selector, "taint": {"key": "example.com/broken", "effect": effect}},
    }


def claim(*tolerations: dict[str, str]) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "tolerations": list(tolerations)}}
    spec = {"devices": {"requests": [request]}}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "default", "uid": "c"}, "spec": spec}


def user() -> Any:
    made = pod("p").cpu("1")
    made["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "c"}]
    return made


CLASS = {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}


def placed(*objects: Any, policy: str = "kube-scheduler") -> dict[str, str]:
    nodes = [node("n1").cpu("4"), node("n2").cpu("4")]
    plan = navarch.plan([*nodes, slice_of("n1", "a"), slice_of("n2", "b"), CLASS, user(), *objects], policy=policy)
    return {bind.pod: bind.node for bind in plan.records[0].binds}


@pytest.mark.parametrize(
    "selector",
    [
        {"driver": DRIVER, "pool": "n1", "device": "a"},
        {"pool": "n1"},
        {"selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "a100"'}}]},
    ],
)
@pytest.mark.parametrize("policy", ["kube-scheduler", "kai", "volcano"])
def test_a_device_that_a_rule_taints_is_not_allocated(selector: dict[str, Any], policy: str) -> None:
    queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "default-queue"}, "spec": {}}
    resources = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    queue["spec"] = {"resources": {"gpu": resources, "cpu": resources, "memory": resources}}
    more = [queue] if policy == "kai" else []
    found = placed(claim(), rule(**selector), *more, policy=policy)
    assert found in ({"default/p": "n2"}, {}), "never onto the tainted device"
    if policy == "kube-scheduler":
        assert found == {"default/p": "n2"}


def test_without_a_rule_the_first_node_is_taken() -> None:
    assert placed(claim()) == {"default/p": "n1"}


def test_a_rule_without_a_selector_taints_every_device() -> None:
    assert placed(claim(), rule()) == {}


def test_a_toleration_lets_a_claim_have_the_device() -> None:
    tolerates = {"key": "example.com/broken", "operator": "Exists"}
    assert placed(claim(tolerates), rule(pool="n1")) == {"default/p": "n1"}


def test_the_effect_none_only_informs() -> None:
    assert placed(claim(), rule("None", pool="n1")) == {"default/p": "n1"}


def test_a_rule_for_a_class_that_is_absent_taints_nothing() -> None:
    assert placed(claim(), rule(deviceClassName="other")) == {"default/p": "n1"}
    assert placed(claim(), rule(deviceClassName="gpu")) == {}
