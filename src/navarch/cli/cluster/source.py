"""Objects to decide or explain for: from files, from a live cluster, or from both (`plan --cluster -f new-job.yaml`)."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from navarch.apis.errors import ObjectError
from navarch.cli.cluster.leader import Leader
from navarch.cli.scheduler_names import served
from navarch.kube.client import Client
from navarch.kube.connect import connect
from navarch.kube.errors import Forbidden
from navarch.live.cache.informers import KAI_CONFIG
from navarch.live.cluster_objects import cluster_objects
from navarch.offline.manifests import Document, read_paths
from navarch.views.published_state import PublishedState, StateAddress, WaitingPage


@dataclass
class Source:
    documents: list[Document] = field(default_factory=list)
    unread: list[ObjectError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was not seen of the cluster."""
    scheduler_names: Sequence[str] | None = None
    now: float | None = None
    state: PublishedState | None = None
    """What the running scheduler of the cluster publishes."""
    waiting: WaitingPage | None = None
    """The jobs that wait, as the leader has them, for users who may read that."""
    kai_is_installed: bool = False
    """Whether KAI's kind Config is served."""


def read_source(
    paths: Sequence[str],
    cluster: bool,
    kubeconfig: Path | None,
    context: str | None,
    address: StateAddress,
    scheduler_names: Sequence[str],
    now: float | None,
    *,
    with_waiting: bool = False,
) -> Source:
    """`cluster`: with the objects of the cluster; an object in a file replaces the one of the same name there. `with_waiting`: with
    the leader's page of waiting jobs."""
    documents, unread = read_paths(paths) if paths else ([], [])
    if not cluster:
        return Source(documents, unread, [], scheduler_names or None, now)

    async def listed() -> Source:
        async with Client(connect(kubeconfig, context)) as client:
            found = await cluster_objects(client)
            kai_is_installed = False
            with contextlib.suppress(Forbidden):
                kai_is_installed = await client.discovery.serves(KAI_CONFIG)
            leader = Leader(client, address)
            state = await leader.state()
            waiting = await leader.waiting() if with_waiting and (state is not None or address.url) else None
        given = {_identity(each) for each in documents}
        known = [each for each in found.documents if _identity(each) not in given]
        ours = scheduler_names or (state.scheduler_names if state is not None else ())
        names = served(ours, (each.manifest for each in known if each.manifest["kind"] == "Node"))
        moment = time.time() if now is None else now
        return Source([*known, *documents], unread, found.notes, sorted(names), moment, state, waiting, kai_is_installed)

    return asyncio.run(listed())


def _identity(document: Document) -> tuple[object, object, object]:
    metadata = document.manifest.get("metadata") or {}
    return document.manifest.get("kind"), metadata.get("namespace") or "default", metadata.get("name")
