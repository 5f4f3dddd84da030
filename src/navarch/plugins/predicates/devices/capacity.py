"""How much of a device's capacity a request consumes.

A request names an amount of some capacities. A capacity it does not name is consumed by the default of its request policy, or as a
whole. The policy raises an amount to the next valid one. A request that names a capacity the device lacks, or whose amount no
policy allows, cannot have the device.
"""

from __future__ import annotations

from collections.abc import Mapping

from navarch.model.objects.devices import Amounts, Capacity, DeviceDemand, DeviceSpec, RequestPolicy
from navarch.model.quantity import NANO


def consumption(device: DeviceSpec, demand: DeviceDemand) -> Amounts | None:
    """What the request consumes of each capacity of the device; None: it cannot have the device."""
    if not device.capacity:
        return None if demand.capacity else ()
    asked = dict(demand.capacity)
    if not asked.keys() <= {capacity.name for capacity in device.capacity}:
        return None
    found = []
    for capacity in device.capacity:
        amount = _raised(asked.get(capacity.name), capacity)
        if amount > capacity.amount or not _is_valid(amount, capacity.policy):
            return None
        found.append((capacity.name, amount))
    return tuple(found)


def has_room(device: DeviceSpec, asked: Amounts, *consumed: Mapping[str, int]) -> bool:
    """Whether `asked` fits beside what is consumed already."""
    left = {capacity.name: capacity.amount for capacity in device.capacity}
    return all(amount + sum(part.get(name, 0) for part in consumed) <= left[name] for name, amount in asked)


def _raised(amount: int | None, capacity: Capacity) -> int:
    policy = capacity.policy
    if amount is None:
        return policy.default if policy is not None and policy.default is not None else capacity.amount
    if policy is None:
        return amount
    if policy.least is not None:
        if amount < policy.least:
            return policy.least
        if policy.step is None:
            return amount
        # Steps count whole units, as the API server does.
        least, step = _whole(policy.least), max(_whole(policy.step), 1)
        return (least + -(-(_whole(amount) - least) // step) * step) * NANO
    return next((value for value in policy.values if amount <= value), amount)


def _is_valid(amount: int, policy: RequestPolicy | None) -> bool:
    if policy is None or amount == policy.default:
        return True
    if policy.least is not None or policy.most is not None or policy.step is not None:
        if policy.most is not None and amount > policy.most:
            return False
        return policy.step is None or (_whole(amount) - _whole(policy.least or 0)) % max(_whole(policy.step), 1) == 0
    return not policy.values or amount in policy.values


def _whole(nano: int) -> int:
    """Whole units, rounded up."""
    return -(-nano // NANO)
