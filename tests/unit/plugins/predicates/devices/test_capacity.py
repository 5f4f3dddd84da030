"""What a request consumes of a device that several claims share: by its request policy, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.model.objects.devices import read_demand, read_device
from navarch.model.quantity import parse_nano
from navarch.plugins.predicates.devices.capacity import consumption

RANGE = {"default": "2", "validRange": {"min": "2", "max": "9", "step": "2"}}
VALUES = {"default": "5", "validValues": ["1", "4", "8"]}


@pytest.mark.parametrize(
    ("policy", "asked", "consumed"),
    [
        (None, None, "10"),
        (None, "3", "3"),
        (None, "11", None),
        (RANGE, None, "2"),
        (RANGE, "1", "2"),
        (RANGE, "3", "4"),
        (RANGE, "2500m", "4"),
        (RANGE, "8", "8"),
        (RANGE, "9", None),
        ({"validRange": {"min": "2", "max": "7"}}, "2500m", "2500m"),
        ({"validRange": {"min": "2"}}, "7", "7"),
        (VALUES, None, "5"),
        (VALUES, "2", "4"),
        (VALUES, "9", None),
    ],
)
def test_the_policy_of_a_capacity(policy: dict[str, Any] | None, asked: str | None, consumed: str | None) -> None:
    capacity: dict[str, Any] = {"value": "10"} if policy is None else {"value": "10", "requestPolicy": policy}
    device = read_device({"name": "a", "capacity": {"memory": capacity}, "allowMultipleAllocations": True})
    demand = read_demand({"name": "r", "exactly": {"capacity": {"requests": {} if asked is None else {"memory": asked}}}})
    assert consumption(device, demand) == (None if consumed is None else (("memory", parse_nano(consumed)),))


def test_a_capacity_that_the_device_lacks() -> None:
    demand = read_demand({"name": "r", "exactly": {"capacity": {"requests": {"bandwidth": "1"}}}})
    assert consumption(read_device({"name": "a", "capacity": {"memory": "10"}}), demand) is None
    assert consumption(read_device({"name": "a"}), demand) is None
    assert consumption(read_device({"name": "a"}), read_demand({"name": "r"})) == ()
