"""Nodes on which the search for devices takes the same course.

Most nodes of a cluster offer the same devices. For one set of requests, two nodes have the same profile if their devices give the
same answers to the selectors, have the same values of the attributes that constraints read, and have the same capacity and counters,
place by place. The search runs once for all nodes that also have the same devices in use. A device that several nodes reach counts
as itself, not by its content: taking it on one node takes it from the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.model.objects.devices import ResourceClaimSpec
from navarch.model.resources import IntArray
from navarch.plugins.predicates.devices.pools import DevicePools, Published
from navarch.plugins.predicates.devices.search import Asked, ClaimFailure
from navarch.plugins.predicates.devices.usage import DeviceUsage

MOST_PROFILES = 64
"""Sets of requests whose profiles are remembered."""


class NodeProfiles:
    """Kept as long as the devices stay as they are."""

    def __init__(self, pools: DevicePools, size: int) -> None:
        self._pools = pools
        self._size = size
        self._known: dict[object, IntArray] = {}

    def of(self, key: object, claims: Sequence[ResourceClaimSpec], requests: Sequence[tuple[Asked, ...]]) -> IntArray:
        """Node row -> profile."""
        found = self._known.pop(key, None)
        if found is None:
            found = self._compute(claims, requests)
            while len(self._known) >= MOST_PROFILES:
                del self._known[next(iter(self._known))]
        self._known[key] = found
        return found

    def _compute(self, claims: Sequence[ResourceClaimSpec], requests: Sequence[tuple[Asked, ...]]) -> IntArray:
        asked = [option for options in requests for option in options]
        attributes = list(dict.fromkeys(constraint.attribute for claim in claims for constraint in claim.constraints))
        devices: dict[object, int] = {}
        numbers = [devices.setdefault(_content(device, asked, attributes), len(devices)) for device in self._pools.devices]
        nodes: dict[object, int] = {}
        out: IntArray = np.zeros(self._size, dtype=np.int64)
        nodes[(), ()] = 0
        faulty = self._pools.faulty
        for node in {**self._pools.at, **faulty}:
            reach = self._pools.at.get(node, ())
            content = tuple(numbers[device.number] for device in reach)
            problems = tuple((pool.shown, pool.problem) for pool in faulty.get(node, ()))
            out[node] = nodes.setdefault((_with_pools(reach, content), problems), len(nodes))
        return out


def _content(device: Published, asked: Sequence[Asked], attributes: Sequence[str]) -> object:
    answers = tuple(_answer(option, device) for option in asked)
    if not any(answers):
        return False
    values = tuple(_value(device.attribute(name)) for name in attributes)
    tolerated = tuple(option.tolerates(device) for option in asked) if device.taints else ()
    return answers, values, tolerated, device.shape, device.pool.shape if device.counters else 0, -1 if device.local else device.number


def _answer(asked: Asked, device: Published) -> bool | tuple[str, int]:
    try:
        return asked.selects(device)
    except ClaimFailure as failure:
        # A selector that was too costly now may have an answer later, and another one for each device.
        return str(failure), -1 if failure.lasting else device.number


def _value(value: object) -> object:
    return type(value).__name__, value


def _with_pools(reach: Sequence[Published], content: tuple[int, ...]) -> object:
    """Devices that consume counters are told apart by the place of their pool as well."""
    if not any(device.counters for device in reach):
        return content
    places: dict[int, int] = {}
    return content, tuple(places.setdefault(device.pool.number, len(places)) if device.counters else -1 for device in reach)


class UsedPlaces:
    """What is in use of each node's local devices, as a number: 0 if nothing is."""

    def __init__(self, pools: DevicePools, usage: DeviceUsage, size: int) -> None:
        self._pools = pools
        self._usage = usage
        self._numbers: dict[object, int] = {(): 0}
        self.number: IntArray = np.zeros(size, dtype=np.int64)
        held = dict.fromkeys((*usage.taken, *usage.shares))
        found = (pools.by_id.get(id_) for id_ in held)
        for node in {int(device.nodes[0]): None for device in found if device is not None and device.local}:
            self.renew(node)

    def renew(self, node: int) -> None:
        used = []
        usage = self._usage
        for place, device in enumerate(self._pools.at.get(node, ())):
            if device.local and usage.holds(device.id):
                consumed = tuple(sorted(usage.capacity_in_use(device.id).items()))
                used.append((place, device.id in usage.taken, device.id in usage.shares, consumed))
        self.number[node] = self._numbers.setdefault(tuple(used), len(self._numbers))
