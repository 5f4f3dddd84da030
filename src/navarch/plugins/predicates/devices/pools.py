"""Devices that drivers publish, by the nodes that reach them.

A pool counts once all slices of its newest generation are there. Where devices can be reached is a property of the slice (one
node, some nodes, all) or, if the slice says so, of each device. DeviceTaintRules add their taints to the devices that they select.
Kept across cycles while slices, rules, classes and nodes stay.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct, field

from navarch.engine.figures import Rows
from navarch.model.objects.devices import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_SLICE,
    DeviceId,
    DeviceSpec,
    ResourceSliceSpec,
    device_classes,
    device_taint_rules,
    resource_slices,
)
from navarch.model.quantity import QuantityError
from navarch.model.resources import BoolArray
from navarch.model.snapshot import Snapshot
from navarch.model.spec import Taint
from navarch.plugins.predicates.devices.cel.selector import CelError, Device
from navarch.plugins.predicates.devices.extended_resources import reachable_from
from navarch.plugins.predicates.devices.selectors import SelectorFailure, Selectors, TooCostly
from navarch.plugins.predicates.nodes.columns import NodeColumns, kept, node_columns

MOST_ANSWERS = 256
"""Selectors whose answers a device remembers: every claim may bring one of its own."""


class Published(Struct, eq=False):
    """One device and the nodes that reach it."""

    id: DeviceId
    spec: DeviceSpec
    nodes: Rows
    seen: Device
    selectors: Selectors
    taints: tuple[Taint, ...] = ()
    """Its own, and those of DeviceTaintRules."""
    passed: dict[str, bool | SelectorFailure] = field(default_factory=dict)
    """Selector -> its answer on this device."""

    def passes(self, selectors: Iterable[str], namespace: str) -> bool:
        """A selector that fails on the device (it reads what the device has not) fails the whole search, not the device."""
        for number, selector in enumerate(selectors):
            answer = self.passed.get(selector)
            if answer is None:
                answer = self._ask(selector, namespace)
            if isinstance(answer, SelectorFailure):
                raise SelectorFailure(f"selector #{number}: {answer}")
            if not answer:
                return False
        return True

    def _ask(self, selector: str, namespace: str) -> bool | SelectorFailure:
        answer = self.selectors.ask(selector, self.seen, namespace)
        if not isinstance(answer, TooCostly):
            if len(self.passed) >= MOST_ANSWERS:
                self.passed.clear()
            self.passed[selector] = answer
        return answer

    def attribute(self, name: str) -> object:
        """The value of a fully named attribute, None if the device has none."""
        domain, _, short = name.rpartition("/")
        values = self.seen.attributes.get(domain or self.id[0]) or {}
        return values.get(short)


class DevicePools:
    def __init__(self, snapshot: Snapshot) -> None:
        columns = node_columns(snapshot)
        self.devices: list[Published] = []
        self.at: dict[int, list[Published]] = {}
        """Node row -> devices in reach, in the order of their names."""
        self.unreadable: list[str] = []
        """What is wrong with devices that are left out."""
        selectors = Selectors()
        for slice_ in complete(resource_slices(snapshot).values()):
            everywhere = None if slice_.per_device else np.flatnonzero(reachable_from(columns, slice_))
            for device in slice_.devices:
                nodes = everywhere if everywhere is not None else np.flatnonzero(_reach(columns, device))
                try:
                    seen = Device.read(slice_.driver, device.manifest)
                except (CelError, QuantityError) as error:
                    self.unreadable.append(f"ResourceSlice {slice_.name}: device {device.name} is left out: {error}")
                    continue
                found = Published((slice_.driver, slice_.pool, device.name), device, nodes, seen, selectors, device.taints)
                self.devices.append(found)
                for node in nodes.tolist():
                    self.at.setdefault(node, []).append(found)
        self.by_id = {device.id: device for device in self.devices}
        self._taint(snapshot)

    def _taint(self, snapshot: Snapshot) -> None:
        """A rule whose class is absent, or whose selector fails on a device, does not select the device."""
        classes = device_classes(snapshot)
        for _, rule in sorted(device_taint_rules(snapshot).items()):
            chosen = classes.get(("", rule.device_class)) if rule.device_class else None
            if rule.device_class and chosen is None:
                continue
            for device in self.devices:
                if rule.names(device.id) and _selected(device, (*(chosen.selectors if chosen else ()), *rule.selectors)):
                    device.taints = (*device.taints, rule.taint)


def _selected(device: Published, selectors: tuple[str, ...]) -> bool:
    try:
        return device.passes(selectors, "")
    except SelectorFailure:
        return False


def complete(slices: Iterable[ResourceSliceSpec]) -> list[ResourceSliceSpec]:
    """Slices of complete pools (every slice of the newest generation is known), by driver, pool and name."""
    pools: dict[tuple[str, str], list[ResourceSliceSpec]] = {}
    for slice_ in slices:
        pools.setdefault((slice_.driver, slice_.pool), []).append(slice_)
    out = []
    for _, members in sorted(pools.items()):
        newest = max(slice_.generation for slice_ in members)
        current = [slice_ for slice_ in members if slice_.generation == newest]
        if len(current) >= current[0].slice_count:
            out += sorted(current, key=lambda slice_: slice_.name)
    return out


def _reach(columns: NodeColumns, device: DeviceSpec) -> BoolArray:
    if device.all_nodes:
        return np.ones(len(columns), dtype=bool)
    if device.node_name:
        return columns.named((device.node_name,))
    return columns.terms(device.node_selector) if device.node_selector is not None else np.zeros(len(columns), dtype=bool)


def device_pools(snapshot: Snapshot) -> DevicePools:
    kinds = (RESOURCE_SLICE, DEVICE_TAINT_RULE, DEVICE_CLASS)
    version = (*(snapshot.versions.get(kind, 0) for kind in kinds), snapshot.nodes.version)
    return kept(snapshot, "device pools", version, lambda: DevicePools(snapshot))
