"""Compares what informers know with what the server lists, kind by kind and page by page, and has a kind read anew that drifted.

Watches tell each change once. A change that was lost, or that arrived corrupted, would never be noticed. So every `EVERY` seconds
each kind is listed in pages and compared. An object that differs may only be newer than the watch has told yet, so it is looked at
again when the watch has passed the version of the list. What differs then has drifted: it is counted, and the kind is listed anew.

The comparison takes `SHARE` of a core at most: after each page it sleeps for as long as that needs. Where the pages of a large kind
expire meanwhile, the part that was listed is compared.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from navarch.kube.errors import Gone, KubeError
from navarch.kube.list_pages import list_metadata
from navarch.kube.resources import Resource
from navarch.kube.watch.decoding import BadObject, key_of
from navarch.kube.watch.informer import Informer
from navarch.kube.watch.object_store import is_newer
from navarch.object_types import ObjectKey

log = logging.getLogger(__name__)

EVERY: Final = 600.0
SHARE: Final = 0.01
PASSED_WITHIN: Final = 150.0
"""Seconds within which the watch has to pass the list: a bookmark comes about once a minute."""
LOOK_SECONDS: Final = 0.5

Agrees = Callable[[Any], bool]
"""Whether an object of a version that is known has the content that is known."""


class Comparison:
    """`drifted(resource, count)` is told of drift. `agrees`: for kinds whose stores do not keep whole objects."""

    def __init__(
        self,
        informers: Callable[[], Sequence[Informer[Any]]],
        drifted: Callable[[Resource, int], None],
        agrees: Mapping[Resource, Agrees],
        rng: random.Random,
        *,
        every: float = EVERY,
    ) -> None:
        self._informers, self._drifted, self._agrees, self._rng, self._every = informers, drifted, agrees, rng, every
        self.rounds = 0
        """How often all kinds were compared."""

    async def run(self) -> None:
        """Compare until cancelled."""
        while True:
            await asyncio.sleep(self._every * self._rng.uniform(0.75, 1.25))
            for informer in self._informers():
                if not informer.synced or informer.absent:
                    continue
                try:
                    await self._compare(informer)
                except KubeError as error:
                    log.info("%s was not compared with the server: %s", informer.resource, error)
            self.rounds += 1

    async def _compare(self, informer: Informer[Any]) -> None:
        differing, version = await self._differing(informer)
        if not differing or not await self._passed(informer, version):
            return
        agrees = self._agrees.get(informer.resource)
        drifted = sorted(key for key, found in differing.items() if _has_drifted(informer, key, found, version, agrees))
        if drifted:
            names = ", ".join("/".join(key).lstrip("/") for key in drifted[:3])
            log.warning("%s: %d objects differ from the server (%s): listing again", informer.resource, len(drifted), names)
            self._drifted(informer.resource, len(drifted))
            informer.read_anew()

    async def _differing(self, informer: Informer[Any]) -> tuple[dict[ObjectKey, Any], str]:
        """Objects that differ, as the server has them (None: not at all), and the version of the list."""
        differing: dict[ObjectKey, Any] = {}
        listed: set[ObjectKey] = set()
        version, agrees = "", self._agrees.get(informer.resource)
        try:
            async with aclosing(informer.pages()) as pages:
                async for body, items in pages:
                    started = time.thread_time()
                    version = list_metadata(body, informer.resource.path()).resource_version
                    for item in items:
                        key = key_of(item.metadata)
                        listed.add(key)
                        if not isinstance(item, BadObject) and _differs(informer, key, item, agrees):
                            differing[key] = item
                    await asyncio.sleep((time.thread_time() - started) / SHARE)
        except Gone:
            return differing, version
        differing.update(dict.fromkeys(informer.store.keys() - listed))
        return differing, version

    async def _passed(self, informer: Informer[Any], version: str) -> bool:
        """Wait until the watch has told all changes up to the version."""
        until = asyncio.get_running_loop().time() + PASSED_WITHIN
        while asyncio.get_running_loop().time() < until:
            known = informer.resource_version
            if known.isdecimal() and version.isdecimal() and int(known) >= int(version):
                return True
            await asyncio.sleep(LOOK_SECONDS)
        return False


def _differs(informer: Informer[Any], key: ObjectKey, item: Any, agrees: Agrees | None) -> bool:
    known = informer.store.get(key)
    if known is None:
        return not informer.is_bad(key)
    if (known.metadata.uid, known.metadata.resource_version) != (item.metadata.uid, item.metadata.resource_version):
        return True
    return not (agrees(item) if agrees is not None else _is_same(known, item))


def _is_same(known: Any, item: Any) -> bool:
    """The items of a list do not name their kind; the objects of a watch do."""
    fields = (field for field in item.__struct_fields__ if field not in ("api_version", "kind"))
    return all(getattr(known, field) == getattr(item, field) for field in fields)


def _has_drifted(informer: Informer[Any], key: ObjectKey, item: Any, version: str, agrees: Agrees | None) -> bool:
    known = informer.store.get(key)
    if item is None:
        return known is not None and int(known.metadata.resource_version or 0) <= int(version)
    if known is not None and is_newer(known.metadata, item.metadata):
        return False
    return _differs(informer, key, item, agrees)
