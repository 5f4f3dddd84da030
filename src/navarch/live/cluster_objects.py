"""All objects of a cluster that scheduling reads, as manifests: what `navarch explain` and `navarch plan --cluster` decide for.

Each kind is listed once, so its objects are of one resourceVersion; kinds are listed one after another, so a cluster that changes
meanwhile may show two kinds at different moments. Workloads without pods are left out: the cluster's own controllers make theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from navarch.kube.client import Client
from navarch.kube.errors import Forbidden, KubeError, NotFound
from navarch.kube.resources import PODS, Resource
from navarch.live.cache.watched_kinds import watched
from navarch.offline.manifests import Document
from navarch.offline.workload_pods import EXPANDED, kind_of

_UNSEEN_MATTERS = frozenset({"Node", "Pod", "PodGroup", "PriorityClass", "Queue"})


@dataclass
class ClusterObjects:
    documents: list[Document] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was not seen, and at which versions the rest was."""


async def cluster_objects(client: Client) -> ClusterObjects:
    """Raises Forbidden where pods or nodes may not be listed: nothing can be said without them."""
    wanted: list[tuple[str, Sequence[Resource]]] = [("Pod", (PODS,))]
    wanted += [(each.kind, each.candidates) for each in watched()]
    found = ClusterObjects()
    refused: list[str] = []
    answers = await asyncio.gather(*(_listed(client, kind, candidates) for kind, candidates in wanted))
    for (kind, candidates), answer in zip(wanted, answers, strict=True):
        if isinstance(answer, Forbidden):
            if kind in ("Pod", "Node"):
                raise answer
            if kind in _UNSEEN_MATTERS or await _served(client, candidates[0]):
                refused.append(candidates[0].plural)
            continue
        found.documents += (Document(each) for each in answer)
    found.documents = _with_pods(found.documents)
    if refused:
        found.notes.append(f"not seen, because they may not be listed: {', '.join(sorted(set(refused)))}; answers may be wrong")
    return found


async def _listed(client: Client, kind: str, candidates: Sequence[Resource]) -> list[dict[str, Any]] | Forbidden:
    for resource in candidates:
        try:
            listing = await client.list(resource)
        except NotFound:
            continue
        except Forbidden as error:
            return error
        return [{**each, "apiVersion": resource.api_version, "kind": kind} for each in listing.items]
    return []


async def _served(client: Client, resource: Resource) -> bool:
    try:
        return await client.discovery.serves(resource)
    except KubeError:
        return True


def _with_pods(documents: list[Document]) -> list[Document]:
    """All but workloads: their pods are there, and of those that have none the controllers take care."""
    owners = {
        (str(each.manifest["metadata"].get("namespace")), str(owner.get("kind")), str(owner.get("name")))
        for each in documents
        for owner in each.manifest["metadata"].get("ownerReferences") or ()
    }
    return [
        each
        for each in documents
        if kind_of(each.manifest) not in EXPANDED
        or (str(each.manifest["metadata"].get("namespace")), each.manifest["kind"], each.manifest["metadata"]["name"]) in owners
    ]
