"""Device classes, slices, claims and the pods that use them."""

from __future__ import annotations

from typing import Any

from navarch.testing.builders import pod

RESOURCE = "resource.k8s.io/v1"


Object = dict[str, Any]


def device_class(name: str = "gpu", expression: str = 'device.driver == "d"') -> Object:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": RESOURCE, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def slice_of(node_name: str, *models: str, generation: int = 1, slices: int = 1) -> Object:
    devices = [{"name": f"g{i}", "attributes": {"model": {"string": model}}} for i, model in enumerate(models)]
    pool = {"name": node_name, "generation": generation, "resourceSliceCount": slices}
    spec = {"driver": "d", "nodeName": node_name, "pool": pool, "devices": devices}
    return {"apiVersion": RESOURCE, "kind": "ResourceSlice", "metadata": {"name": f"{node_name}-{generation}"}, "spec": spec}


def claim(name: str, *requests: Object, constraints: tuple[Object, ...] = (), allocated: str = "") -> Object:
    devices: Object = {"requests": list(requests), "constraints": list(constraints)}
    found: Object = {"apiVersion": RESOURCE, "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}}
    found["spec"] = {"devices": devices}
    if allocated:
        result = {"request": "r", "driver": "d", "pool": allocated, "device": "g0"}
        names = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [allocated]}]}
        found["status"] = {"allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [names]}}}
    return found


def exactly(count: int = 1, name: str = "r", **more: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "gpu", "count": count, **more}}


def user(name: str, *claims: str) -> Object:
    made = pod(name)
    made["spec"]["resourceClaims"] = [{"name": f"c{i}", "resourceClaimName": each} for i, each in enumerate(claims)]
    return made
