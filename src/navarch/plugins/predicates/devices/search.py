"""Devices for the claims of a pod on one node: depth first, request by request, and the first full solution is taken.

Requests ask for a number of devices or for all of a kind; a request with alternatives takes the first that leads to a solution.
Constraints bind devices of several requests together by an attribute. The search gives up after a bounded number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct, field

from navarch.model.objects.devices import AllocatedDevice, DeviceClassSpec, DeviceConstraint, DeviceDemand, DeviceId, ResourceClaimSpec
from navarch.model.selectors import first_untolerated
from navarch.plugins.predicates.devices.pools import Published
from navarch.plugins.predicates.devices.selectors import SelectorFailure

MOST_DEVICES = 32
"""Of one claim."""
STEPS = 20_000
"""Of one search."""
Chosen = tuple[str, Published, bool]
"""(request, device, whether it is shared for administration)"""


class Solution(Struct):
    """Devices by claim, and for scores the sum of what early alternatives are worth."""

    devices: list[list[AllocatedDevice]]
    published: list[Published]
    rank: int = 0


class ClaimFailure(Exception):
    """What is wrong with a selector that the search had to ask; `claim` is the number of the claim, None if it is the class's."""

    def __init__(self, claim: int | None, text: str) -> None:
        super().__init__(text)
        self.claim = claim


class Search(Struct):
    """One pod's claims on one node. `taken` devices belong to others, `most` is how many steps it may take."""

    claims: Sequence[ResourceClaimSpec]
    classes: Mapping[tuple[str, str], DeviceClassSpec]
    reach: Sequence[Published]
    taken: Collection[DeviceId]
    most: int = STEPS
    steps: int = 0
    used: set[DeviceId] = field(default_factory=set)
    rank: int = 0
    chosen: list[list[Chosen]] = field(default_factory=list)
    suitable: dict[tuple[int, str], list[Published]] = field(default_factory=dict)
    """(claim, request) -> devices that its selectors let pass."""

    @property
    def was_cut(self) -> bool:
        return self.steps > self.most

    def run(self) -> Solution | None:
        """None: there is no solution. A selector that fails raises ClaimFailure."""
        self.chosen = [[] for _ in self.claims]
        if not self._claim(0):
            return None
        devices = [[AllocatedDevice(request, *device.id, admin) for request, device, admin in chosen] for chosen in self.chosen]
        return Solution(devices, [device for chosen in self.chosen for _, device, _ in chosen], self.rank)

    def _claim(self, number: int) -> bool:
        if number == len(self.claims):
            return True
        return self._request(number, 0, lambda: self._claim(number + 1))

    def _request(self, claim: int, number: int, then: Callable[[], bool]) -> bool:
        requests = self.claims[claim].requests
        if number == len(requests):
            return then()
        demand = requests[number]

        def go_on() -> bool:
            return self._request(claim, number + 1, then)

        if not demand.alternatives:
            return self._take(claim, demand, demand.name, go_on)
        for index, alternative in enumerate(demand.alternatives):
            worth = 8 - index
            self.rank += worth
            if self._take(claim, alternative, f"{demand.name}/{alternative.name}", go_on):
                return True
            self.rank -= worth
        return False

    def _take(self, claim: int, demand: DeviceDemand, name: str, then: Callable[[], bool]) -> bool:
        device_class = self.classes.get(("", demand.device_class))
        if device_class is None or demand.unsupported:
            return False
        suitable = self.suitable.get((claim, name))
        if suitable is None:
            suitable = self.suitable[claim, name] = self._suitable(claim, demand, device_class)
        if demand.all_devices:
            if not suitable or not all(self._may_take(device, demand) for device in suitable):
                return False
            return self._choose(claim, demand, name, suitable, len(suitable), 0, then)
        return self._choose(claim, demand, name, suitable, demand.count, 0, then)

    def _suitable(self, claim: int, demand: DeviceDemand, device_class: DeviceClassSpec) -> list[Published]:
        found, namespace = [], self.claims[claim].namespace
        for device in self.reach:
            try:
                if not device.passes(device_class.selectors, ""):
                    continue
            except SelectorFailure as failure:
                raise ClaimFailure(None, f"class {device_class.name}: {failure}") from None
            try:
                if device.passes(demand.selectors, namespace) and not device.spec.unsupported:
                    found.append(device)
            except SelectorFailure as failure:
                raise ClaimFailure(claim, str(failure)) from None
        return found

    def _may_take(self, device: Published, demand: DeviceDemand) -> bool:
        if not demand.admin_access and (device.id in self.taken or device.id in self.used):
            return False
        return first_untolerated(device.taints, demand.tolerations) is None

    def _choose(
        self,
        claim: int,
        demand: DeviceDemand,
        name: str,
        suitable: Sequence[Published],
        count: int,
        start: int,
        then: Callable[[], bool],
    ) -> bool:
        """`count` more of the suitable devices from `start` on, then the rest of the search."""
        if not count:
            return then()
        mine = self.chosen[claim]
        for index in range(start, len(suitable) - count + 1):
            device = suitable[index]
            self.steps += 1
            if self.was_cut:
                return False
            if len(mine) >= MOST_DEVICES or not self._may_take(device, demand):
                continue
            mine.append((name, device, demand.admin_access))
            if self._agrees(claim):
                if not demand.admin_access:
                    self.used.add(device.id)
                if self._choose(claim, demand, name, suitable, count - 1, index + 1, then):
                    return True
                self.used.discard(device.id)
            mine.pop()
        return False

    def _agrees(self, claim: int) -> bool:
        """Whether the devices chosen so far keep the claim's constraints."""
        return all(_kept(constraint, self.chosen[claim]) for constraint in self.claims[claim].constraints)


def _kept(constraint: DeviceConstraint, chosen: Sequence[Chosen]) -> bool:
    values = []
    for request, device, _ in chosen:
        if constraint.requests and request not in constraint.requests and request.partition("/")[0] not in constraint.requests:
            continue
        value = device.attribute(constraint.attribute)
        if value is None:
            return False
        values.append(value)
    if constraint.distinct:
        return all(values[i] != other for i in range(len(values)) for other in values[i + 1 :])
    return all(value == values[0] for value in values)
