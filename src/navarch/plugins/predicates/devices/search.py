"""Devices for the claims of a pod on one node: depth first, request by request, and the first full solution is taken.

Requests ask for a number of devices or for all of a kind. A request with alternatives takes the first that leads to a solution.
Constraints bind devices of several requests together by an attribute. A device may consume counters of its pool, and a device that
several claims share has a capacity of which each consumes a part. The search gives up after a bounded number of steps.

Choices are kept on a stack of generators, one a request and one a device. A generator that is resumed undoes its choice and makes
the next, so the depth of the search is not bound by Python's stack.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from navarch.model.objects.devices import (
    AllocatedDevice,
    Amounts,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceDemand,
    DeviceId,
    ResourceClaimSpec,
)
from navarch.model.quantity import format_nano
from navarch.model.selectors import first_untolerated
from navarch.plugins.predicates.devices.capacity import consumption, has_room
from navarch.plugins.predicates.devices.pools import INVALID, CounterName, Pool, Published
from navarch.plugins.predicates.devices.selectors import SelectorFailure, TooCostly
from navarch.plugins.predicates.devices.usage import DeviceUsage

MOST_DEVICES = 32
"""Of one claim."""
MOST_ALTERNATIVES = 8
STEPS = 20_000
"""Of one search."""
_NONE_CONSUMED: Mapping[str, int] = {}
_NO_COUNTERS: Mapping[CounterName, int] = {}


class Chosen(Struct, frozen=True):
    """`place` is the number of the device among those that the node reaches. Nodes that are alike have the same places."""

    request: str
    place: int
    admin_access: bool
    consumed: Amounts

    def allocated(self, device: Published) -> AllocatedDevice:
        spec = device.spec
        consumed = tuple((name, format_nano(amount, "binary")) for name, amount in self.consumed) if spec.shared else ()
        return AllocatedDevice(
            self.request,
            *device.id,
            admin_access=self.admin_access,
            shared=spec.shared,
            consumed=consumed,
            binding_conditions=spec.binding_conditions,
            binding_failure_conditions=spec.binding_failure_conditions,
        )


class Solution(Struct, frozen=True):
    """Devices by claim, and for scores the sum of what early alternatives are worth."""

    chosen: tuple[tuple[Chosen, ...], ...]
    rank: int = 0


class ClaimFailure(Exception):
    """What makes the search fail as a whole. `claim` is the number of the claim, None if it is not the claim's fault. The text
    continues the claim's name. `lasting`: it stays as long as the devices do."""

    def __init__(self, claim: int | None, text: str, *, lasting: bool = True) -> None:
        super().__init__(text)
        self.claim = claim
        self.lasting = lasting


class Asked(Struct, eq=False):
    """One request, or one alternative of it."""

    claim: int
    name: str
    demand: DeviceDemand
    device_class: DeviceClassSpec
    namespace: str
    worth: int = 0
    every: list[int] | None = None
    """Places of all suitable devices, for a request that asks for all."""
    consumes: dict[int, Amounts | None] = field(default_factory=dict)
    """Shape of a device -> what the request consumes of its capacity."""

    def selects(self, device: Published) -> bool:
        try:
            if not device.passes(self.device_class.selectors, ""):
                return False
        except SelectorFailure as failure:
            lasting = not isinstance(failure, TooCostly)
            raise ClaimFailure(None, f"class {self.device_class.name}: {failure}", lasting=lasting) from None
        try:
            return device.passes(self.demand.selectors, self.namespace)
        except SelectorFailure as failure:
            raise ClaimFailure(self.claim, f": {failure}", lasting=not isinstance(failure, TooCostly)) from None

    def tolerates(self, device: Published) -> bool:
        return first_untolerated(device.taints, self.demand.tolerations) is None


def read_requests(
    claims: Sequence[ResourceClaimSpec], classes: Mapping[tuple[str, str], DeviceClassSpec]
) -> list[tuple[Asked, ...]] | None:
    """The requests of all claims, each with its alternatives. None: a class does not exist, or a request is not supported."""
    out = []
    for number, claim in enumerate(claims):
        for request in claim.requests:
            options = []
            for index, demand in enumerate(request.alternatives or (request,)):
                device_class = classes.get(("", demand.device_class))
                if device_class is None or demand.unsupported:
                    return None
                name = f"{request.name}/{demand.name}" if request.alternatives else request.name
                worth = MOST_ALTERNATIVES - index if request.alternatives else 0
                options.append(Asked(number, name, demand, device_class, claim.namespace, worth))
            out.append(tuple(options))
    return out


