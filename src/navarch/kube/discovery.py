"""Discovery: which kinds an API server serves. CRDs come and go, and versions differ between releases.

Answers are not cached: they are requested at start and while waiting for a CRD, not on a hot path. A start asks about fifty kinds at
one moment, and `ServedNow` asks each question once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Literal

import msgspec

from navarch.kube.errors import Forbidden, NotFound
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
    resources: list[ServedResource] | None
    kind: Literal["APIResourceList", ""] = ""


class _GroupVersion(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True):
    versions: list[_GroupVersion] = []


class _GroupList(msgspec.Struct, frozen=True):
    groups: list[_Group]
    kind: Literal["APIGroupList", ""] = ""


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

    async def versions(self) -> frozenset[str]:
        """The groups with versions that are served, without the core group."""
        groups: _GroupList = decoded(_GROUPS, await self._transport.request("GET", "/apis"), "GET", "/apis")
        return frozenset(version.group_version for group in groups.groups for version in group.versions)

    async def lacks(self, candidates: Sequence[Resource]) -> bool:
        """Whether the API server itself says that it serves none of these. A 404 alone may come from a proxy that has lost its server.
        Raises if the server does not answer."""
        known = await self.versions()
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


class ServedNow:
    """Which of many kinds a server serves at one moment."""

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery
        self._asked = False
        self._versions: frozenset[str] | None = None
        """None: the server does not tell them."""
        self._names: dict[str, frozenset[str]] = {}
        """Path of a group and version -> the kinds that are served there."""

    async def first(self, candidates: Sequence[Resource]) -> Resource | None:
        """The first of several versions of a kind that is served. Of a kind with one version only its group is looked at."""
        if not self._asked:
            with contextlib.suppress(Forbidden, NotFound):
                self._versions = await self._discovery.versions()
            self._asked = True
        for candidate in candidates:
            if candidate.group and self._versions is not None and candidate.api_version not in self._versions:
                continue
            if len(candidates) == 1 or candidate.plural in await self._served_in(candidate):
                return candidate
        return None

    async def _served_in(self, resource: Resource) -> frozenset[str]:
        path = resource.group_path
        if path not in self._names:
            self._names[path] = frozenset(entry.name for entry in await self._discovery.resources(resource))
        return self._names[path]
