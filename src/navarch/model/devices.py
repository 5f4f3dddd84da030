"""Dynamic resources: devices that drivers publish, classes of them, and claims on them, as values of the model.

Kept in a cluster's `objects` under the kinds ResourceSlice, DeviceClass and ResourceClaim. Attributes and capacities of a
device stay as the API has them: only device selectors read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from navarch.model.spec import NodeTerm, Taint, Toleration

DEVICE_CLASS, RESOURCE_SLICE, RESOURCE_CLAIM = "DeviceClass", "ResourceSlice", "ResourceClaim"
DeviceId = tuple[str, str, str]
"""(driver, pool, device name): what makes a device unique in a cluster."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceSpec:
    name: str
    manifest: Mapping[str, Any]
    """Attributes and capacity, for selectors."""
    taints: tuple[Taint, ...] = ()
    node_name: str = ""
    all_nodes: bool = False
    node_selector: tuple[NodeTerm, ...] | None = None
    unsupported: tuple[str, ...] = ()
    """Features of the device that are not modelled; it is never allocated."""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceSliceSpec:
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


@dataclass(frozen=True, slots=True)
class DeviceClassSpec:
    name: str
    selectors: tuple[str, ...] = ()
    extended_resource: str = ""
    """Pods may ask for the class by this resource name instead of a claim."""


@dataclass(frozen=True, slots=True)
class DeviceDemand:
    """One request of a claim. `alternatives`: the first that can be satisfied is taken, and nothing else here counts."""

    name: str
    device_class: str = ""
    selectors: tuple[str, ...] = ()
    all_devices: bool = False
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    alternatives: tuple[DeviceDemand, ...] = ()
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceConstraint:
    """All devices of these requests (none named: of all) agree in an attribute, or all differ in it."""

    requests: tuple[str, ...]
    attribute: str
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool = False

    @property
    def id(self) -> DeviceId:
        return self.driver, self.pool, self.device


@dataclass(frozen=True, slots=True)
class Allocation:
    devices: tuple[AllocatedDevice, ...]
    node_selector: tuple[NodeTerm, ...] | None = None
    """Where the devices can be reached; None: everywhere."""


@dataclass(frozen=True, slots=True)
class ResourceClaimSpec:
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
