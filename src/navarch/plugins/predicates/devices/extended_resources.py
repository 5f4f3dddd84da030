"""Extended resources that stand for devices: the class behind a name, and how many such devices a node can reach.

A pod may request devices of a class as if they were an ordinary extended resource. On nodes that do not report the resource
themselves, scores count the devices in published slices instead, and the device claims check the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from navarch.engine.session import Session
from navarch.model.memo import memoised
from navarch.model.objects.devices import (
    DEVICE_CLASS,
    DeviceClassSpec,
    ResourceSliceSpec,
    device_classes,
    resource_claims,
    resource_slices,
)
from navarch.model.quantity import QuantityError
from navarch.model.resources import BoolArray, IntArray
from navarch.model.snapshot import Snapshot
from navarch.plugins.predicates.devices.cel.selector import CelError, Device
from navarch.plugins.predicates.devices.pools import Published, device_pools
from navarch.plugins.predicates.devices.selectors import SelectorFailure, Selectors
from navarch.plugins.predicates.nodes.properties import NodeProperties, node_properties

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
MILLI = 1000


def class_behind(snapshot: Snapshot, resource: str) -> DeviceClassSpec | None:
    """The device class that an extended resource name stands for. Of several the newest, then the first by name: a newer class may
    replace an older one while pods run."""
    if DEVICE_CLASS not in snapshot.objects:
        return None
    classes = device_classes(snapshot)
    if resource.startswith(CLASS_PREFIX):
        return classes.get(("", resource.removeprefix(CLASS_PREFIX)))
    named = [found for found in classes.values() if found.extended_resource == resource]
    return max(named, key=lambda each: each.created, default=None)


def served_by_devices(snapshot: Snapshot) -> dict[int, int]:
    """Resource column -> devices, in thousandths, that serve the resource on nodes that do not report it themselves."""
    if DEVICE_CLASS not in snapshot.objects:
        return {}
    out: dict[int, int] = {}
    for dim, name in enumerate(snapshot.resource_names):
        found = class_behind(snapshot, name)
        if found is not None:
            reported = snapshot.nodes.allocatable[dim] > 0
            out[dim] = MILLI * sum(1 for device in _devices_of(snapshot, found) if not reported[device.nodes].all())
    return out


def _devices_of(snapshot: Snapshot, device_class: DeviceClassSpec) -> list[Published]:
    """The devices of a class; one that lacks what a selector reads is not of the class. Kept while slices and classes stay."""
    pools = device_pools(snapshot)

    def passes(device: Published) -> bool:
        try:
            return device.passes(device_class.selectors, "")
        except SelectorFailure:
            return False

    version = (id(pools), device_class.selectors)
    return memoised(snapshot, ("devices of a class", device_class.name), version, lambda: [d for d in pools.devices if passes(d)])


def reachable_from(columns: NodeProperties, slice_: ResourceSliceSpec) -> BoolArray:
    if slice_.all_nodes:
        return np.ones(len(columns), dtype=bool)
    if slice_.node_name:
        return columns.named((slice_.node_name,))
    if slice_.node_selector is not None:
        return columns.terms(slice_.node_selector)
    return np.ones(len(columns), dtype=bool)


class Counts(Struct):
    """Over all nodes, in thousandths like every scalar."""

    total: IntArray
    taken: IntArray


class DeviceCounts:
    """One object a session. Claims that this cycle allocates do not move the figures: scores read what is written."""

    def __init__(self, session: Session) -> None:
        self.snapshot = session.snapshot
        self._counts: dict[str, Counts] = {}

    def of(self, resource: str) -> Counts:
        found = self._counts.get(resource)
        if found is None:
            found = self._counts[resource] = self._count(resource)
        return found

    def _count(self, resource: str) -> Counts:
        columns = node_properties(self.snapshot)
        total, taken = np.zeros(len(columns), dtype=np.int64), np.zeros(len(columns), dtype=np.int64)
        device_class = class_behind(self.snapshot, resource)
        selectors, tests = Selectors(), device_class.selectors if device_class else ()
        held = {
            device.id
            for claim in resource_claims(self.snapshot).values()
            for device in (claim.allocation.devices if claim.allocation else ())
        }
        for slice_ in resource_slices(self.snapshot).values():
            where = reachable_from(columns, slice_)
            for device in slice_.devices:
                if _passes(selectors, tests, slice_.driver, device.manifest):
                    total[where] += MILLI
                    if (slice_.driver, slice_.pool, device.name) in held:
                        taken[where] += MILLI
        return Counts(total, taken)


def _passes(selectors: Selectors, tests: Sequence[str], driver: str, manifest: Mapping[str, Any]) -> bool:
    """A device that lacks what a selector reads is not of the class, nor is one that cannot be read."""
    try:
        device = Device.read(driver, manifest)
    except (CelError, QuantityError):
        return False
    return all(selectors.ask(test, device, "") is True for test in tests)
