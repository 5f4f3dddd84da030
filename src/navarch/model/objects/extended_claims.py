"""Extended resources as requests for devices: which requests the claim has that stands for them.

A pod may ask for devices of a class by the name of an extended resource. On a node that does not report the resource, a ResourceClaim
is made for the pod, with a request for each container. Init containers that end before the others start use devices of later
containers first. Devices that they need beyond those are requested once, for the init container that needs most.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""With the name of a class: the extended resource that every class has."""
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of such a claim."""


class ContainerRequest(Struct, frozen=True):
    """Of one container, in the order of their start: its requests by name. `is_init`: it ends before the next starts."""

    name: str
    is_init: bool
    requests: tuple[tuple[str, int], ...]
    """In the order of names. An amount that is no whole number counts as 0."""

    def asks(self, resource: str) -> int:
        return dict(self.requests).get(resource, 0)


class DeviceRequests(Struct, frozen=True):
    """`requests`: (name, devices). `uses`: (container, name of a request that it uses)."""

    requests: tuple[tuple[str, int], ...]
    uses: tuple[tuple[str, str], ...]


def device_requests(containers: Sequence[ContainerRequest], resource: str) -> DeviceRequests:
    """The requests that stand for one resource."""
    lasting: dict[int, tuple[str, int]] = {}
    uses: list[tuple[str, str]] = []
    for number, container in enumerate(containers):
        count = container.asks(resource)
        if count and not container.is_init:
            lasting[number] = _name(number, container, resource), count
            uses.append((container.name, lasting[number][0]))
    extra: tuple[str, int] | None = None
    further: list[tuple[str, str]] = []
    own: set[str] = set()
    for number, container in enumerate(containers):
        missing = container.asks(resource) if container.is_init else 0
        for later, (name, count) in lasting.items():
            if missing > 0 and later >= number:
                further.append((container.name, name))
                missing -= count
        if missing > 0:
            name = _name(number, container, resource)
            own.add(name)
            further.append((container.name, name))
            if extra is None or extra[1] < missing:
                extra = name, missing
    if extra is not None:
        further = [(container, extra[0] if name in own else name) for container, name in further]
    found = [*([extra] if extra is not None else ()), *lasting.values()]
    return DeviceRequests(tuple(sorted(found)), tuple(uses + further))


def _name(number: int, container: ContainerRequest, resource: str) -> str:
    place = [name for name, _ in container.requests].index(resource)
    return f"container-{number}-request-{place}"
