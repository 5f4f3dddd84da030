"""A write pool against a raw server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.worlds.kube.raw_server import Answer, RawServer, Request

from navarch.kube.auth.credentials import Credentials, StaticCredentials
from navarch.kube.backoff import Backoff
from navarch.kube.connect import Endpoint
from navarch.kube.write.http1 import Reply
from navarch.kube.write.pool import Write, WritePool

NEVER = 3600.0
"""Seconds that no test lasts."""


def endless_backoff() -> Backoff:
    """After a failure no connection is tried again within a test."""
    return Backoff(first=NEVER, cap=NEVER)


@asynccontextmanager
async def pooled(
    answer: Callable[[Request], Answer], *, credentials: Credentials | None = None, **options: Any
) -> AsyncIterator[tuple[WritePool, RawServer]]:
    async with RawServer(answer) as server:
        endpoint = Endpoint(server.url, credentials=credentials or StaticCredentials())
        pool = WritePool(endpoint, rng=random.Random(1), **options)
        try:
            yield pool, server
        finally:
            await pool.close()


def post(name: str = "x", **options: Any) -> Write:
    return Write("POST", f"/api/v1/{name}", b"{}", **options)


async def outcomes(pool: WritePool, writes: list[Write]) -> list[Reply | BaseException]:
    async with asyncio.timeout(120):
        return await asyncio.gather(*(pool.request(write) for write in writes), return_exceptions=True)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0)


async def hang_up(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def silence(_: Request, writer: asyncio.StreamWriter) -> None:
    return None


async def nonsense(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 smtp.example.com ESMTP\r\n\r\n")


class Rotating:
    """Credentials that the server stops accepting."""

    def __init__(self) -> None:
        self.fetches = 0
        self._value: str | None = None

    def cached(self) -> str | None:
        return self._value

    async def authorization(self) -> str:
        self.fetches += 1
        self._value = f"Bearer {self.fetches}"
        return self._value

    def rejected(self) -> None:
        self._value = None
