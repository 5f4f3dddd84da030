"""The objects beside KAI's groups and queues: Topology, BindRequest, and the NUMA zones that nodes report.

Their specs are in `Snapshot.objects`, by kind, for the plugins that read them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from navarch.apis.core.objects import KubeObject, Part, Quantity
from navarch.apis.dialect import Kind, Settings
from navarch.apis.errors import ObjectError
from navarch.model.objects.bind_requests import BindRequestSpec
from navarch.model.objects.numa import NodeNumaSpec, NumaZoneSpec
from navarch.model.objects.topologies import LevelSpec, TopologySpec
from navarch.model.quantity import QuantityError
from navarch.model.resources import format_amount, parse_amount
from navarch.model.spec import ObjectSpec, Requests, TaskSpec
from navarch.model.status import TaskStatus

HOSTNAME: Final = "kubernetes.io/hostname"
MOST_LEVELS: Final = 16
NUMA_OBSERVED: Final = "kai.scheduler/numa-placement-observed"
NUMA_PREDICTED: Final = "kai.scheduler/numa-placement-predicted"
_POLICIES: Final = {
    "None": ("none", "container"),
    "BestEffort": ("best-effort", "container"),
    "BestEffortContainerLevel": ("best-effort", "container"),
    "BestEffortPodLevel": ("best-effort", "pod"),
    "Restricted": ("restricted", "container"),
    "RestrictedContainerLevel": ("restricted", "container"),
    "RestrictedPodLevel": ("restricted", "pod"),
    "SingleNUMANodeContainerLevel": ("single-numa-node", "container"),
    "SingleNUMANodePodLevel": ("single-numa-node", "pod"),
}
"""Values of the old field topologyPolicies -> policy and scope."""


class Level(Part, frozen=True):
    node_label: str = ""
    alias: str | None = None


class TopologyPart(Part, frozen=True):
    levels: tuple[Level, ...] | None = None


class Topology(KubeObject, frozen=True):
    spec: TopologyPart = TopologyPart()


class ReceivedGpu(Part, frozen=True):
    count: int | None = None
    portion: str | None = None


class ZoneAmount(Part, frozen=True):
    zone: str = ""
    amount: dict[str, Quantity] | None = None


class ClaimAllocation(Part, frozen=True):
    name: str = ""
    allocation: dict[str, Any] | None = None


class BindRequestPart(Part, frozen=True):
    pod_name: str = ""
    selected_node: str = ""
    received_resource_type: str | None = None
    received_gpu: ReceivedGpu | None = msgspec.field(default=None, name="receivedGPU")
    selected_gpu_groups: tuple[str, ...] | None = msgspec.field(default=None, name="selectedGPUGroups")
    resource_claim_allocations: tuple[ClaimAllocation, ...] | None = None
    predicted_numa_zones: tuple[ZoneAmount, ...] | None = msgspec.field(default=None, name="predictedNUMAZones")
    backoff_limit: int | None = None


class BindRequestStatus(Part, frozen=True):
    phase: str | None = None
    failed_attempts: int | None = None


class BindRequest(KubeObject, frozen=True):
    spec: BindRequestPart = BindRequestPart()
    status: BindRequestStatus = BindRequestStatus()


class ZoneResource(Part, frozen=True):
    name: str = ""
    capacity: Quantity = None
    allocatable: Quantity = None
    available: Quantity = None


class Zone(Part, frozen=True):
    name: str = ""
    type: str = ""
    resources: tuple[ZoneResource, ...] | None = None


class Attribute(Part, frozen=True):
    name: str = ""
    value: str = ""


class NodeResourceTopology(KubeObject, frozen=True):
    topology_policies: tuple[str, ...] | None = None
    attributes: tuple[Attribute, ...] | None = None
    zones: tuple[Zone, ...] | None = None


def read_topology(topology: Topology, settings: Settings) -> ObjectSpec:
    name = topology.metadata.name
    levels = topology.spec.levels or ()
    if not 1 <= len(levels) <= MOST_LEVELS:
        raise ObjectError("Topology", name, "spec.levels", f"{len(levels)} of them", f"1 to {MOST_LEVELS} levels")
    seen: set[str] = set()
    for i, level in enumerate(levels):
        path = f"spec.levels[{i}].nodeLabel"
        if not level.node_label or level.node_label in seen:
            raise ObjectError("Topology", name, path, repr(level.node_label), "a label that no other level has")
        if level.node_label == HOSTNAME and i < len(levels) - 1:
            raise ObjectError("Topology", name, path, repr(HOSTNAME), "this label on the last level only")
        seen.add(level.node_label)
    value = TopologySpec(name, tuple(LevelSpec(level.node_label, level.alias or "") for level in levels))
    return ObjectSpec("Topology", "", name, value)


def read_bind_request(request: BindRequest, settings: Settings) -> ObjectSpec:
    meta, spec, status = request.metadata, request.spec, request.status
    namespace = meta.namespace or "default"
    key = f"{namespace}/{meta.name}"
    if not spec.selected_node:
        raise ObjectError("BindRequest", key, "spec.selectedNode", "nothing", "the name of a node")
    gpu = spec.received_gpu or ReceivedGpu()
    value = BindRequestSpec(
        namespace=namespace,
        pod=spec.pod_name or meta.name,
        node=spec.selected_node,
        gpu_groups=spec.selected_gpu_groups or (),
        resource_type=spec.received_resource_type or "",
        gpu_count=gpu.count or 0,
        gpu_portion=gpu.portion or "",
        numa_placement=tuple(
            (zone.zone, _amounts(zone.amount or {}, "BindRequest", key, f"spec.predictedNUMAZones[{i}].amount"))
            for i, zone in enumerate(spec.predicted_numa_zones or ())
        ),
        claims=tuple((claim.name, claim.allocation) for claim in spec.resource_claim_allocations or ()),
        phase=status.phase or "",
        failed_attempts=status.failed_attempts or 0,
        backoff_limit=spec.backoff_limit,
        labels=meta.label_map,
        pod_uid=next((owner.uid or "" for owner in meta.owner_references or () if owner.kind == "Pod"), ""),
    )
    return ObjectSpec("BindRequest", namespace, value.pod, value)


def with_bind_request(task: TaskSpec, request: BindRequestSpec | None) -> TaskSpec:
    """A pending pod with a bind request is on the node that the request names. This also holds for a failed request while it exists:
    no other request can be made until it is removed.

    The request's NUMA zones count before those of an earlier prediction, and after those that the node reported."""
    if request is None or request.phase == "Succeeded" or not request.is_for(task) or task.node or task.status != TaskStatus.PENDING:
        return task
    is_observed = bool(task.annotations.get(NUMA_OBSERVED))
    return replace(
        task,
        status=TaskStatus.BINDING,
        node=request.node,
        gpu_groups=request.gpu_groups or task.gpu_groups,
        numa_placement=task.numa_placement if is_observed or not request.numa_placement else request.numa_placement,
    )


