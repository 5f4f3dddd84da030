"""What the informer tests share: a typed pod and a handler that writes down what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from navarch.kube.client import Client
from navarch.kube.resources import PODS, Resource
from navarch.kube.watch.informer import Informer
from navarch.kube.watch.patience import Patience

QUICK = Patience(idle=60.0, initial_idle=60.0, initial_total=60.0, retry_first=0.01, retry_longest=0.05, absent_longest=0.05)
"""Tries again after milliseconds: the tests go through every path without waiting for it. What a server may take its time for is
not among these, or a slow machine would be told as a server that does not answer."""


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    priority: int = 0


class Pod(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: Spec = Spec()


class Recorder:
    """Told of changes; `story` is what a user of an informer would have seen."""

    def __init__(self) -> None:
        self.story: list[tuple[str, ...]] = []
        self.bad: list[tuple[str, str]] = []
        self.alive: dict[str, Pod] = {}
        self._changed = asyncio.Event()

    def added(self, new: Pod) -> None:
        assert new.metadata.uid not in self.alive, f"{new.metadata.name} added twice"
        self.alive[new.metadata.uid] = new
        self._tell("added", new.metadata.name)

    def updated(self, old: Pod, new: Pod) -> None:
        assert self.alive[old.metadata.uid] is old, f"{new.metadata.name}: old is not what was told before"
        self.alive[new.metadata.uid] = new
        self._tell("updated", new.metadata.name)

    def deleted(self, old: Pod) -> None:
        assert self.alive.pop(old.metadata.uid) is old, f"{old.metadata.name}: not what was told before"
        self._tell("deleted", old.metadata.name)

    def on_bad(self, metadata: Any, error: Exception) -> None:
        self.bad.append((metadata.name, str(error)))
        self._changed.set()

    def _tell(self, *what: str) -> None:
        self.story.append(what)
        self._changed.set()

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until it is so; no polling, each change is looked at."""
        async with asyncio.timeout(120):
            while not true():
                self._changed.clear()
                await self._changed.wait()

    async def heard(self, *what: str) -> None:
        await self.until(lambda: what in self.story)


@asynccontextmanager
async def informing(
    client: Client, seen: Recorder, resource: Resource = PODS, *, sync: bool = True, **options: Any
) -> AsyncIterator[Informer[Pod]]:
    """An informer that runs while the block does."""
    options.setdefault("patience", QUICK)
    informer = Informer(client, resource, Pod, seen, on_bad=seen.on_bad, **options)
    task = asyncio.create_task(informer.run())
    try:
        if sync:
            async with asyncio.timeout(120):
                await informer.wait_for_sync()
        yield informer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled(), task.exception()
