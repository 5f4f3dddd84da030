"""ResourceSlices, DeviceClasses and ResourceClaims as the API defines them: v1, and v1beta1 where fields differ.

Plugins read them from the decoded manifest. The Structs here only check types, so that a mistake in a file is reported with its
field.
"""

from __future__ import annotations

import msgspec

from navarch.apis.core.objects import Int64, KubeObject, Part, Quantity
from navarch.apis.core.pod_objects import NodeSelector, TolerationPart


class Cel(Part, frozen=True):
    expression: str = ""


class DeviceSelector(Part, frozen=True):
    cel: Cel | None = None


class Attribute(Part, frozen=True):
    string: str | None = None
    whole: Int64 | None = msgspec.field(default=None, name="int")
    flag: bool | None = msgspec.field(default=None, name="bool")
    version: str | None = None


class CapacityRange(Part, frozen=True):
    min: Quantity = None
    max: Quantity = None
    step: Quantity = None


class CapacityPolicy(Part, frozen=True):
    default: Quantity = None
    valid_values: tuple[Quantity, ...] | None = None
    valid_range: CapacityRange | None = None


class Capacity(Part, frozen=True):
    value: Quantity = None
    request_policy: CapacityPolicy | None = None


class Counter(Part, frozen=True):
    value: Quantity = None


class CounterSetPart(Part, frozen=True):
    name: str = ""
    counters: dict[str, Counter] | None = None


class CounterUse(Part, frozen=True):
    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class DeviceTaint(Part, frozen=True):
    key: str = ""
    value: str | None = None
    effect: str = ""


class DeviceBody(Part, frozen=True):
    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, Capacity | Quantity] | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    allow_multiple_allocations: bool | None = None
    consumes_counters: tuple[CounterUse, ...] | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None


class Device(DeviceBody, frozen=True):
    name: str = ""
    basic: DeviceBody | None = None


class Pool(Part, frozen=True):
    name: str = ""
    generation: Int64 | None = None
    resource_slice_count: Int64 | None = None


class SlicePart(Part, frozen=True):
    driver: str = ""
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    pool: Pool | None = None
    devices: tuple[Device, ...] | None = None
    shared_counters: tuple[CounterSetPart, ...] | None = None


class ResourceSlice(KubeObject, frozen=True):
    spec: SlicePart | None = None


class ClassPart(Part, frozen=True):
    selectors: tuple[DeviceSelector, ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True):
    spec: ClassPart | None = None


class RuleSelector(Part, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    device_class_name: str | None = None
    selectors: tuple[DeviceSelector, ...] | None = None


class RulePart(Part, frozen=True):
    device_selector: RuleSelector | None = None
    taint: DeviceTaint | None = None


class DeviceTaintRule(KubeObject, frozen=True):
    spec: RulePart | None = None


class CapacityRequests(Part, frozen=True):
    requests: dict[str, Quantity] | None = None


class RequestBody(Part, frozen=True):
    device_class_name: str | None = None
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str | None = None
    count: Int64 | None = None
    admin_access: bool | None = None
    tolerations: tuple[TolerationPart, ...] | None = None
    capacity: CapacityRequests | None = None


class Alternative(RequestBody, frozen=True):
    name: str = ""


class Request(RequestBody, frozen=True):
    name: str = ""
    exactly: RequestBody | None = None
    first_available: tuple[Alternative, ...] | None = None


class Constraint(Part, frozen=True):
    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class Demands(Part, frozen=True):
    requests: tuple[Request, ...] | None = None
    constraints: tuple[Constraint, ...] | None = None


class ClaimPart(Part, frozen=True):
    devices: Demands | None = None


class Result(Part, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None


class Results(Part, frozen=True):
    results: tuple[Result, ...] | None = None


class AllocationPart(Part, frozen=True):
    devices: Results | None = None
    node_selector: NodeSelector | None = None


class Consumer(Part, frozen=True):
    uid: str | None = None


class ClaimStatus(Part, frozen=True):
    allocation: AllocationPart | None = None
    reserved_for: tuple[Consumer, ...] | None = None


class ResourceClaim(KubeObject, frozen=True):
    spec: ClaimPart | None = None
    status: ClaimStatus | None = None


class TemplatePart(Part, frozen=True):
    spec: ClaimPart | None = None


class ResourceClaimTemplate(KubeObject, frozen=True):
    spec: TemplatePart | None = None
