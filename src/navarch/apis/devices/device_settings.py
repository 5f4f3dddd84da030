"""What is written for the driver with the devices of a claim: parameters of their class and of the claim, and tolerated taints.

No decision depends on them, but the node's driver reads them from the allocation and nowhere else: without them it sets devices up
by its defaults, and the controller that evicts from tainted devices does not know that the claim tolerates the taint. As the API has
it: first what classes say, each once with the requests that name the class, then what the claim says for a request that was used. Of
a request with alternatives only the chosen one counts, as REQUEST/ALTERNATIVE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

_Object = Mapping[str, Any]


def used_requests(claim: _Object, chosen: set[str]) -> Iterator[tuple[str, _Object]]:
    """Name and body of each request that devices were found for. `chosen`: the names in the results."""
    for request in _devices(claim).get("requests") or ():
        name, alternatives = request["name"], request.get("firstAvailable") or ()
        if not alternatives:
            yield name, request.get("exactly") or request  # v1beta1 has the body in the request itself
        for each in alternatives:
            if (full := f"{name}/{each['name']}") in chosen:
                yield full, each


def tolerations(claim: _Object, request: str) -> list[Any]:
    """What a result says of the taints that its request tolerates."""
    found = dict(used_requests(claim, {request})).get(request) or {}
    return list(found.get("tolerations") or ())


def config(claim: _Object, chosen: set[str], device_class: Callable[[str], _Object]) -> list[dict[str, Any]]:
    """`status.allocation.devices.config`. `device_class` gives a class by its name, empty for one that is gone."""
    used = list(used_requests(claim, chosen))
    classes: dict[str, list[str]] = {}
    for name, body in used:
        classes.setdefault(body.get("deviceClassName") or "", []).append(name)
    found: list[dict[str, Any]] = []
    for name, requests in classes.items():
        said = (device_class(name).get("spec") or {}).get("config") or ()
        found += [{"source": "FromClass", "requests": requests, **each} for each in said]
    # A claim names a request with alternatives, or one of the alternatives.
    names = {part for name, _ in used for part in (name, name.partition("/")[0])}
    said = _devices(claim).get("config") or ()
    found += [{"source": "FromClaim", **each} for each in said if not each.get("requests") or names & set(each["requests"])]
    return found


def _devices(claim: _Object) -> _Object:
    found: _Object = (claim.get("spec") or {}).get("devices") or {}
    return found
