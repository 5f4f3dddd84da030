"""Devices for claims on one node, the slow way: every choice is checked from scratch against everything that was chosen before.

It reads manifests, one device after the other, and knows counters of pools, shared capacity, constraints, alternatives, requests for
all devices, taints and administrative access.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.reference.cluster import Cluster, Object, labels_of, name_of
from tests.reference.device_selectors import Error, selects

from navarch.model.quantity import parse_value
from navarch.model.selectors import node_selector_matches, read_node_selector

MOST = 32


class Impossible(Exception):
    """The claims are at fault; no search is made."""


@dataclass(frozen=True)
class Found:
    """A device on a node."""

    driver: str
    pool: str
    device: Object = field(hash=False, compare=False)
    name: str

    @property
    def id(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.name


@dataclass(frozen=True)
class Pick:
    claim: int
    request: Object = field(compare=False)
    name: str
    found: Found

    def result(self) -> Object:
        out: Object = {"request": self.name, "driver": self.found.driver, "pool": self.found.pool, "device": self.found.name}
        if self.request.get("adminAccess"):
            out["adminAccess"] = True
        if self.found.device.get("allowMultipleAllocations"):
            out["shareID"] = "made"
            out["consumedCapacity"] = consumes(self.request, self.found.device) or {}
        return out


def reaches(place: Object, node: Object) -> bool:
    if place.get("nodeName"):
        return bool(place["nodeName"] == name_of(node))
    if place.get("allNodes"):
        return True
    if place.get("nodeSelector") is None:
        return False
    return node_selector_matches(read_node_selector(place["nodeSelector"]) or (), labels_of(node), name_of(node))


def generation(slice_: Object) -> int:
    return int(slice_["spec"]["pool"]["generation"])


class Devices:
    """What drivers publish and claims hold, seen from one node."""

    def __init__(self, cluster: Cluster, node: Object) -> None:
        self.cluster = cluster
        pools: dict[tuple[str, str], list[Object]] = {}
        for slice_ in cluster.of_kind("ResourceSlice"):
            pools.setdefault((slice_["spec"]["driver"], slice_["spec"]["pool"]["name"]), []).append(slice_)
        self.all: dict[tuple[str, str, str], Object] = {}
        self.counters: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
        self.incomplete: list[str] = []
        here: list[tuple[bool, str, str, list[Found]]] = []
        for (driver, pool), slices in pools.items():
            newest = max(map(generation, slices))
            slices = sorted((s for s in slices if generation(s) == newest), key=name_of)
            near = [device for s in slices for device in _near(s["spec"], node)]
            if len(slices) != slices[0]["spec"]["pool"]["resourceSliceCount"]:
                self.incomplete += [f"{driver}/{pool}"] if near else []
                continue
            self.counters[driver, pool] = {
                (each["name"], name): parse_value(counter["value"])
                for s in slices
                for each in s["spec"].get("sharedCounters") or ()
                for name, counter in each["counters"].items()
            }
            for s in slices:
                for device in s["spec"].get("devices") or ():
                    self.all[driver, pool, device["name"]] = device
            late = any(
                device.get("bindingConditions") for s in slices if list(_near(s["spec"], node)) for device in s["spec"]["devices"]
            )
            here.append((late, driver, pool, [Found(driver, pool, device, device["name"]) for device in near]))
        self.near = [found for _, _, _, devices in sorted(here, key=lambda entry: entry[:3]) for found in devices]
        self.held = [
            result
            for claim in cluster.of_kind("ResourceClaim")
            for result in ((((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}).get("results") or ())
            if not result.get("adminAccess")
        ]

    def free(self, picks: list[Pick]) -> bool:
        """Whether the devices of `picks` can be had together, beside what is held."""
        whole = {_id(result) for result in self.held if not result.get("shareID")}
        for number, pick in enumerate(picks):
            if pick.found.device.get("allowMultipleAllocations"):
                continue
            before = [other for other in picks[:number] if other.found.id == pick.found.id]
            if pick.request.get("adminAccess"):
                if any(other.claim == pick.claim for other in before):
                    return False
            elif before or pick.found.id in whole:
                return False
        return self._capacity(picks) and self._counters(picks)

    def _capacity(self, picks: list[Pick]) -> bool:
        used: dict[tuple[tuple[str, str, str], str], int] = {}
        for result in self.held:
            for name, amount in (result.get("consumedCapacity") or {}).items():
                used[_id(result), name] = used.get((_id(result), name), 0) + parse_value(amount)
        for pick in picks:
            asked = consumes(pick.request, pick.found.device)
            if asked is None:
                return False
            for name, amount in asked.items():
                most = parse_value(pick.found.device["capacity"][name]["value"])
                already = used.get((pick.found.id, name), 0) if pick.found.device.get("allowMultipleAllocations") else 0
                used[pick.found.id, name] = already + amount
                if already + amount > most:
                    return False
        return True

    def _counters(self, picks: list[Pick]) -> bool:
        if not any(pick.found.device.get("consumesCounters") for pick in picks):
            return True
        ids = dict.fromkeys(_id(result) for result in self.held)
        using = [(id_, self.all.get(id_)) for id_ in ids]
        for pick in picks:
            shared = bool(pick.found.device.get("allowMultipleAllocations"))
            if not shared or pick.found.id not in {id_ for id_, _ in using}:
                using.append((pick.found.id, pick.found.device))
        pools = {pick.found.id[:2] for pick in picks if pick.found.device.get("consumesCounters")}
        for pool in pools:
            left = dict(self.counters[pool])
            for id_, device in using:
                for use in (device or {}).get("consumesCounters") or () if id_[:2] == pool else ():
                    for name, counter in use["counters"].items():
                        left[use["counterSet"], name] -= parse_value(counter["value"])
            if min(left.values(), default=0) < 0:
                return False
        return True


def _near(spec: Object, node: Object) -> Iterator[Object]:
    if spec.get("sharedCounters"):
        return
    for device in spec.get("devices") or ():
        if reaches(device if spec.get("perDeviceNodeSelection") else spec, node):
            yield device


def _id(result: Object) -> tuple[str, str, str]:
    return result["driver"], result["pool"], result["device"]


def consumes(request: Object, device: Object) -> dict[str, int] | None:
    """Capacity that the request takes of the device; None: the device cannot serve it."""
    asked = {name: parse_value(amount) for name, amount in ((request.get("capacity") or {}).get("requests") or {}).items()}
    offered = device.get("capacity") or {}
    if set(asked) - set(offered):
        return None
    out = {}
    for name, entry in offered.items():
        policy = entry.get("requestPolicy") or {}
        default = parse_value(policy["default"]) if policy.get("default") else None
        amount = asked.get(name)
        if amount is None:
            amount = default if default is not None else parse_value(entry["value"])
        elif policy.get("validRange"):
            least, step = parse_value(policy["validRange"]["min"]), policy["validRange"].get("step")
            amount = max(amount, least)
            while step and (amount - least) % parse_value(step):
                amount += 1
        elif policy.get("validValues"):
            amount = min((v for v in map(parse_value, policy["validValues"]) if v >= amount), default=amount)
        if amount != default:
            most = (policy.get("validRange") or {}).get("max")
            if most is not None and amount > parse_value(most):
                return None
            if policy.get("validValues") and amount not in map(parse_value, policy["validValues"]):
                return None
        out[name] = amount
    return out


def allocate(cluster: Cluster, node: Object, claims: list[Object]) -> list[list[Object]] | None:
    """The results of each claim on the node; None: there is no solution."""
    devices = Devices(cluster, node)
    classes = {name_of(each): each for each in cluster.of_kind("DeviceClass")}
    steps = [(number, request) for number, claim in enumerate(claims) for request in claim["spec"]["devices"]["requests"]]

    def suits(request: Object, found: Found) -> bool:
        tests = [*(classes[request["deviceClassName"]]["spec"].get("selectors") or ()), *(request.get("selectors") or ())]
        try:
            return all(selects(each["cel"]["expression"], found.driver, found.device) for each in tests)
        except Error as error:
            raise Impossible(str(error)) from None

    every = {}
    for number, request in steps:
        for name, option in _options(request):
            if option.get("allocationMode") == "All":
                if devices.incomplete:
                    raise Impossible("a pool is incomplete")
                every[number, name] = [
                    found for found in devices.near if suits(option, found) and devices._capacity([Pick(number, option, name, found)])
                ]

    def options(step: int, picks: list[Pick]) -> Iterator[list[Pick]]:
        """All ways to serve the requests from `step` on, the preferred one first."""
        if step == len(steps):
            yield picks
            return
        number, request = steps[step]
        for name, option in _options(request):
            if option.get("allocationMode") == "All":
                together = _all(number, name, option, picks)
                ways: Iterable[list[Pick]] = [together] if together is not None else []
            else:
                ways = _some(number, name, option, int(option.get("count") or 1), 0, picks)
            for way in ways:
                yield from options(step + 1, way)

    def _all(number: int, name: str, option: Object, picks: list[Pick]) -> list[Pick] | None:
        for found in every[number, name]:
            picks = [*picks, Pick(number, option, name, found)]
            if not devices.free(picks) or not _tolerated(option, found):
                return None
            if not _agree(claims, picks):
                raise Impossible("a constraint forbids all devices")
        return picks if every[number, name] and sum(pick.claim == number for pick in picks) <= MOST else None

    def _some(number: int, name: str, option: Object, left: int, start: int, picks: list[Pick]) -> Iterator[list[Pick]]:
        if not left:
            yield picks
            return
        for place in range(start, len(devices.near)):
            found = devices.near[place]
            longer = [*picks, Pick(number, option, name, found)]
            if _tolerated(option, found) and _holds(devices, claims, longer) and suits(option, found):
                yield from _some(number, name, option, left - 1, place + 1, longer)

    solution = next(options(0, []), None)
    if solution is None:
        return None
    return [[pick.result() for pick in solution if pick.claim == number] for number in range(len(claims))]


def _options(request: Object) -> Iterator[tuple[str, Object]]:
    if request.get("firstAvailable"):
        for each in request["firstAvailable"]:
            yield f"{request['name']}/{each['name']}", each
    else:
        yield request["name"], request["exactly"]


def _tolerated(request: Object, found: Found) -> bool:
    for taint in found.device.get("taints") or ():
        tolerations = request.get("tolerations") or ()
        if taint["effect"] in ("NoSchedule", "NoExecute") and not any(each.get("key") in (None, taint["key"]) for each in tolerations):
            return False
    return True


def _holds(devices: Devices, claims: list[Object], picks: list[Pick]) -> bool:
    return devices.free(picks) and _agree(claims, picks)


def _agree(claims: list[Object], picks: list[Pick]) -> bool:
    for number, claim in enumerate(claims):
        mine = [pick for pick in picks if pick.claim == number]
        if len(mine) > MOST:
            return False
        for constraint in claim["spec"]["devices"].get("constraints") or ():
            names = constraint.get("requests") or ()
            bound = [pick for pick in mine if not names or pick.name in names or pick.name.split("/")[0] in names]
            attribute = constraint.get("matchAttribute") or constraint["distinctAttribute"]
            values = [_attribute(pick.found, attribute) for pick in bound]
            if any(value is None for value in values):
                return False
            different = {repr(value) for value in values}
            if len(different) > 1 if constraint.get("matchAttribute") else len(different) < len(values):
                return False
    return True


def _attribute(found: Found, name: str) -> object:
    attributes = found.device.get("attributes") or {}
    domain, _, short = name.partition("/")
    entry = attributes.get(name) or (attributes.get(short) if domain == found.driver else None)
    return None if entry is None else next(iter(entry.items()))
