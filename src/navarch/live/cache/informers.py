"""Every informer with its handler: they fill the cache."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, TypeVar

import msgspec

from navarch.apis.core.nodes import Node
from navarch.apis.core.objects import KubeObject
from navarch.apis.core.partial_pod import read_partial_pod
from navarch.apis.core.pod_objects import Pod
from navarch.apis.operators.readers import KINDS as WORKLOAD_KINDS
from navarch.kube.backoff import Backoff
from navarch.kube.client import PAGE_SIZE, Client
from navarch.kube.discovery import ServedNow
from navarch.kube.errors import Gone, KubeError
from navarch.kube.resources import PODS, Resource
from navarch.kube.supervision import Supervise, run_once
from navarch.kube.watch.decoding import BadObject, ObjectDecoder, Salvage
from navarch.kube.watch.informer import Informer
from navarch.kube.watch.informer_group import InformerGroup
from navarch.kube.watch.object_store import is_newer
from navarch.kube.watch.patience import Patience
from navarch.live.cache.handlers import KindHandler, ObjectCache, OnInvalid, PodHandler
from navarch.live.cache.watched_kinds import watched
from navarch.object_types import ObjectKey

log = logging.getLogger(__name__)

T = TypeVar("T", bound=KubeObject)
KAI_CONFIG = Resource("kai.scheduler", "v1", "configs", namespaced=False)
ADVICE = "`navarch install` makes an account that has every right it needs"


class Informers:
    """Starts with pods only. The server is asked which versions of the other kinds it serves."""

    def __init__(
        self,
        client: Client,
        cache: ObjectCache,
        on_invalid: OnInvalid,
        patience: Patience | None,
        rng: random.Random,
        supervise: Supervise = run_once,
    ) -> None:
        self.group = InformerGroup(client, patience=patience, rng=rng, advice=ADVICE, supervise=supervise)
        self.kinds: list[tuple[Informer[Any], KindHandler]] = []
        self.resources: dict[str, Resource] = {}
        """Kind -> the version that is watched (the last one, for kinds in several groups)."""
        self.pod_handler = PodHandler(cache, PODS, on_invalid)
        self.pods: Informer[Pod] = self.group.add(
            PODS,
            Pod,
            self.pod_handler,
            on_bad=self.pod_handler.bad,
            salvage=read_partial_pod,
            paged=True,
            objects=cache.pods,
            contradiction=cache.contradiction,
        )
        self._of_owners: dict[str, Informer[Any]] = {}
        """Informers of kinds that own pods and say how many of them form a gang."""
        self.kai_is_installed = False
        """Whether the kind Config of KAI's operator is served, which manages its controllers."""
        self._opened = asyncio.Event()
        self._backoff = Backoff(first=0.5, cap=10.0, rng=rng)
        self._client = client
        self._cache = cache
        self._on_invalid = on_invalid

    async def run(self) -> None:
        """Watch everything until cancelled. Waits for a server that does not answer yet."""
        await self._open()
        await self.group.run()

    async def wait_for_sync(self) -> None:
        await self._opened.wait()
        await self.group.wait_for_sync()

    async def _open(self) -> None:
        served = ServedNow(self._client.discovery)
        self.kai_is_installed = await self._first(served, (KAI_CONFIG,)) is not None
        for kind in watched()[len(self.kinds) :]:  # what an earlier attempt added is there
            found = await self._first(served, kind.candidates)
            resource = found or kind.candidates[0]
            objects: dict[ObjectKey, KubeObject] = {}
            handler = KindHandler(self._cache, kind, resource, self._on_invalid, objects)
            informer = self.group.add(
                resource,
                kind.struct,
                handler,
                on_bad=handler.bad,
                optional=kind.optional,
                absent=found is None,
                versions=kind.candidates,
                on_version=partial(self._moved, handler),
                paged=issubclass(kind.struct, Node),
                objects=objects,
            )
            self.kinds.append((informer, handler))
            self.resources[kind.kind] = resource
            if kind.reader in WORKLOAD_KINDS:
                self._of_owners[kind.kind] = informer
        self._opened.set()

    def watches_owners(self, kind: str) -> bool:
        """Whether every owner of this kind is put into the cache sooner or later."""
        informer = self._of_owners.get(kind)
        return informer is not None and informer.synced and not informer.absent

    def _moved(self, handler: KindHandler, resource: Resource) -> None:
        """A CRD was installed with another version than expected, or the server was upgraded."""
        handler.resource = resource
        self.resources[handler.kind.kind] = resource

    async def _first(self, served: ServedNow, candidates: tuple[Resource, ...]) -> Resource | None:
        """The first version that is served. None: none of them is."""
        while True:
            try:
                return await served.first(candidates)
            except KubeError as error:
                wait = self._backoff.next()
                log.warning("the API server does not say which kinds it serves: %s; retry in %.1f s", error, wait)
                await asyncio.sleep(wait)

    async def read_again(self) -> None:
        """Put every object into the cache again. Objects that the stores hold only in part are fetched. Invalid objects among those
        were reported when they were first seen."""
        for informer, handler in self.kinds:
            if issubclass(handler.kind.struct, Node):
                async for node in self._fetch(informer.resource, Node):
                    if _is_current(node, informer.store.get(("", node.metadata.name))):
                        handler.added(node)
            else:
                for found in list(informer.store.values()):
                    handler.added(found)
        async for pod in self._fetch(PODS, Pod, read_partial_pod):
            if _is_current(pod, self.pods.store.get((pod.metadata.namespace or "", pod.metadata.name))):
                self.pod_handler.added(pod)

    async def _fetch(self, resource: Resource, kind: type[T], salvage: Salvage[T] | None = None) -> AsyncIterator[T]:
        """All valid objects of a kind; some of them twice if pages expire meanwhile."""
        decoder = ObjectDecoder(kind, salvage)
        for page_size in (PAGE_SIZE, 0):
            try:
                async for page in self._client.pages(resource, msgspec.Raw, page_size=page_size):
                    for raw in page.items or ():
                        found = decoder.item(raw)
                        if not isinstance(found, BadObject):
                            yield found
                return
            except Gone:
                if page_size == 0:
                    raise

    def serves(self, resource: Resource) -> bool:
        """Whether the informer of this kind knows that it is served."""
        return any(i.resource == resource and i.synced and not i.absent for i, _ in self.kinds)

    def missing(self) -> list[str]:
        if not self._opened.is_set():
            return ["the API server has not answered yet"]
        return [f"{resource} has not been read yet" for resource in self.group.unsynced]


def _is_current(listed: KubeObject, known: KubeObject | None) -> bool:
    """Whether the watch has not shown a newer version since the list: the cache would already have that."""
    return known is not None and not is_newer(known.metadata, listed.metadata)