def read_numa(found: NodeResourceTopology, settings: Settings) -> ObjectSpec:
    """Zones in the order of the numbers at the ends of their names. Zones without a number come last, as listed."""
    name = found.metadata.name
    policy, scope = _POLICIES.get(found.topology_policies[0], ("none", "container")) if found.topology_policies else ("", "")
    attributes = {attribute.name: attribute.value for attribute in found.attributes or ()}
    zones = []
    for i, zone in enumerate(found.zones or ()):
        if zone.type != "Node":
            continue
        path = f"zones[{i}].resources"
        resources = zone.resources or ()
        zones.append(
            NumaZoneSpec(
                name=zone.name,
                number=_trailing_number(zone.name),
                allocatable=_amounts({r.name: r.allocatable for r in resources}, "NodeResourceTopology", name, path),
                available=_amounts({r.name: r.available for r in resources}, "NodeResourceTopology", name, path),
            )
        )
    zones.sort(key=lambda zone: (zone.number < 0, zone.number))
    value = NodeNumaSpec(
        node=name,
        policy=attributes.get("topologyManagerPolicy") or policy or "none",
        scope=attributes.get("topologyManagerScope") or scope or "container",
        zones=tuple(zones),
    )
    return ObjectSpec("NodeResourceTopology", "", name, value)


def numa_placement(text: str, kind: str, name: str, path: str) -> tuple[tuple[str, Requests], ...]:
    """The NUMA placement in a pod's annotation: a JSON list of zones, each with the amounts held there.

    >>> numa_placement('[{"zone": "zone-1", "amount": {"cpu": "3"}}]', "Pod", "p", "metadata.annotations")
    (('zone-1', (('cpu', 3000),)),)
    """
    try:
        zones = msgspec.json.decode(text, type=list[ZoneAmount])
    except msgspec.DecodeError as error:
        raise ObjectError(kind, name, path, repr(text[:60]), f"a JSON list of zone and amount ({error})") from None
    return tuple((zone.zone, _amounts(zone.amount or {}, kind, name, path)) for zone in zones)


def zone_amounts(placement: Sequence[tuple[str, Requests]]) -> list[dict[str, Any]]:
    """The NUMA placement as BindRequests and annotations of pods have it.

    >>> zone_amounts([("zone-1", (("cpu", 1500), ("memory", 1073741824), ("nvidia.com/gpu", 2000)))])
    [{'zone': 'zone-1', 'amount': {'cpu': '1500m', 'memory': '1Gi', 'nvidia.com/gpu': '2'}}]
    """
    return [{"zone": zone, "amount": {name: format_amount(name, amount) for name, amount in amounts}} for zone, amounts in placement]


def _amounts(quantities: dict[str, Quantity], kind: str, name: str, path: str) -> Requests:
    found = []
    for resource, quantity in sorted(quantities.items()):
        try:
            found.append((resource, parse_amount(resource, 0 if quantity is None else quantity)))
        except QuantityError as error:
            expected = "a quantity such as 500m, 2 or 1.5Gi"
            raise ObjectError(kind, name, f"{path}[{resource}]", repr(quantity), expected) from error
    return tuple(found)


def _trailing_number(name: str) -> int:
    match = re.search(r"(\d+)$", name)
    return int(match[1]) if match else -1


KINDS: Final = (
    Kind(("kai.scheduler/v1alpha1",), "Topology", "topologies", Topology, read_topology, namespaced=False),
    Kind(("scheduling.run.ai/v1alpha2",), "BindRequest", "bindrequests", BindRequest, read_bind_request),
    Kind(
        ("topology.node.k8s.io/v1alpha2",),
        "NodeResourceTopology",
        "noderesourcetopologies",
        NodeResourceTopology,
        read_numa,
        namespaced=False,
    ),
)
