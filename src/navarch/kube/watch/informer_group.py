"""Many informers as one: started together, in sync together, and told when a CRD makes a kind appear.

    group = InformerGroup(client)
    group.add(PODS, Pod, pods_handler)
    group.add(VOLCANO_QUEUES, Queue, queue_handler, optional=True)
    task = asyncio.create_task(group.run())
    await group.wait_for_sync()

An optional kind whose CRD is absent looks for itself now and then (`Patience.absent_longest`). So that it need not wait
for that, the group watches CustomResourceDefinitions and pokes the informers whose kind was just established. Where
our account may not read CRDs, the looking now and then is what remains. A cluster lacks half of the kinds that one could
have: those that are absent at the start are logged together, and after that each that appears or goes; so are those that may not
be watched.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any, TypeVar

import msgspec

from navarch.kube.client import Client
from navarch.kube.resources import CRDS, Resource
from navarch.kube.watch.decoding import HasMetadata, Metadata, ObjectMetadata
from navarch.kube.watch.forbidden_kinds import ForbiddenKinds
from navarch.kube.watch.informer import Informer, Patience, log_served
from navarch.kube.watch.object_store import Handler

log = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)


class CrdNames(msgspec.Struct, frozen=True, gc=False):
    plural: str = ""


class CrdSpec(msgspec.Struct, frozen=True, gc=False):
    group: str = ""
    names: CrdNames = CrdNames()


class CrdCondition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class CrdStatus(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[CrdCondition, ...] | None = None


class Crd(msgspec.Struct, frozen=True, gc=False):
    """The few fields of a CustomResourceDefinition that tell which kind it establishes."""

    metadata: ObjectMetadata
    spec: CrdSpec = CrdSpec()
    status: CrdStatus = CrdStatus()

    @property
    def established(self) -> bool:
        return any(each.type == "Established" and each.status == "True" for each in self.status.conditions or ())


class InformerGroup:
    """Informers that share a client, a patience and a random source."""

    def __init__(
        self, client: Client, *, patience: Patience | None = None, rng: random.Random | None = None, advice: str = ""
    ) -> None:
        """`advice` is told to whoever runs this under an account that lacks rights."""
        self.informers: list[Informer[Any]] = []
        self._forbidden = ForbiddenKinds(advice)
        self._client = client
        self._patience = patience
        self._rng = rng or random.Random()
        self._all_asked = False
        """It is known of each optional kind whether it is served, and that was logged."""

    def add(self, resource: Resource, type: type[T], handler: Handler[T], **options: Any) -> Informer[T]:
        """One more kind to mirror, before `run`. Options are those of `Informer`."""
        options.setdefault("patience", self._patience)
        options.setdefault("on_served", self._tell_later if options.get("optional") else log_served)
        options.setdefault("on_forbidden", self._forbidden.add)
        informer = Informer(self._client, resource, type, handler, rng=self._rng, **options)
        self.informers.append(informer)
        return informer

    @property
    def unsynced(self) -> list[Resource]:
        """The kinds that `wait_for_sync` is still waiting for, for whoever is asked why nothing happens."""
        return [informer.resource for informer in self.informers if not informer.synced]

    @property
    def synced(self) -> bool:
        return all(informer.synced for informer in self.informers)

    async def wait_for_sync(self) -> None:
        """Return when every handler has been told the whole state of its kind."""
        for informer in self.informers:
            await informer.wait_for_sync()

    async def run(self) -> None:
        """Mirror all kinds until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self.informers:
                tasks.create_task(informer.run(), name=f"informer {informer.resource}")
            if any(informer.optional for informer in self.informers):
                tasks.create_task(self._tell_absent(), name="absent kinds")
                crds = Informer(
                    self._client,
                    CRDS,
                    Crd,
                    _Poker(self.informers),
                    optional=True,
                    on_bad=_pass_over,
                    on_forbidden=self._forbidden.add,
                    patience=self._patience,
                    rng=self._rng,
                )
                tasks.create_task(crds.run(), name="informer CRDs")

    async def _tell_absent(self) -> None:
        optional = [informer for informer in self.informers if informer.optional]
        for informer in optional:
            await informer.wait_for_sync()
        absent = sorted(str(informer.versions[0]) for informer in optional if informer.absent)
        if absent:
            log.info("not served here, and waited for: %s", ", ".join(absent))
        self._all_asked = True

    def _tell_later(self, resource: Resource, served: bool) -> None:
        if self._all_asked:
            log_served(resource, served)


class _Poker:
    """Tells informers that wait for a kind when its CRD is there."""

    def __init__(self, informers: list[Informer[Any]]) -> None:
        self._informers = informers

    def added(self, new: Crd, /) -> None:
        if new.established:
            for informer in self._informers:
                resource = informer.resource
                if (resource.group, resource.plural) == (new.spec.group, new.spec.names.plural):
                    informer.poke()

    def updated(self, old: Crd, new: Crd, /) -> None:
        self.added(new)

    def deleted(self, old: Crd, /) -> None:
        return None


def _pass_over(metadata: Metadata, error: Exception) -> None:
    """A CRD that cannot be read pokes nobody."""
