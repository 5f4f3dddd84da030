"""NUMA zones and CPUs of nodes, as kubelets and exporters report them."""

from __future__ import annotations

from navarch.model.spec import Requests, Spec


class NumaZoneSpec(Spec, frozen=True):
    name: str
    number: int
    allocatable: Requests = ()
    available: Requests = ()


class NodeNumaSpec(Spec, frozen=True):
    """How a node's kubelet aligns resources: `policy` is none, best-effort, restricted or single-numa-node, `scope` pod or
    container."""

    node: str
    policy: str = "none"
    scope: str = "container"
    zones: tuple[NumaZoneSpec, ...] = ()


class CpuSpec(Spec, frozen=True, order=True):
    """One CPU of a node: its number, and the numbers of its NUMA zone, socket and core."""

    number: int
    zone: int
    socket: int
    core: int


class CpuTopologySpec(Spec, frozen=True):
    """The CPUs of a node and how its kubelet gives them out. `free`: bits of the CPUs that no pod has to itself (`cpu_sets`); None:
    not reported. `reserved`: how many CPUs the kubelet keeps. `assigned`: UIDs, and namespace and name, of the pods that are reported
    with their CPUs."""

    node: str
    cpu_manager: str = ""
    topology_manager: str = ""
    cpus: tuple[CpuSpec, ...] = ()
    free: int | None = None
    reserved: int = 0
    assigned: frozenset[str] = frozenset()
