"""Devices that pods claim, where other pods are moved or evicted for them: nobody is promised a device that another pod keeps."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.worlds.device_objects import claim, device_class, exactly, slice_of
from tests.worlds.kai_objects import cycle, group, node, pod, queue

Object = dict[str, Any]
TREE = (queue("dep"), queue("a", "dep"))
DEVICES = 8


def world(*models: str) -> list[Object]:
    return [node("n", 0), slice_of("n", *(models or ("m",) * DEVICES)), device_class(), *TREE]


def claiming(name: str, age: int, device: int | None = None, priority: str = "", model: str = "") -> list[Object]:
    """A job of one pod with a claim of its own, which holds this device. `model`: the only one that the claim takes."""
    request = exactly()
    if model:
        request["exactly"]["selectors"] = [{"cel": {"expression": f'device.attributes["d"].model == "{model}"'}}]
    own = claim(f"{name}-claim", request, allocated="n" if device is not None else "")
    own["metadata"]["namespace"] = "ns"
    if device is not None:
        own["status"]["allocation"]["devices"]["results"][0]["device"] = f"g{device}"
        own["status"]["reservedFor"] = [{"resource": "pods", "name": f"{name}-0", "uid": f"{name}-0"}]
    user = pod(f"{name}-0", name, on="n" if device is not None else "")
    user["spec"]["resourceClaims"] = [{"name": "own", "resourceClaimName": f"{name}-claim"}]
    job = group(name, "a", age=age)
    if priority:
        job["spec"]["priorityClassName"] = priority
    return [own, user, job]


def full(younger_than: int = 50) -> list[Object]:
    return [each for number in range(DEVICES) for each in claiming(f"r{number}", age=younger_than - number, device=number)]


@pytest.mark.parametrize("policy", ["kai", {"compat": "kai", "actions": "allocate, consolidation"}])
def test_a_ninth_pod_of_equal_priority_waits_for_one_of_eight_devices(policy: Any) -> None:
    """It is older than the pods that run, so a search places it before it puts them back."""
    found = cycle(*world(), *full(), *claiming("j", age=55), policy=policy)
    assert (found["evictions"], found["nominations"]) == ([], [])
    (job,) = [each for each in found["jobs"] if each["job"] == "ns/j"]
    assert "cannot allocate all claims" in job["reasons"][0]["message"]


def test_a_pod_of_higher_priority_takes_the_device_of_one_pod() -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 75}
    found = cycle(*world(), *full(), high, *claiming("j", age=55), *claiming("k", age=1, priority="high"))
    assert [each["pod"] for each in found["nominations"]] == ["ns/k-0"]
    assert [each["for"] for each in found["evictions"]] == ["ns/k"]


def test_a_pod_moves_to_another_device_of_its_node_for_one_that_needs_its_own() -> None:
    running = claiming("r", age=50, device=0)
    found = cycle(*world("big", "small"), *running, *claiming("j", age=55, model="big"))
    assert [each["pod"] for each in found["evictions"]] == ["ns/r-0"]
    assert {each["pod"] for each in found["nominations"]} == {"ns/j-0", "ns/r-0"}


def test_pods_that_share_a_claim_keep_it_together() -> None:
    """A search evicts both. The first that returns takes their device back, although the other has not returned."""
    shared = claiming("r", age=50, device=0)
    shared[2]["spec"]["minMember"] = 2
    second = {**shared[1], "metadata": {**shared[1]["metadata"], "name": "r-1", "uid": "r-1"}}
    shared[0]["status"]["reservedFor"].append({"resource": "pods", "name": "r-1", "uid": "r-1"})
    found = cycle(*world("m"), *shared, second, *claiming("j", age=10))
    assert (found["evictions"], found["nominations"]) == ([], [])


@pytest.mark.parametrize("seed", range(40))
def test_no_device_is_promised_twice(seed: int) -> None:
    draw = random.Random(seed)
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("low", 50), ("high", 75))
    ]
    models = [draw.choice(("big", "small")) for _ in range(draw.randint(1, 5))]
    objects = [*world(*models), *classes]
    running = [number for number in range(len(models)) if draw.random() < 0.8]
    for number in running:
        objects += claiming(f"r{number}", draw.randint(1, 58), number, draw.choice(("low", "high")))
    for number in range(draw.randint(1, 4)):
        objects += claiming(f"j{number}", draw.randint(1, 58), None, draw.choice(("low", "high")), draw.choice(("", "big", "small")))
    found = cycle(*objects)
    stay = len(running) - len(found["evictions"])
    assert stay + len(found["binds"]) + len(found["nominations"]) <= len(models)
