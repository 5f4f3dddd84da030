"""Objects that plugins read as they are, held to their types before a plugin sees them."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.apis.core.kept_objects import check
from navarch.apis.errors import ObjectError


def slice_of(**device: Any) -> dict[str, Any]:
    return {"driver": "d", "nodeName": "n", "pool": {"name": "p"}, "devices": [{"name": "a", **device}]}


@pytest.mark.parametrize(
    ("kind", "fields", "path", "found"),
    [
        ("Service", {"spec": {"selector": {"app": {}}}}, "spec.selector[app]", "{}"),
        ("StatefulSet", {"spec": {"selector": {"matchLabels": {"app": 1}}}}, "spec.selector.matchLabels[app]", "1"),
        ("ResourceSlice", {"spec": slice_of(attributes={"m": "x"})}, "spec.devices[0].attributes[m]", "'x'"),
        ("ResourceSlice", {"spec": slice_of(attributes={"m": {}})}, "spec.devices[0].attributes[m]", "nothing"),
        ("ResourceSlice", {"spec": slice_of(capacity={"m": {"value": "lots"}})}, "spec.devices[0].capacity[m]", "'lots'"),
        ("ResourceSlice", {"spec": slice_of(capacity={"m": {}})}, "spec.devices[0].capacity[m]", "nothing"),
        ("DeviceClass", {"spec": {"selectors": [{"cel": {"expression": 1}}]}}, "spec.selectors[0].cel.expression", "1"),
        ("ResourceClaim", {"spec": {"devices": {"requests": [{"count": "x"}]}}}, "spec.devices.requests[0].count", "'x'"),
        ("CSINode", {"spec": {"drivers": [{"name": {}}]}}, "spec.drivers[0].name", "{}"),
        ("StorageClass", {"provisioner": []}, "provisioner", "[]"),
        ("PersistentVolumeClaim", {"spec": {"accessModes": "ReadWriteOnce"}}, "spec.accessModes", "'ReadWriteOnce'"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(kind: str, fields: dict[str, Any], path: str, found: str) -> None:
    with pytest.raises(ObjectError) as caught:
        check({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, **fields}, kind)
    assert (caught.value.kind, caught.value.name, caught.value.path, caught.value.found) == (kind, "x", path, found)


def test_valid_objects_of_either_version_pass() -> None:
    new = slice_of(attributes={"m": {"int": 80}, "f": {"bool": True}}, capacity={"memory": {"value": "80Gi"}})
    old = slice_of(basic={"attributes": {"m": {"string": "a"}}, "capacity": {"memory": "80Gi"}})
    for spec in (new, old):
        check({"kind": "ResourceSlice", "metadata": {"name": "x"}, "spec": spec}, "ResourceSlice")
    check({"kind": "Other", "metadata": {"name": "x"}, "spec": 1}, "Other")
