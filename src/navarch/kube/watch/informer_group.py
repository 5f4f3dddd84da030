"""Many informers: started together, synced together, and retried when a CRD makes a kind available.

    group = InformerGroup(client)
    group.add(PODS, Pod, pods_handler)
    group.add(VOLCANO_QUEUES, Queue, queue_handler, optional=True)
    task = asyncio.create_task(group.run())
    await group.wait_for_sync()

The informer of an optional kind without a CRD tries again now and then (`Patience.absent_longest`). The group also watches
CustomResourceDefinitions and retries the informers of a kind at once when it is established. Without the right to read CRDs only the
periodic retries remain. Kinds that are absent at the start are logged in one line, and later each kind that appears or disappears.
Kinds that the account may not watch are logged in one line too.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any, TypeVar

import msgspec

from navarch.kube.client import Client
from navarch.kube.resources import CRDS, Resource
from navarch.kube.supervision import Supervise, Work, run_once
from navarch.kube.watch.decoding import HasMetadata, Metadata, ObjectMetadata
from navarch.kube.watch.forbidden_kinds import ForbiddenKinds
from navarch.kube.watch.informer import Informer, log_served
from navarch.kube.watch.object_store import Handler
from navarch.kube.watch.patience import Patience

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
    """The fields of a CustomResourceDefinition that name its kind and say whether it is established."""

    metadata: ObjectMetadata
    spec: CrdSpec = CrdSpec()
    status: CrdStatus = CrdStatus()

    @property
    def established(self) -> bool:
        return any(each.type == "Established" and each.status == "True" for each in self.status.conditions or ())


class InformerGroup:
    """Informers that share a client, time-outs and a random source."""

    def __init__(
        self,
        client: Client,
        *,
        patience: Patience | None = None,
        rng: random.Random | None = None,
        advice: str = "",
        supervise: Supervise = run_once,
    ) -> None:
        """`advice` is added to the log line about missing rights."""
        self._supervise = supervise
        self.informers: list[Informer[Any]] = []
        self._forbidden = ForbiddenKinds(advice)
        self._client = client
        self._patience = patience
        self._rng = rng or random.Random()
        self._all_asked = False
        """Whether it is known and logged for each optional kind if it is served."""

    def add(self, resource: Resource, type: type[T], handler: Handler[T], **options: Any) -> Informer[T]:
        """Add a kind, before `run`. The options are those of `Informer`."""
        options.setdefault("patience", self._patience)
        options.setdefault("on_served", self._tell_later if options.get("optional") else log_served)
        options.setdefault("on_forbidden", self._forbidden.add)
        informer = Informer(self._client, resource, type, handler, rng=self._rng, **options)
        self.informers.append(informer)
        return informer

    @property
    def unsynced(self) -> list[Resource]:
        """The kinds that `wait_for_sync` is still waiting for."""
        return [informer.resource for informer in self.informers if not informer.synced]

    @property
    def failures(self) -> list[str]:
        """Why kinds that `wait_for_sync` is still waiting for could not be read."""
        return [informer.last_failure for informer in self.informers if not informer.synced and informer.last_failure]

    @property
    def synced(self) -> bool:
        return all(informer.synced for informer in self.informers)

    async def wait_for_sync(self) -> None:
        """Return when every handler has received all objects of its kind."""
        for informer in self.informers:
            await informer.wait_for_sync()

    async def run(self) -> None:
        """List and watch all kinds until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self.informers:
                tasks.create_task(self._run(f"informer {informer.resource}", informer.run))
            if any(informer.optional for informer in self.informers):
                tasks.create_task(self._run("absent kinds", self._tell_absent))
                crds = Informer(
                    self._client,
                    CRDS,
                    Crd,
                    CrdHandler(self.informers),
                    optional=True,
                    on_bad=_pass_over,
                    on_forbidden=self._forbidden.add,
                    patience=self._patience,
                    rng=self._rng,
                )
                tasks.create_task(self._run("informer CRDs", crds.run))

    async def _run(self, name: str, work: Work) -> None:
        await self._supervise(name, work)

    async def _tell_absent(self) -> None:
        optional = [informer for informer in self.informers if informer.optional]
        for informer in optional:
            await informer.wait_for_sync()
        absent = sorted(str(informer.versions[0]) for informer in optional if informer.absent)
        if absent:
            log.info("not served, waiting for: %s", ", ".join(absent))
        self._all_asked = True

    def _tell_later(self, resource: Resource, served: bool) -> None:
        if self._all_asked:
            log_served(resource, served)


class CrdHandler:
    """Retries informers that wait for a kind when its CRD is established."""

    def __init__(self, informers: list[Informer[Any]]) -> None:
        self._informers = informers

    def added(self, new: Crd, /) -> None:
        if new.established:
            for informer in self._informers:
                resource = informer.resource
                if (resource.group, resource.plural) == (new.spec.group, new.spec.names.plural):
                    informer.retry_now()

    def updated(self, old: Crd, new: Crd, /) -> None:
        self.added(new)

    def deleted(self, old: Crd, /) -> None:
        return None


def _pass_over(metadata: Metadata, error: Exception) -> None:
    """A CRD that cannot be read is ignored."""
