"""Which kinds an API server serves: CRDs come and go, versions differ between releases.

Answers are not cached: they are asked for at start and while waiting for a CRD, never on a hot path.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from navarch.kube.errors import NotFound
from navarch.kube.resources import Resource
from navarch.kube.transport import Transport
from navarch.kube.watch.decoding import decoded


class ServedResource(msgspec.Struct, frozen=True):
    """One entry of an APIResourceList; a subresource's name holds a slash, e.g. `pods/binding`."""

    name: str
    kind: str = ""
    namespaced: bool = False
    verbs: list[str] = []


class _ResourceList(msgspec.Struct, frozen=True):
    resources: list[ServedResource] | None = None


class _GroupVersion(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True):
    versions: list[_GroupVersion] = []


class _GroupList(msgspec.Struct, frozen=True):
    groups: list[_Group]


_DECODER = msgspec.json.Decoder(_ResourceList)
_GROUPS = msgspec.json.Decoder(_GroupList)


class Discovery:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def resources(self, resource: Resource) -> list[ServedResource]:
        """All that is served in the group and version of `resource`; empty where that group is unknown."""
        try:
            body = await self._transport.request("GET", resource.group_path)
        except NotFound:
            return []
        served: list[ServedResource] = decoded(_DECODER, body, "GET", resource.group_path).resources or []
        return served

    async def serves(self, resource: Resource, subresource: str | None = None) -> bool:
        """Whether this very group, version and kind (or its subresource) is served."""
        name = f"{resource.plural}/{subresource}" if subresource else resource.plural
        return any(entry.name == name for entry in await self.resources(resource))

    async def lacks(self, candidates: Sequence[Resource]) -> bool:
        """Whether an API server says of itself that it has none of these. A mere 404 may come from a proxy that has lost its
        server. Raises where no such answer is to be had."""
        groups: _GroupList = decoded(_GROUPS, await self._transport.request("GET", "/apis"), "GET", "/apis")
        known = {version.group_version for group in groups.groups for version in group.versions}
        for candidate in candidates:
            if not candidate.group or candidate.api_version in known:
                path = candidate.group_path
                served: _ResourceList = decoded(_DECODER, await self._transport.request("GET", path), "GET", path)
                if any(entry.name == candidate.plural for entry in served.resources or ()):
                    return False
        return True

    async def first_served(self, candidates: Sequence[Resource]) -> Resource | None:
        """The first of several versions of a kind, in the caller's order of preference, that is served."""
        for candidate in candidates:
            if await self.serves(candidate):
                return candidate
        return None
