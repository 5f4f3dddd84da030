"""Volcano's Numatopology objects."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.apis.core.objects import from_manifest
from navarch.apis.dialect import Settings
from navarch.apis.errors import ObjectError
from navarch.apis.volcano.numa_topologies import Numatopology, read_numatopology
from navarch.model.objects.numa import CpuSpec, CpuTopologySpec


def read(**spec: Any) -> object:
    return read_numatopology(from_manifest({"metadata": {"name": "n"}, "spec": spec}, Numatopology), Settings()).value


def test_everything_is_read() -> None:
    found = read(
        policies={"CPUManagerPolicy": "static", "TopologyManagerPolicy": "restricted"},
        numares={"cpu": {"allocatable": "0-1", "capacity": 3}},
        cpuDetail={"10": {"numa": 1, "socket": 1, "core": 5}, "2": {"numa": 0, "socket": 0, "core": 1}},
        resReserved={"cpu": "1500m"},
        podAllocations=[{"uid": "u", "name": "p", "namespace": "ns"}],
    )
    cpus = (CpuSpec(2, 0, 0, 1), CpuSpec(10, 1, 1, 5))
    assert found == CpuTopologySpec("n", "static", "restricted", cpus, 0b11, 2, frozenset({"u", "ns/p"}))


def test_nothing_is_needed() -> None:
    assert read() == CpuTopologySpec("n")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"cpuDetail": {"x": {}}}, "spec.cpuDetail[x]"),
        ({"cpuDetail": {"99999": {}}}, "a CPU number below 4096"),
        ({"cpuDetail": {"1": {"numa": -1}}}, "spec.cpuDetail[1].numa"),
        ({"numares": {"cpu": {"allocatable": "3-1"}}}, "spec.numares[cpu].allocatable"),
        ({"resReserved": {"cpu": "many"}}, "spec.resReserved"),
    ],
)
def test_mistakes_name_their_field(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ObjectError) as error:
        read(**spec)
    assert message in str(error.value)
