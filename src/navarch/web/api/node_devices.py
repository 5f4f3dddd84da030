"""The devices and NUMA zones of one node, with the pods that have them.

Devices that a device plugin counts are numbered: which of several whole devices a pod has is the kubelet's choice. Devices of drivers
(ResourceSlices) have names, and claims say which pod has which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from navarch.model.cluster import Cluster
from navarch.model.gpus import GPU_MEMORY_LABEL, GPU_RESOURCES, gpu_memory
from navarch.model.objects.devices import (
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    AllocatedDevice,
    DeviceId,
    DeviceSpec,
    ResourceClaimSpec,
    ResourceSliceSpec,
    read_resource_claim,
    read_slice,
)
from navarch.model.objects.numa import CpuTopologySpec, NodeNumaSpec
from navarch.model.selectors import node_selector_matches
from navarch.model.spec import NodeSpec, TaskSpec
from navarch.web.security.viewer import Viewer
from navarch.web.tables.amounts import numbers_of

_ABOUT: Final = ("productName", "model", "type")
"""Attributes that say what a device is, without their domain."""


def counted_devices(spec: NodeSpec, pods: Sequence[TaskSpec], viewer: Viewer) -> list[dict[str, Any]]:
    """One entry a device of the node's GPU resource: shared ones, whole ones in the order of the pods' names, free ones."""
    has = dict(spec.allocatable)
    resource = next((name for name in GPU_RESOURCES if has.get(name)), "")
    count = has.get(resource, 0) // 1000
    memory = gpu_memory(spec) if GPU_MEMORY_LABEL in spec.labels else None
    if not resource:
        return []
    shared: dict[str, list[TaskSpec]] = {}
    for task in pods:
        for group in task.gpu_groups:
            shared.setdefault(group, []).append(task)
    found = [
        _entry(resource, str(number), "shared", [_part(task, viewer, memory) for task in sharing], memory)
        for number, (_, sharing) in enumerate(sorted(shared.items()))  # the group's own name is generated
    ]
    whole = [task for task in pods for _ in range(dict(task.shape.requests).get(resource, 0) // 1000) if not task.gpu_groups]
    for task in whole:
        pod = {"pod": task.key if viewer.sees(task.namespace) else None, "part": 1}
        found.append(_entry(resource, str(len(found)), "whole", [pod], memory))
    while len(found) < count:
        found.append(_entry(resource, str(len(found)), "free", [], memory))
    return found


def _entry(resource: str, name: str, use: str, pods: list[dict[str, Any]], memory: int | None = None, **more: Any) -> dict[str, Any]:
    return {"resource": resource, "name": name, "use": use, "memory": memory, "pods": pods, **more}


def _part(task: TaskSpec, viewer: Viewer, memory: int | None) -> dict[str, Any]:
    asked = task.shape.devices
    part: float | None = None
    if asked is not None and asked.fraction:
        part = asked.fraction / 1000
    elif asked is not None and asked.memory and memory:
        part = round(asked.memory / memory, 3)
    return {"pod": task.key if viewer.sees(task.namespace) else None, "part": part}


def driver_devices(cluster: Cluster, spec: NodeSpec, pods: Sequence[TaskSpec], viewer: Viewer) -> list[dict[str, Any]]:
    """One entry a device that a driver publishes for this node alone, by driver, pool and name. A claim that no pod of the node uses
    holds its devices too."""
    slices = [read_slice(each) for each in cluster.objects.get(RESOURCE_SLICE, {}).values()]
    here = [(slice_, device) for slice_ in _newest(slices) for device in slice_.devices if _is_here(slice_, device, spec)]
    if not here:
        return []
    holders: dict[DeviceId, list[tuple[ResourceClaimSpec, AllocatedDevice]]] = {}
    wanted = {(slice_.driver, slice_.pool, device.name) for slice_, device in here}
    for manifest in cluster.objects.get(RESOURCE_CLAIM, {}).values():
        claim = read_resource_claim(manifest)
        for device in claim.allocation.devices if claim.allocation is not None else ():
            if device.id in wanted and not device.admin_access:
                holders.setdefault(device.id, []).append((claim, device))
    by_uid = {task.uid: task for task in pods}
    found = []
    for slice_, each in sorted(here, key=lambda pair: (pair[0].driver, pair[0].pool, pair[1].name)):
        held = holders.get((slice_.driver, slice_.pool, each.name), [])
        users = [by_uid[uid] for claim, _ in held for uid in claim.reserved_for if uid in by_uid]
        shown = [{"pod": task.key if viewer.sees(task.namespace) else None, "part": None if each.shared else 1} for task in users]
        claims = [f"{claim.namespace}/{claim.name}" if viewer.sees(claim.namespace) else None for claim, _ in held]
        use = "free" if not held else "shared" if each.shared else "whole" if users else "held"
        found.append(_entry(slice_.driver, each.name, use, shown, pool=slice_.pool, claims=claims, about=_about(each.manifest)))
    return found


def _newest(slices: Iterable[ResourceSliceSpec]) -> list[ResourceSliceSpec]:
    """Slices of the newest generation of each pool."""
    newest: dict[tuple[str, str], int] = {}
    found = list(slices)
    for slice_ in found:
        pool = slice_.driver, slice_.pool
        newest[pool] = max(newest.get(pool, 0), slice_.generation)
    return [slice_ for slice_ in found if slice_.generation == newest[slice_.driver, slice_.pool]]


def _is_here(slice_: ResourceSliceSpec, device: DeviceSpec, node: NodeSpec) -> bool:
    """Whether the device belongs to this node. Devices that every node can reach belong to none."""
    place: DeviceSpec | ResourceSliceSpec = device if slice_.per_device else slice_
    if place.node_name:
        return place.node_name == node.name
    return place.node_selector is not None and node_selector_matches(place.node_selector, node.labels, node.name)


def _about(manifest: Mapping[str, Any]) -> str:
    """What the device is, and its capacity: `LATEST-GPU-MODEL, memory 80Gi`."""
    body = manifest.get("basic") or manifest
    attributes = {str(name).rpartition("/")[2]: value for name, value in (body.get("attributes") or {}).items()}
    names = [str(attributes[name].get("string")) for name in _ABOUT if isinstance(attributes.get(name), Mapping)]
    capacity = [
        f"{str(name).rpartition('/')[2]} {value.get('value') if isinstance(value, Mapping) else value}"
        for name, value in sorted((body.get("capacity") or {}).items())
    ]
    return ", ".join([*[name for name in names if name != "None"][:1], *capacity[:2]])


def numa_zones(cluster: Cluster, name: str, pods: Sequence[TaskSpec]) -> list[dict[str, Any]] | None:
    """None: the cluster does not tell them. NodeResourceTopology has all resources of a zone, Volcano's Numatopology its CPUs."""
    found = cluster.objects.get("NodeResourceTopology", {}).get(("", name))
    if isinstance(found, NodeNumaSpec):
        return _zones(found, pods)
    cpus = cluster.objects.get("Numatopology", {}).get(("", name))
    return _cpu_zones(cpus) if isinstance(cpus, CpuTopologySpec) else None


def _zones(found: NodeNumaSpec, pods: Sequence[TaskSpec]) -> list[dict[str, Any]]:
    held: dict[str, dict[str, int]] = {}
    for task in pods:
        for place, amounts in task.numa_placement:
            for resource, amount in amounts:
                of_zone = held.setdefault(place, {})
                of_zone[resource] = of_zone.get(resource, 0) + amount
    zones = []
    for zone in found.zones:
        reported = {name: has - dict(zone.available).get(name, has) for name, has in zone.allocatable}
        used = held.get(zone.name) or reported
        zones.append({"name": zone.name, "allocatable": numbers_of(zone.allocatable), "used": numbers_of(tuple(sorted(used.items())))})
    return zones


def _cpu_zones(found: CpuTopologySpec) -> list[dict[str, Any]]:
    """CPUs that pods have to themselves count as used."""
    zones: dict[int, list[int]] = {}
    for cpu in found.cpus:
        zones.setdefault(cpu.zone, []).append(cpu.number)
    return [
        {
            "name": f"node-{zone}",
            "allocatable": {"cpu": len(numbers)},
            "used": {"cpu": 0 if found.free is None else sum(not found.free >> number & 1 for number in numbers)},
        }
        for zone, numbers in sorted(zones.items())
    ]
