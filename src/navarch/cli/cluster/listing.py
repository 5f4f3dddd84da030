"""The objects that `navarch jobs`, `queues` and `nodes` list: all that the user may list.

Most users may read only their own namespace. A kind that may not be listed in all namespaces is listed in the requested one. If that
is forbidden too, one line says so; otherwise the objects would seem to be absent. An API server also answers "forbidden" for kinds
that it does not serve, so discovery is asked first.

Owners give the minimum of pods without a group. Owners without pods are left out: the reader of manifests would make pods for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from navarch.apis.core.objects import KubeObject, from_manifest
from navarch.apis.kai.pod_grouper import grouping_of
from navarch.apis.operators.readers import KINDS as OWNERS
from navarch.apis.registry import KINDS
from navarch.kube.client import Client
from navarch.kube.errors import Forbidden, KubeError, NotFound
from navarch.kube.resources import PODS, Resource
from navarch.offline.manifests import Document
from navarch.views.workloads import Workload

OWNING = frozenset(kind.kind for kind in OWNERS)
LOOKED_AT = ("Namespace", "Node", "PodGroup", "PriorityClass", "Queue", *sorted(OWNING))
Versions = Sequence[tuple[Resource, str]]
"""The versions of a kind, and its name."""


@dataclass(frozen=True)
class Refused:
    """A kind that is served and that we may not list."""

    kind: str
    plural: str
    error: Forbidden


@dataclass(frozen=True)
class Fetched:
    """The objects of a kind. `narrowed`: they are those of one namespace."""

    kind: str
    api_version: str
    objects: Sequence[Any]
    narrowed: bool


@dataclass
class Listed:
    documents: list[Document] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    narrowed: set[str] = field(default_factory=set)
    """Kinds that were listed in one namespace alone."""
    workloads: list[tuple[dict[str, Any], Workload]] = field(default_factory=list)
    """Jobs and Volcano Jobs, for rows of jobs."""

    @property
    def complete(self) -> bool:
        """Whether every pod, node, queue and group of the cluster was seen, so that places in queues can be told."""
        return not self.refused and not self.narrowed

    @property
    def unseen(self) -> frozenset[str]:
        """Kinds that may have objects which were not listed."""
        return frozenset(each.kind for each in self.refused)

    def told(self, *kinds: str) -> str:
        """The message about kinds that could not be listed (only these kinds, if any are given)."""
        return not_listed([each for each in self.refused if not kinds or each.kind in kinds])


def not_listed(refused: Sequence[Refused]) -> str:
    return f"not shown, since they may not be listed: {', '.join(each.plural for each in refused)} ({refused[0].error})"


async def listed(client: Client, namespace: str | None = None) -> Listed:
    """All objects for the rows. `namespace`: where to list kinds that may not be listed in all namespaces."""
    wanted: dict[str, list[tuple[Resource, str]]] = {"Pod.": [(PODS, "Pod")]}
    for (api_version, name), kind in KINDS.items():
        if name in LOOKED_AT:
            group, _, version = api_version.rpartition("/")
            resource = Resource(group, version, kind.plural, namespaced=kind.namespaced)
            wanted.setdefault(f"{name}.{group}", []).append((resource, name))
    found = Listed()
    for answer in await asyncio.gather(*(fetched(client, versions, namespace) for versions in wanted.values())):
        if isinstance(answer, Refused):
            found.refused.append(answer)
            continue
        if answer.narrowed:
            found.narrowed.add(answer.kind)
        found.documents += (Document({**each, "apiVersion": answer.api_version, "kind": answer.kind}, "") for each in answer.objects)
    found.documents = _with_pods(found.documents)
    return found


def _with_pods(documents: Iterable[Document]) -> list[Document]:
    """The documents without owners that own none of the pods."""
    documents = list(documents)
    if not any(each.manifest["kind"] in OWNING for each in documents):
        return documents
    owners: set[tuple[str, str, str]] = set()
    for each in documents:
        if each.manifest["kind"] == "Pod":
            metadata = from_manifest(each.manifest, KubeObject).metadata
            owner = grouping_of(metadata.name, metadata.controller, metadata.label_map).owner
            if owner is not None:
                owners.add((metadata.namespace or "default", *owner))
    return [each for each in documents if each.manifest["kind"] not in OWNING or _key(each.manifest) in owners]


def _key(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    return manifest["metadata"].get("namespace") or "default", manifest["kind"], manifest["metadata"]["name"]


async def fetched(client: Client, versions: Versions, namespace: str | None = None, type: Any = dict[str, Any]) -> Fetched | Refused:
    """The objects of a kind in the first version that is served; only those of the namespace where no others may be listed."""
    for resource, kind in versions:
        narrowed = False
        try:
            listing = await client.list(resource, type)
        except NotFound:
            continue
        except Forbidden as error:
            if not await _served(client, resource):
                continue
            plural = f"{resource.plural}.{resource.group}".rstrip(".")
            if namespace is None or not resource.namespaced:
                return Refused(kind, plural, error)
            try:
                listing = await client.list(resource, type, namespace=namespace)
                narrowed = True
            except Forbidden as narrower:
                return Refused(kind, plural, narrower)
        return Fetched(kind, resource.api_version, listing.items, narrowed)
    return Fetched(versions[0][1], versions[0][0].api_version, [], False)


async def _served(client: Client, resource: Resource) -> bool:
    """Whether the server has this kind; True if it does not answer."""
    try:
        return await client.discovery.serves(resource)
    except KubeError:
        return True
