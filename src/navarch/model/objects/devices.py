"""Dynamic resources: devices that drivers publish, classes of them, and claims on them, as values of the model.

A cluster keeps ResourceSlices, DeviceClasses, ResourceClaims and DeviceTaintRules as decoded manifests. Attributes and capacities of a
device stay as the API has them: only device selectors read them. Amounts (capacities and counters) are whole billionths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from navarch.model.objects.extended_claims import EXTENDED_CLAIM
from navarch.model.objects.typed import of_kind
from navarch.model.quantity import format_nano, parse_nano
from navarch.model.selectors import read_node_selector, read_taint, read_toleration
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NodeTerm, Taint, Toleration
from navarch.object_types import ObjectKey

DEVICE_CLASS, RESOURCE_SLICE, RESOURCE_CLAIM = "DeviceClass", "ResourceSlice", "ResourceClaim"
DEVICE_TAINT_RULE = "DeviceTaintRule"
DeviceId = tuple[str, str, str]
"""(driver, pool, device name): what makes a device unique in a cluster."""


Amounts = tuple[tuple[str, int], ...]
"""(name, amount), in the order of names."""


class RequestPolicy(Struct, frozen=True):
    """Which amounts of a capacity one request may consume. An amount that is not valid is raised to the next valid one."""

    default: int | None = None
    values: tuple[int, ...] = ()
    """Ascending."""
    least: int | None = None
    most: int | None = None
    step: int | None = None


class Capacity(Struct, frozen=True):
    name: str
    amount: int
    policy: RequestPolicy | None = None


class CounterSet(Struct, frozen=True):
    """Of a slice: how much there is of each counter. Of a device: how much of it the device consumes."""

    name: str
    counters: Amounts


class DeviceSpec(Struct, frozen=True, eq=False):
    name: str
    manifest: Mapping[str, Any]
    """Attributes and capacity, for selectors."""
    taints: tuple[Taint, ...] = ()
    node_name: str = ""
    all_nodes: bool = False
    node_selector: tuple[NodeTerm, ...] | None = None
    capacity: tuple[Capacity, ...] = ()
    shared: bool = False
    """Several claims may have the device at once; each consumes part of its capacity."""
    consumes: tuple[CounterSet, ...] = ()
    """What the device takes from the counters of its pool while a claim has it."""
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    """The pod is bound once the driver has set all of them on the allocated device."""
    binding_failure_conditions: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    """Features of the device that are not modelled; it is never allocated."""


class ResourceSliceSpec(Struct, frozen=True, eq=False):
    """Devices of one pool; a pool is complete once all its slices of the newest generation are known."""

    name: str
    driver: str
    pool: str
    generation: int = 0
    slice_count: int = 1
    node_name: str = ""
    all_nodes: bool = False
    node_selector: tuple[NodeTerm, ...] | None = None
    per_device: bool = False
    """Each device says by itself where it can be reached."""
    devices: tuple[DeviceSpec, ...] = ()
    counters: tuple[CounterSet, ...] = ()
    """A slice has devices or counters of its pool, never both."""


class DeviceClassSpec(Struct, frozen=True):
    name: str
    selectors: tuple[str, ...] = ()
    extended_resource: str = ""
    """Pods may ask for the class by this resource name instead of a claim."""
    created: str = ""
    """When, as the API writes it."""


class DeviceTaintRuleSpec(Struct, frozen=True):
    """A taint that an administrator puts on devices. Empty: every driver, pool, device or class."""

    name: str
    taint: Taint
    driver: str = ""
    pool: str = ""
    device: str = ""
    device_class: str = ""
    selectors: tuple[str, ...] = ()

    def names(self, device: DeviceId) -> bool:
        """Whether driver, pool and name are those of the rule."""
        return all(not wanted or wanted == found for wanted, found in zip((self.driver, self.pool, self.device), device))


class DeviceDemand(Struct, frozen=True):
    """One request of a claim. `alternatives`: the first that can be satisfied is taken, and nothing else here counts."""

    name: str
    device_class: str = ""
    selectors: tuple[str, ...] = ()
    all_devices: bool = False
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity: Amounts = ()
    """Capacity of each device that the request consumes."""
    alternatives: tuple[DeviceDemand, ...] = ()
    unsupported: tuple[str, ...] = ()


class DeviceConstraint(Struct, frozen=True):
    """All devices of these requests (none named: of all) agree in an attribute, or all differ in it."""

    requests: tuple[str, ...]
    attribute: str
    distinct: bool = False


class AllocatedDevice(Struct, frozen=True):
    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool = False
    shared: bool = False
    """Other claims may have the device as well."""
    share: str = ""
    """The id that the API gives a share of a device; empty until it is written."""
    consumed: tuple[tuple[str, str], ...] = ()
    """Capacity that this share consumes, as quantities."""
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()

    @property
    def id(self) -> DeviceId:
        return self.driver, self.pool, self.device


class Allocation(Struct, frozen=True):
    devices: tuple[AllocatedDevice, ...]
    node_selector: tuple[NodeTerm, ...] | None = None
    """Where the devices can be reached; None: everywhere."""


class ResourceClaimSpec(Struct, frozen=True):
    namespace: str
    name: str
    uid: str = ""
    requests: tuple[DeviceDemand, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    allocation: Allocation | None = None
    reserved_for: tuple[str, ...] = ()
    """UIDs of the pods that use it."""
    deleting: bool = False
    owner: tuple[str, str, str] | None = None
    extended: bool = False
    """A scheduler made it for the extended resources of its owner, a pod."""


def _selectors(entries: Any) -> tuple[str, ...]:
    return tuple((entry.get("cel") or {}).get("expression") or "" for entry in entries or ())


def _amounts(entries: Mapping[str, Any] | None) -> Amounts:
    """Each entry is a quantity, or has it under `value`."""
    found = ((name, parse_nano(entry["value"] if isinstance(entry, Mapping) else entry)) for name, entry in (entries or {}).items())
    return tuple(sorted(found))


def _counter_sets(entries: Any, name: str) -> tuple[CounterSet, ...]:
    return tuple(CounterSet(each.get(name) or "", _amounts(each.get("counters"))) for each in entries or ())


def _optional(entry: Any) -> int | None:
    return None if entry is None else parse_nano(entry)


def _policy(manifest: Mapping[str, Any] | None) -> RequestPolicy | None:
    if not manifest:
        return None
    valid = manifest.get("validRange") or {}
    return RequestPolicy(
        default=_optional(manifest.get("default")),
        values=tuple(sorted(parse_nano(value) for value in manifest.get("validValues") or ())),
        least=_optional(valid.get("min")),
        most=_optional(valid.get("max")),
        step=_optional(valid.get("step")),
    )


def _capacity(name: str, entry: Any) -> Capacity:
    if not isinstance(entry, Mapping):
        return Capacity(name, parse_nano(entry))
    return Capacity(name, parse_nano(entry["value"]), _policy(entry.get("requestPolicy")))


_UNSUPPORTED = ("nodeAllocatableResourceMappings", "nodeAllocatableResources")
"""Fields of a device whose rules are not modelled. Kubernetes has them behind feature gates that are off by default."""


def read_device(manifest: Mapping[str, Any], of_slice: tuple[str, ...] = ()) -> DeviceSpec:
    """`of_slice`: fields of its slice whose rules are not modelled."""
    body = manifest.get("basic") or manifest
    grouped = any(each.get("compatibilityGroups") for each in body.get("consumesCounters") or ())
    return DeviceSpec(
        name=manifest.get("name") or "",
        manifest=manifest,
        taints=tuple(read_taint(taint) for taint in body.get("taints") or ()),
        node_name=body.get("nodeName") or "",
        all_nodes=bool(body.get("allNodes")),
        node_selector=read_node_selector(body.get("nodeSelector")),
        capacity=tuple(_capacity(name, entry) for name, entry in sorted((body.get("capacity") or {}).items())),
        shared=bool(body.get("allowMultipleAllocations")),
        consumes=_counter_sets(body.get("consumesCounters"), "counterSet"),
        binds_to_node=bool(body.get("bindsToNode")),
        binding_conditions=tuple(body.get("bindingConditions") or ()),
        binding_failure_conditions=tuple(body.get("bindingFailureConditions") or ()),
        unsupported=(*of_slice, *(name for name in _UNSUPPORTED if body.get(name)), *(("compatibilityGroups",) if grouped else ())),
    )


def read_slice(manifest: Mapping[str, Any]) -> ResourceSliceSpec:
    spec = manifest.get("spec") or {}
    pool = spec.get("pool") or {}
    unsupported = ("skipNodeOperations",) if spec.get("skipNodeOperations") else ()
    return ResourceSliceSpec(
        name=manifest["metadata"]["name"],
        driver=spec.get("driver") or "",
        pool=pool.get("name") or "",
        generation=int(pool.get("generation") or 0),
        slice_count=int(pool.get("resourceSliceCount") or 1),
        node_name=spec.get("nodeName") or "",
        all_nodes=bool(spec.get("allNodes")),
        node_selector=read_node_selector(spec.get("nodeSelector")),
        per_device=bool(spec.get("perDeviceNodeSelection")),
        devices=tuple(read_device(device, unsupported) for device in spec.get("devices") or ()),
        counters=_counter_sets(spec.get("sharedCounters"), "name"),
    )


def read_device_class(manifest: Mapping[str, Any]) -> DeviceClassSpec:
    spec = manifest.get("spec") or {}
    resource = spec.get("extendedResourceName") or ""
    metadata = manifest["metadata"]
    return DeviceClassSpec(metadata["name"], _selectors(spec.get("selectors")), resource, str(metadata.get("creationTimestamp") or ""))


def read_taint_rule(manifest: Mapping[str, Any]) -> DeviceTaintRuleSpec:
    spec = manifest.get("spec") or {}
    chosen = spec.get("deviceSelector") or {}
    return DeviceTaintRuleSpec(
        name=manifest["metadata"]["name"],
        taint=read_taint(spec.get("taint") or {}),
        driver=chosen.get("driver") or "",
        pool=chosen.get("pool") or "",
        device=chosen.get("device") or "",
        device_class=chosen.get("deviceClassName") or "",
        selectors=_selectors(chosen.get("selectors")),
    )


def read_demand(manifest: Mapping[str, Any]) -> DeviceDemand:
    """v1 puts a plain request under `exactly`; v1beta1 has its fields in the request itself."""
    body = manifest.get("exactly") or manifest
    mode = body.get("allocationMode") or "ExactCount"
    unsupported = [] if mode in ("ExactCount", "All") else [f"allocationMode {mode}"]
    if body.get("derivedAttributes"):
        unsupported.append("derivedAttributes")
    return DeviceDemand(
        name=manifest.get("name") or "",
        device_class=body.get("deviceClassName") or "",
        selectors=_selectors(body.get("selectors")),
        all_devices=mode == "All",
        count=int(body.get("count") or 1),
        admin_access=bool(body.get("adminAccess")),
        tolerations=tuple(read_toleration(each) for each in body.get("tolerations") or ()),
        capacity=_amounts((body.get("capacity") or {}).get("requests")),
        alternatives=tuple(read_demand(each) for each in manifest.get("firstAvailable") or ()),
        unsupported=tuple(unsupported),
    )


def read_allocation(manifest: Mapping[str, Any]) -> Allocation:
    results = (manifest.get("devices") or {}).get("results") or ()
    devices = tuple(
        AllocatedDevice(
            each.get("request") or "",
            each.get("driver") or "",
            each.get("pool") or "",
            each.get("device") or "",
            bool(each.get("adminAccess")),
            each.get("shareID") is not None,
            each.get("shareID") or "",
            tuple((name, format_nano(amount)) for name, amount in _amounts(each.get("consumedCapacity"))),
            tuple(each.get("bindingConditions") or ()),
            tuple(each.get("bindingFailureConditions") or ()),
        )
        for each in results
    )
    return Allocation(devices, read_node_selector(manifest.get("nodeSelector")))


def read_resource_claim(manifest: Mapping[str, Any]) -> ResourceClaimSpec:
    meta, status = manifest["metadata"], manifest.get("status") or {}
    devices = (manifest.get("spec") or {}).get("devices") or {}
    owners = [o for o in meta.get("ownerReferences") or () if o.get("controller")]
    constraints = tuple(
        DeviceConstraint(
            tuple(each.get("requests") or ()),
            each.get("matchAttribute") or each.get("distinctAttribute") or "",
            distinct=not each.get("matchAttribute"),
        )
        for each in devices.get("constraints") or ()
    )
    allocation = status.get("allocation")
    return ResourceClaimSpec(
        namespace=meta.get("namespace") or "default",
        name=meta["name"],
        uid=meta.get("uid") or "",
        requests=tuple(read_demand(each) for each in devices.get("requests") or ()),
        constraints=constraints,
        allocation=None if allocation is None else read_allocation(allocation),
        reserved_for=tuple(each.get("uid") or "" for each in status.get("reservedFor") or ()),
        deleting=meta.get("deletionTimestamp") is not None,
        owner=(owners[0].get("kind") or "", owners[0].get("name") or "", owners[0].get("uid") or "") if owners else None,
        extended=(meta.get("annotations") or {}).get(EXTENDED_CLAIM) == "true",
    )


def device_classes(snapshot: Snapshot) -> Mapping[ObjectKey, DeviceClassSpec]:
    return of_kind(snapshot, DEVICE_CLASS, read_device_class)


def resource_slices(snapshot: Snapshot) -> Mapping[ObjectKey, ResourceSliceSpec]:
    return of_kind(snapshot, RESOURCE_SLICE, read_slice)


def device_taint_rules(snapshot: Snapshot) -> Mapping[ObjectKey, DeviceTaintRuleSpec]:
    return of_kind(snapshot, DEVICE_TAINT_RULE, read_taint_rule)


def resource_claims(snapshot: Snapshot) -> Mapping[ObjectKey, ResourceClaimSpec]:
    return of_kind(snapshot, RESOURCE_CLAIM, read_resource_claim, namespaced=True)
