"""Sees pods become bound, by one watch that carries nothing else.

The selector `spec.nodeName!=` lets a pod into the watch at the moment it is bound, so each pod costs one event here and
on the server, whatever else happens to it. A busy API server closes watches that it cannot serve fast enough (it does
so to kube-scheduler's in the same moment); this one goes on from the last version that it saw.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Self

import aiohttp
import msgspec

from bench.live import objects
from bench.live.wire import Target


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    version: str = msgspec.field(name="resourceVersion", default="")


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: _Pod


class Observer:
    """`bound` maps a pod's name to the monotonic second at which it was seen bound."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._session: aiohttp.ClientSession | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self.bound: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            f"https://{self._target.host}:{self._target.port}",
            headers={"Authorization": f"Bearer {self._target.token}"},
            connector=aiohttp.TCPConnector(ssl=self._target.tls()),
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=1 << 20,
        )
        reply = await self._watch("")
        self._task = asyncio.create_task(self._read(reply))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _watch(self, version: str) -> aiohttp.ClientResponse:
        assert self._session is not None
        params = {"watch": "true", "fieldSelector": "spec.nodeName!="}
        if version:
            params["resourceVersion"] = version
        reply = await self._session.get(objects.PODS, params=params)
        reply.raise_for_status()
        return reply

    async def _read(self, reply: aiohttp.ClientResponse) -> None:
        decoder = msgspec.json.Decoder(_Event)
        version = ""
        while True:
            async for line in reply.content:
                event = decoder.decode(line)
                if event.type == "ERROR":
                    raise ConnectionError(f"the watch on bound pods was refused: {line.decode()}")
                version = event.object.metadata.version
                if event.type == "ADDED":
                    self.bound.setdefault(event.object.metadata.name, time.monotonic())
                    self._changed.set()
            reply = await self._watch(version)

    async def wait_for(self, count: int, timeout: float, check: Callable[[], None]) -> None:
        """Until that many pods are bound; TimeoutError says how many were. `check` may end the wait by raising."""
        await self._wait(lambda: len(self.bound) >= count, timeout, check, f"of {count} pods")

    async def wait_for_pod(self, name: str, timeout: float, check: Callable[[], None]) -> None:
        """Until this pod is bound."""
        await self._wait(lambda: name in self.bound, timeout, check, f"pods, but not {name},")

    async def _wait(self, done: Callable[[], bool], timeout: float, check: Callable[[], None], expected: str) -> None:
        deadline = time.monotonic() + timeout
        while not done():
            if self._task is not None and self._task.done():
                self._task.result()
            check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.bound)} {expected} bound after {timeout:.0f} s")
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), 1.0)