class Search(Struct):
    """One pod's claims on one node. `usage` is what other claims hold, `most` is how many steps the search may take."""

    claims: Sequence[ResourceClaimSpec]
    classes: Mapping[tuple[str, str], DeviceClassSpec]
    reach: Sequence[Published]
    usage: DeviceUsage
    most: int = STEPS
    faulty: Sequence[Pool] = ()
    """Pools with a problem that the node reaches."""
    steps: int = 0
    rank: int = 0
    unsupported: dict[str, None] = field(default_factory=dict)
    """Features of devices that were passed over because of them."""
    chosen: list[list[Chosen]] = field(default_factory=list)
    users: dict[DeviceId, list[int]] = field(default_factory=dict)
    """Device -> claims that have it as a whole in this search."""
    shares: Counter[DeviceId] = field(default_factory=Counter)
    consumed: dict[DeviceId, Counter[str]] = field(default_factory=dict)
    counters: dict[int, Counter[CounterName]] = field(default_factory=dict)
    values: list[list[list[object]]] = field(default_factory=list)
    """Claim, constraint -> values of the devices chosen so far."""
    open: Sequence[int] | None = None
    """Places of devices that others have not used up."""

    @property
    def was_cut(self) -> bool:
        return self.steps > self.most

    def run(self) -> Solution | None:
        """None: there is no solution. ClaimFailure: a selector fails, or a claim cannot be satisfied by its own fault."""
        self.chosen = [[] for _ in self.claims]
        self.values = [[[] for _ in claim.constraints] for claim in self.claims]
        requests = read_requests(self.claims, self.classes)
        if requests is None:
            return None
        self._gather_all(requests)
        if not requests:
            return self._solution()
        stack = [self._options(0, requests[0])]
        while stack:
            step = next(stack[-1], None)
            if self.was_cut:
                return None
            if step is None:
                stack.pop()
                continue
            number, asked, left, start = step
            if left:
                stack.append(self._devices(number, asked, left, start))
            elif number + 1 < len(requests):
                stack.append(self._options(number + 1, requests[number + 1]))
            else:
                return self._solution()
        if any(pool.problem == INVALID for pool in self.faulty):
            raise ClaimFailure(None, "invalid resource pools were encountered")
        return None

    def _solution(self) -> Solution:
        return Solution(tuple(tuple(chosen) for chosen in self.chosen), self.rank)

    def _gather_all(self, requests: Sequence[tuple[Asked, ...]]) -> None:
        """Determine the devices of requests for all devices, and refuse claims for more devices than one may have."""
        least: Counter[int] = Counter()
        for options in requests:
            for asked in options:
                if asked.demand.all_devices:
                    asked.every = self._every(asked)
            least[options[0].claim] += min(_count(asked) for asked in options)
        for claim, count in sorted(least.items()):
            if count > MOST_DEVICES:
                raise ClaimFailure(claim, f": number of requested devices {count} exceeds the claim limit of {MOST_DEVICES}")

    def _every(self, asked: Asked) -> list[int]:
        for pool in self.faulty:
            text = f", request {asked.demand.name}: asks for all devices, but resource pool {pool.shown} {pool.problem}"
            raise ClaimFailure(asked.claim, text)
        found = []
        for place, device in enumerate(self.reach):
            if asked.selects(device) and self._consumes(asked, device) is not None:
                found.append(place)
        return found

    def _options(self, number: int, options: Sequence[Asked]) -> Iterator[tuple[int, Asked, int, int]]:
        for asked in options:
            count = _count(asked)
            if not count or len(self.chosen[asked.claim]) + count > MOST_DEVICES:
                continue
            self.rank += asked.worth
            yield number, asked, count, 0
            self.rank -= asked.worth

    def _devices(self, number: int, asked: Asked, left: int, start: int) -> Iterator[tuple[int, Asked, int, int]]:
        """One device from `start` on. For all devices there is one choice: the next of them."""
        for place in self._places(asked, start):
            self.steps += 1
            if self.was_cut:
                return
            device = self.reach[place]
            if not self._is_free(asked, device) or not asked.selects(device):
                continue
            consumed = self._consumes(asked, device)
            if consumed is None or not self._take(asked, device, place, consumed):
                continue
            yield number, asked, left - 1, place + 1 if asked.every is None else start + 1
            self._give_back(asked, device)

    def _places(self, asked: Asked, start: int) -> Iterable[int]:
        if asked.every is not None:
            return asked.every[start : start + 1]
        if asked.demand.admin_access or any(not amount for _, amount in asked.demand.capacity):
            return range(start, len(self.reach))  # such a request may have devices that others use up
        if self.open is None:
            gone = self.usage.gone
            self.open = [place for place, device in enumerate(self.reach) if device.id not in gone] if gone else range(len(self.reach))
        return self.open[bisect_left(self.open, start) :]

    def _is_free(self, asked: Asked, device: Published) -> bool:
        users = self.users.get(device.id)
        if asked.demand.admin_access:
            return users is None or asked.claim not in users
        return not users and device.id not in self.usage.taken

    def _consumes(self, asked: Asked, device: Published) -> Amounts | None:
        """What the request would consume of the device's capacity; None: the capacity does not suffice."""
        if device.shape not in asked.consumes:
            asked.consumes[device.shape] = consumption(device.spec, asked.demand)
        asks = asked.consumes[device.shape]
        if asks is None or not device.spec.shared:
            return asks
        held = self.usage.capacity_in_use(device.id)
        return asks if has_room(device.spec, asks, held, self.consumed.get(device.id, _NONE_CONSUMED)) else None

    def _take(self, asked: Asked, device: Published, place: int, consumed: Amounts) -> bool:
        spec = device.spec
        if spec.unsupported:
            self.unsupported.update(dict.fromkeys(spec.unsupported))
            return False
        if not self._counters_suffice(device) or not asked.tolerates(device):
            return False
        if not self._agrees(asked, device):
            if asked.every is not None:
                text = f", request {asked.demand.name}: cannot add device {'/'.join(device.id)} because a claim constraint would not"
                raise ClaimFailure(asked.claim, f"{text} be satisfied")
            return False
        if self._uses_counters(device):
            self.counters.setdefault(device.pool.number, Counter()).update(dict(device.counters))
        if spec.shared:
            self.shares[device.id] += 1
            self.consumed.setdefault(device.id, Counter()).update(dict(consumed))
        else:
            self.users.setdefault(device.id, []).append(asked.claim)
        for constraint, values in self._constraints(asked):
            values.append(device.attribute(constraint.attribute))
        self.chosen[asked.claim].append(Chosen(asked.name, place, asked.demand.admin_access, consumed))
        return True

    def _give_back(self, asked: Asked, device: Published) -> None:
        chosen = self.chosen[asked.claim].pop()
        for _, values in self._constraints(asked):
            values.pop()
        if device.spec.shared:
            self.shares[device.id] -= 1
            self.consumed[device.id].subtract(dict(chosen.consumed))
        else:
            self.users[device.id].pop()
        if self._uses_counters(device):
            self.counters[device.pool.number].subtract(dict(device.counters))

    def _uses_counters(self, device: Published) -> bool:
        """The first share of a device consumes its counters, further shares do not."""
        if not device.counters:
            return False
        return not device.spec.shared or not (self.shares[device.id] or self.usage.shares[device.id])

    def _counters_suffice(self, device: Published) -> bool:
        if not self._uses_counters(device):
            return True
        pool, asks = device.pool, dict(device.counters)
        held, chosen = self.usage.counters.get(pool.number, _NO_COUNTERS), self.counters.get(pool.number, _NO_COUNTERS)
        # A counter of the pool that is overdrawn already holds up every device that consumes counters.
        return all(held.get(name, 0) + chosen.get(name, 0) + asks.get(name, 0) <= most for name, most in pool.counters.items())

    def _constraints(self, asked: Asked) -> Iterator[tuple[DeviceConstraint, list[object]]]:
        """Constraints that the devices of a request take part in, each with the values so far."""
        for constraint, values in zip(self.claims[asked.claim].constraints, self.values[asked.claim]):
            names = constraint.requests
            if not names or asked.name in names or asked.name.partition("/")[0] in names:
                yield constraint, values

    def _agrees(self, asked: Asked, device: Published) -> bool:
        for constraint, values in self._constraints(asked):
            value = device.attribute(constraint.attribute)
            if value is None or (_among(value, values) if constraint.distinct else bool(values) and not _among(value, values[:1])):
                return False
        return True


def _count(asked: Asked) -> int:
    return len(asked.every) if asked.every is not None else asked.demand.count


def _among(value: object, values: Sequence[object]) -> bool:
    """Values of different types are different: 1 is not true."""
    return any(type(value) is type(other) and value == other for other in values)
