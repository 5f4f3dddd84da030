"""What claims hold of the published devices: whole devices, shares of capacity, and the counters of pools.

A device that no slice offers any more may still be held. It counts as taken, and it uses no counters. A device with administrative
access is never held: others use it at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from navarch.model.objects.devices import AllocatedDevice, DeviceId
from navarch.model.quantity import parse_nano
from navarch.plugins.predicates.devices.pools import CounterName, DevicePools, Published

_NOTHING: Mapping[str, int] = {}


class DeviceUsage:
    def __init__(self, pools: DevicePools, held: Iterable[AllocatedDevice] = ()) -> None:
        self.pools = pools
        self.taken: Counter[DeviceId] = Counter()
        """Device -> claims that hold it as a whole."""
        self.shares: Counter[DeviceId] = Counter()
        self.consumed: dict[DeviceId, Counter[str]] = {}
        """Device -> capacity that its shares consume."""
        self.counters: dict[int, Counter[CounterName]] = {}
        """Pool -> counters that held devices consume."""
        self.gone: set[DeviceId] = set()
        """Devices that no request can have: taken, their capacity used up, or too little left of their counters."""
        for device in held:
            self.add(device)

    def holds(self, device: DeviceId) -> bool:
        return device in self.taken or device in self.shares

    def capacity_in_use(self, device: DeviceId) -> Mapping[str, int]:
        return self.consumed.get(device, _NOTHING)

    def has_room_for(self, device: AllocatedDevice) -> bool:
        """Whether one more claim can hold the device in this way."""
        if device.admin_access:
            return True
        if device.id in self.gone or (not device.shared and self.holds(device.id)):
            return False
        known, used = self.pools.by_id.get(device.id), self.capacity_in_use(device.id)
        if known is None:
            return True
        wanted = {name: parse_nano(amount) for name, amount in device.consumed}
        return all(used.get(each.name, 0) + wanted.get(each.name, 0) <= each.amount for each in known.spec.capacity)

    def add(self, device: AllocatedDevice) -> None:
        if device.admin_access:
            return
        id_ = device.id
        if not self.holds(id_):
            self._count(id_, 1)
        if not device.shared:
            self.taken[id_] += 1
        else:
            self.shares[id_] += 1
            if device.consumed:
                consumed = self.consumed.setdefault(id_, Counter())
                for name, amount in device.consumed:
                    consumed[name] += parse_nano(amount)
        self._judge(id_)

    def remove(self, device: AllocatedDevice) -> None:
        if device.admin_access:
            return
        id_, held = device.id, self.shares if device.shared else self.taken
        if id_ not in held:
            return
        held[id_] -= 1
        if not held[id_]:
            del held[id_]
        if device.shared and device.consumed:
            consumed = self.consumed[id_]
            for name, amount in device.consumed:
                consumed[name] -= parse_nano(amount)
            if not any(consumed.values()):
                del self.consumed[id_]
        if not self.holds(id_):
            self._count(id_, -1)
        self._judge(id_)

    def _count(self, device: DeviceId, sign: int) -> None:
        known = self.pools.by_id.get(device)
        if known is not None and known.spec.consumes:
            used = self.counters.setdefault(known.pool.number, Counter())
            for name, amount in known.counters:
                used[name] += sign * amount
            for other in known.pool.partitions:
                self._judge(other.id)

    def _judge(self, device: DeviceId) -> None:
        known = self.pools.by_id.get(device)
        if device in self.taken or (known is not None and (self._is_full(known) or self._is_blocked(known))):
            self.gone.add(device)
        else:
            self.gone.discard(device)

    def _is_full(self, device: Published) -> bool:
        """Whether a capacity is used up of which every request consumes some."""
        used = self.consumed.get(device.id)
        if not used:
            return False
        asked_by_all = (each for each in device.spec.capacity if each.policy is None or each.policy.default != 0)
        return any(used[each.name] >= each.amount for each in asked_by_all)

    def _is_blocked(self, device: Published) -> bool:
        """Whether the counters of its pool do not suffice. Further shares of a device consume no counters."""
        if not device.counters or (device.spec.shared and device.id in self.shares):
            return False
        used = self.counters.get(device.pool.number)
        if used is None:
            return False
        return any(used[name] + amount > device.pool.counters[name] for name, amount in device.counters)
