"""Discovery: which kinds an API server serves. CRDs come and go, and versions differ between releases.

Answers are not cached: they are requested at start and while waiting for a CRD, not on a hot path.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from navarch.kube.errors import NotFound
from navarch.kube.resources import Resource
from navarch.kube.transport import Transport
from navarch.kube.watch.decoding import decoded


class ServedResource(msgspec.Struct, frozen=True):
    """One entry of an APIResourceList. The name of a subresource contains a slash: `pods/binding`."""

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
        """All kinds that are served in the group and version of `resource`; empty if the group is unknown."""
        try:
            body = await self._transport.request("GET", resource.group_path)
        except NotFound:
            return []
        served: list[ServedResource] = decoded(_DECODER, body, "GET", resource.group_path).resources or []
        return served

    async def serves(self, resource: Resource, subresource: str | None = None) -> bool:
        """Whether this group, version and kind (or its subresource) is served."""
        name = f"{resource.plural}/{subresource}" if subresource else resource.plural
        return any(entry.name == name for entry in await self.resources(resource))

    async def lacks(self, candidates: Sequence[Resource]) -> bool:
        """Whether the API server itself says that it serves none of these. A 404 alone may come from a proxy that has lost its server.
        Raises if the server does not answer."""
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
