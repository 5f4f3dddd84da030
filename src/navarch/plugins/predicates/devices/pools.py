"""Devices that drivers publish, by the nodes that reach them.

A pool counts once all slices of its newest generation are there. Where devices can be reached is a property of the slice (one
node, some nodes, all) or, if the slice says so, of each device. Slices with counters have no devices; their counters belong to the
whole pool. DeviceTaintRules add their taints to the devices that they select. Kept across cycles while slices, rules, classes and
nodes stay.

A device is local if its use concerns one node only: no other node reaches it, and its pool has no counters that another node uses.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct, field

from navarch.engine.figures import Rows
from navarch.model.memo import memoised
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
from navarch.plugins.predicates.devices.selectors import SelectorFailure, Selectors, TooCostly
from navarch.plugins.predicates.nodes.properties import NodeProperties, node_properties

MOST_ANSWERS = 256
"""Selectors whose answers a device remembers: every claim may bring one of its own."""
CounterName = tuple[str, str]
"""(counter set, counter)"""
INVALID = "is currently invalid"
_NO_NODES: Rows = np.zeros(0, dtype=np.intp)


class Pool(Struct, eq=False):
    """A pool of one driver. A pool with a problem gives no devices."""

    number: int
    driver: str
    name: str
    slices: list[ResourceSliceSpec]
    """Of the newest generation, by name."""
    problem: str = ""
    counters: dict[CounterName, int] = field(default_factory=dict)
    nodes: Rows = field(default_factory=lambda: _NO_NODES)
    """Nodes that reach any of its devices."""
    shape: int = 0
    """Pools with the same counters have the same number."""
    partitions: list[Published] = field(default_factory=list)
    """Devices that consume counters."""

    @property
    def shown(self) -> str:
        return f"{self.driver}/{self.name}"


class Published(Struct, eq=False):
    """One device and the nodes that reach it."""

    id: DeviceId
    spec: DeviceSpec
    nodes: Rows
    seen: Device
    selectors: Selectors
    pool: Pool
    taints: tuple[Taint, ...] = ()
    """Its own, and those of DeviceTaintRules."""
    local: bool = True
    number: int = 0
    shape: int = 0
    """Devices with the same capacity, counters and binding conditions have the same number."""
    counters: tuple[tuple[CounterName, int], ...] = ()
    passed: dict[str, bool | SelectorFailure] = field(default_factory=dict)
    """Selector -> its answer on this device."""

    def passes(self, selectors: Iterable[str], namespace: str) -> bool:
        """A selector that fails on the device (it reads what the device has not) fails the whole search, not the device."""
        for number, selector in enumerate(selectors):
            answer = self.passed.get(selector)
            if answer is None:
                answer = self._ask(selector, namespace)
            if isinstance(answer, SelectorFailure):
                raise type(answer)(f"selector #{number}: {answer}")
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
        columns = node_properties(snapshot)
        self.devices: list[Published] = []
        self.at: dict[int, list[Published]] = {}
        """Node row -> devices in reach: pools by driver and name, those with binding conditions last, then slices by name."""
        self.unreadable: list[str] = []
        """What is wrong with devices that are left out."""
        self.pools = gather(resource_slices(snapshot).values())
        self._selectors = Selectors()
        self._shapes: dict[object, int] = {}
        later: list[tuple[int, list[Published]]] = []
        for pool in self.pools:
            self._publish(pool, columns, later)
        for node, devices in later:
            self.at.setdefault(node, []).extend(devices)
        self.by_id = {device.id: device for device in self.devices}
        self.groups, self.groups_of = self._shared_groups(len(columns))
        self.faulty: dict[int, list[Pool]] = {}
        """Node row -> pools with a problem, for requests for all devices."""
        for pool in self.pools:
            for node in pool.nodes.tolist() if pool.problem else ():
                self.faulty.setdefault(node, []).append(pool)
        self._taint(snapshot)

    def _publish(self, pool: Pool, columns: NodeProperties, later: list[tuple[int, list[Published]]]) -> None:
        """The devices of one pool, by node. Nodes that reach devices with binding conditions get the pool after all others."""
        reached: list[Rows] = [_NO_NODES]
        here: dict[int, list[Published]] = {}
        waits: set[int] = set()
        first = len(self.devices)
        for slice_ in pool.slices:
            everywhere = None if slice_.per_device else np.flatnonzero(_reach(columns, slice_))
            if everywhere is not None and not slice_.counters:
                reached.append(everywhere)
            conditional = any(device.binding_conditions for device in slice_.devices)
            for device in slice_.devices if not slice_.counters else ():
                if everywhere is None:
                    nodes = np.flatnonzero(_reach(columns, device))
                    reached.append(nodes)
                else:
                    nodes = everywhere
                found = None if pool.problem else self._device(pool, slice_, device, nodes)
                if found is None:
                    continue
                self.devices.append(found)
                for node in nodes.tolist():
                    here.setdefault(node, []).append(found)
                if conditional:
                    waits.update(nodes.tolist())
        pool.nodes = np.unique(np.concatenate(reached))
        pool.shape = self._shapes.setdefault(("pool", tuple(sorted(pool.counters.items()))), len(self._shapes))
        for published in self.devices[first:]:
            published.local = len(published.nodes) == 1 and (not published.counters or len(pool.nodes) == 1)
            if published.counters:
                pool.partitions.append(published)
        for node, devices in here.items():
            if node in waits:
                later.append((node, devices))
            else:
                self.at.setdefault(node, []).extend(devices)

    def _device(self, pool: Pool, slice_: ResourceSliceSpec, device: DeviceSpec, nodes: Rows) -> Published | None:
        try:
            seen = Device.read(slice_.driver, device.manifest)
        except (CelError, QuantityError) as error:
            self.unreadable.append(f"ResourceSlice {slice_.name}: device {device.name} is left out: {error}")
            return None
        content = (device.capacity, device.shared, device.consumes, device.unsupported)
        counters = tuple(((used.name, name), amount) for used in device.consumes for name, amount in used.counters)
        return Published(
            (slice_.driver, slice_.pool, device.name),
            device,
            nodes,
            seen,
            self._selectors,
            pool,
            device.taints,
            number=len(self.devices),
            shape=self._shapes.setdefault(content, len(self._shapes)),
            counters=counters,
        )

    def _shared_groups(self, size: int) -> tuple[Rows, dict[int, Rows]]:
        """(node -> number of the set of pools that it shares with other nodes, pool -> those numbers in which it is)."""
        reached: dict[int, dict[int, None]] = {}
        for device in self.devices:
            if not device.local:
                for node in device.nodes.tolist():
                    reached.setdefault(node, {})[device.pool.number] = None
        numbers: dict[tuple[int, ...], int] = {(): 0}
        groups = np.zeros(size, dtype=np.intp)
        for node, pools in reached.items():
            groups[node] = numbers.setdefault(tuple(pools), len(numbers))
        members: dict[int, list[int]] = {}
        for pools_of, number in numbers.items():
            for pool in pools_of:
                members.setdefault(pool, []).append(number)
        return groups, {pool: np.array(found, dtype=np.intp) for pool, found in members.items()}

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


def gather(slices: Iterable[ResourceSliceSpec]) -> list[Pool]:
    """Pools by driver and name, each with the slices of its newest generation."""
    pools: dict[tuple[str, str], list[ResourceSliceSpec]] = {}
    for slice_ in slices:
        pools.setdefault((slice_.driver, slice_.pool), []).append(slice_)
    out = []
    for number, ((driver, name), members) in enumerate(sorted(pools.items())):
        newest = max(slice_.generation for slice_ in members)
        current = sorted((slice_ for slice_ in members if slice_.generation == newest), key=lambda slice_: slice_.name)
        counters, problem = _counters(current)
        if len(current) != current[0].slice_count:
            problem = "is currently being updated"
        out.append(Pool(number, driver, name, current, problem, counters))
    return out


def _counters(slices: Iterable[ResourceSliceSpec]) -> tuple[dict[CounterName, int], str]:
    """The counters of a pool, and what is wrong with its slices."""
    found: dict[CounterName, int] = {}
    sets: set[str] = set()
    names: set[str] = set()
    for counter_set in (each for slice_ in slices for each in slice_.counters):
        if counter_set.name in sets:
            return {}, INVALID
        sets.add(counter_set.name)
        found.update(((counter_set.name, name), amount) for name, amount in counter_set.counters)
    for device in (each for slice_ in slices if not slice_.counters for each in slice_.devices):
        if device.name in names or any((used.name, name) not in found for used in device.consumes for name, _ in used.counters):
            return {}, INVALID
        names.add(device.name)
    return found, ""


def _reach(columns: NodeProperties, place: DeviceSpec | ResourceSliceSpec) -> BoolArray:
    """Nodes that a slice, or a device of its own, can be reached from."""
    if place.node_name:
        return columns.named((place.node_name,))
    if place.all_nodes:
        return np.ones(len(columns), dtype=bool)
    return columns.terms(place.node_selector) if place.node_selector is not None else np.zeros(len(columns), dtype=bool)


def device_pools(snapshot: Snapshot) -> DevicePools:
    kinds = (RESOURCE_SLICE, DEVICE_TAINT_RULE, DEVICE_CLASS)
    version = (*(snapshot.versions.get(kind, 0) for kind in kinds), snapshot.nodes.version)
    return memoised(snapshot, "device pools", version, lambda: DevicePools(snapshot))
