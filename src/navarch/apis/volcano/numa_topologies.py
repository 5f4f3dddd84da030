"""Volcano's Numatopology (nodeinfo.volcano.sh): the NUMA zones, sockets and cores of one node's CPUs, and which CPUs are free.

Its exporter on the node writes the object, which has the name of the node.
"""

from __future__ import annotations

from typing import Final

from navarch.apis.core.amounts import amounts
from navarch.apis.core.objects import Int32, KubeObject, Part, ResourceList
from navarch.apis.dialect import Kind, Settings
from navarch.apis.errors import ObjectError
from navarch.model.cpu_sets import MOST_CPUS, read_cpu_list
from navarch.model.objects.numa import CpuSpec, CpuTopologySpec
from navarch.model.spec import ObjectSpec

VERSIONS: Final = ("nodeinfo.volcano.sh/v1alpha1",)
KIND: Final = "Numatopology"


class ResourceInfo(Part, frozen=True):
    allocatable: str | None = None


class CpuInfo(Part, frozen=True):
    numa: Int32 = 0
    socket: Int32 = 0
    core: Int32 = 0


class PodAllocation(Part, frozen=True):
    uid: str | None = None
    name: str | None = None
    namespace: str | None = None


class NumatopologyPart(Part, frozen=True):
    policies: dict[str, str] | None = None
    res_reserved: ResourceList | None = None
    numares: dict[str, ResourceInfo] | None = None
    cpu_detail: dict[str, CpuInfo] | None = None
    pod_allocations: tuple[PodAllocation, ...] | None = None


class Numatopology(KubeObject, frozen=True):
    spec: NumatopologyPart = NumatopologyPart()


def read_numatopology(found: Numatopology, settings: Settings) -> ObjectSpec:
    name, spec = found.metadata.name, found.spec
    policies = spec.policies or {}
    cpu = (spec.numares or {}).get("cpu")
    value = CpuTopologySpec(
        node=name,
        cpu_manager=policies.get("CPUManagerPolicy", ""),
        topology_manager=policies.get("TopologyManagerPolicy", ""),
        cpus=tuple(sorted(_cpu(name, number, place) for number, place in (spec.cpu_detail or {}).items())),
        free=None if cpu is None else _free(name, cpu.allocatable or ""),
        reserved=-(-dict(amounts(spec.res_reserved, KIND, name, "spec.resReserved")).get("cpu", 0) // 1000),
        assigned=frozenset(
            key for pod in spec.pod_allocations or () for key in (pod.uid or "", f"{pod.namespace or ''}/{pod.name or ''}")
        ),
    )
    return ObjectSpec(KIND, "", name, value)


def _cpu(name: str, number: str, place: CpuInfo) -> CpuSpec:
    path = f"spec.cpuDetail[{number}]"
    if not number.isdecimal() or len(number) > 5 or int(number) >= MOST_CPUS:
        raise ObjectError(KIND, name, path, repr(number), f"a CPU number below {MOST_CPUS}")
    for field, value in (("numa", place.numa), ("socket", place.socket), ("core", place.core)):
        if not 0 <= value < MOST_CPUS:
            raise ObjectError(KIND, name, f"{path}.{field}", str(value), f"a number from 0 to {MOST_CPUS - 1}")
    return CpuSpec(int(number), place.numa, place.socket, place.core)


def _free(name: str, text: str) -> int:
    try:
        return read_cpu_list(text)
    except ValueError as error:
        expected = f"a list of CPUs such as 0-3,8 ({error})"
        raise ObjectError(KIND, name, "spec.numares[cpu].allocatable", repr(text[:60]), expected) from None


NUMA_KINDS: Final = (Kind(VERSIONS, KIND, "numatopologies", Numatopology, read_numatopology, namespaced=False),)
