"""scheduler_perf's workloads with claims on devices, for `python -m bench.predicates --only claims`.

A template makes a claim of its own for each pod. Where slices have a node selector, as in the workloads for shared and partitioned
devices, every node reaches every device of the cluster.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from bench.load import PLAIN, Load
from navarch.model.resources import requests_from

DRIVER = "test-driver.cdi.k8s.io"
Object = dict[str, Any]
IN_REACH = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]}}


def _class(load: Load, name: str, *, resource: str = "", driver: str = DRIVER) -> None:
    spec: Object = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
    if resource:
        spec["extendedResourceName"] = resource
    load.cluster.put_object("DeviceClass", "", name, {"metadata": {"name": name}, "spec": spec})


def _slices(load: Load, name: str, place: Object, *parts: Object) -> None:
    pool = {"name": name, "generation": 1, "resourceSliceCount": len(parts)}
    for number, part in enumerate(parts):
        spec = {"driver": DRIVER, "pool": pool, **place, **part}
        load.cluster.put_object("ResourceSlice", "", f"{name}-{number}", {"metadata": {"name": f"{name}-{number}"}, "spec": spec})


def _own_devices(load: Load, count: int) -> None:
    """Of each node."""
    for name in load.names:
        _slices(load, name, {"nodeName": name}, {"devices": [{"name": f"instance-{i}"} for i in range(count)]})


def _claim(load: Load, name: str, requests: list[Object], allocated: Object | None = None) -> None:
    claim: Object = {"metadata": {"namespace": "ns", "name": name}, "spec": {"devices": {"requests": requests}}}
    if allocated is not None:
        claim["status"] = {"allocation": {"devices": {"results": [{"request": "req-0", "driver": DRIVER, **allocated}]}}}
    load.cluster.put_object("ResourceClaim", "ns", name, claim)


def _pods(load: Load, count: int, requests: list[Object], share: int = 1) -> Load:
    """`share` pods use one claim."""
    for number in range(count):
        name = f"claim-{number // share:05d}"
        if number % share == 0:
            _claim(load, name, requests)
        load.pods(1, replace(PLAIN, namespace="ns", claims=(("resource", name),)))
    return load


ONE = [{"name": "req-0", "exactly": {"deviceClassName": "test-class"}}]
FIRST = [
    {
        "name": "req-0",
        "firstAvailable": [{"name": "sub-0", "deviceClassName": "no-devices"}, {"name": "sub-1", "deviceClassName": "test-class"}],
    }
]


def _half_full(nodes: int, per_node: int) -> Load:
    """Every node has half of its devices in use."""
    load = Load(nodes)
    _class(load, "test-class")
    _class(load, "no-devices", driver="no-driver")
    _own_devices(load, per_node)
    for name in load.names:
        for number in range(per_node // 2):
            _claim(load, f"held-{name}-{number}", ONE, {"pool": name, "device": f"instance-{number}"})
    return load


def from_template(nodes: int, pods: int) -> Load:
    return _pods(_half_full(nodes, 10), pods, ONE)


def first_available(nodes: int, pods: int) -> Load:
    return _pods(_half_full(nodes, 10), pods, FIRST)


def shared_by_five(nodes: int, pods: int) -> Load:
    return _pods(_half_full(nodes, 2), pods, ONE, share=5)


def consumable(nodes: int, pods: int) -> Load:
    load = Load(nodes)
    _class(load, "test-class")
    memory = {"value": "80Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi"}}}
    device = {"name": "shareable-device", "allowMultipleAllocations": True, "capacity": {"memory": memory}}
    for number in range(pods):
        _slices(load, f"resourceslice-{number}", IN_REACH, {"devices": [device]})
    asks = {"deviceClassName": "test-class", "capacity": {"requests": {"memory": "40Gi"}}}
    return _pods(load, pods, [{"name": f"req-{number}", "exactly": asks} for number in range(2)])


def partitionable(nodes: int, pods: int) -> Load:
    """Devices of two counters and of one; one device of each pool is in use, and each pod needs two that fit beside it."""
    load = Load(nodes)
    _class(load, "test-class")
    counters = {f"counter{number}": {"value": "1"} for number in range(1, 5)}
    for number in range(pods):
        devices = [_part("device-2-counters-1", 1, 2), _part("device-2-counters-2", 3, 4)]
        devices += [_part(f"device-1-counter-{each}", each) for each in range(1, 5)]
        name = f"resourceslice-{number}"
        _slices(load, name, IN_REACH, {"devices": devices}, {"sharedCounters": [{"name": "counter-set", "counters": counters}]})
        _claim(load, f"held-{number}", ONE, {"pool": name, "device": "device-2-counters-1"})
    single = {"cel": {"expression": f'device.capacity["{DRIVER}"].counters.compareTo(quantity("1")) == 0'}}
    return _pods(load, pods, [{"name": "req-0", "exactly": {"deviceClassName": "test-class", "count": 2, "selectors": [single]}}])


def _part(name: str, *numbers: int) -> Object:
    used = {f"counter{number}": {"value": "1"} for number in numbers}
    capacity = {"counters": {"value": str(len(numbers))}}
    return {"name": name, "capacity": capacity, "consumesCounters": [{"counterSet": "counter-set", "counters": used}]}


def extended(nodes: int, pods: int) -> Load:
    """Twenty-five classes, each behind an extended resource of its own."""
    load = _half_full(nodes, 10)
    for number in range(25):
        _class(load, f"class-{number}", resource=f"foo.com/bar-{number}")
    for number in range(pods):
        resource = f"foo.com/bar-{number % 25}"
        amounts = requests_from({"cpu": "100m", "memory": "500Mi", resource: "1"})
        load.pods(1, replace(PLAIN, requests=amounts, extended=((resource, (("container-0-request-1", 1),)),)))
    return load
