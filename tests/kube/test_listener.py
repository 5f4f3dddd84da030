"""The bounds of a listener: how many connections there are, of one address, and for how long one may be silent."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web

from navarch.embedded.api.certificates import load_or_make
from navarch.kube.listener import Bounds, Listener


@asynccontextmanager
async def listening(bounds: Bounds, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(text="ok")

    runner = web.ServerRunner(web.Server(answer, keepalive_timeout=bounds.silent_seconds))
    await runner.setup()
    listener = Listener(runner, "127.0.0.1", 0, tls, bounds)
    await listener.start()
    try:
        yield listener.port
    finally:
        await listener.stop()
        await runner.cleanup()


async def ask(port: int, text: bytes = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    return reader, writer


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost", b"\x16\x03\x01"])
@pytest.mark.parametrize("over_tls", [False, True])
async def test_a_connection_without_a_whole_request_is_closed(sent: bytes, over_tls: bool) -> None:
    tls = load_or_make(None, "127.0.0.1").ssl_context() if over_tls else None
    async with listening(Bounds(silent_seconds=0.3), tls) as port, asyncio.timeout(60):
        reader, writer = await ask(port, sent)
        with suppress(ConnectionError):
            await reader.read()
        writer.close()


async def test_a_connection_that_was_answered_may_ask_again_and_is_closed_when_it_falls_silent() -> None:
    async with listening(Bounds(silent_seconds=1.0)) as port, asyncio.timeout(60):
        reader, writer = await ask(port)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET / HTTP/1.1\r\nHo")
        assert await reader.read() == b""
        writer.close()


async def test_more_connections_wait_until_one_ends() -> None:
    async with listening(Bounds(most=2, per_address=5)) as port, asyncio.timeout(60):
        open_ones = [await ask(port) for _ in range(2)]
        for reader, _ in open_ones:
            await reader.readuntil(b"ok")
        waiting, writer = await ask(port)
        answered = asyncio.create_task(waiting.readuntil(b"ok"))
        assert not (await asyncio.wait([answered], timeout=0.3))[0]
        open_ones[0][1].close()
        await answered
        for _, each in (*open_ones, (waiting, writer)):
            each.close()


async def test_one_address_has_no_more_than_its_part() -> None:
    async with listening(Bounds(most=10, per_address=2)) as port, asyncio.timeout(60):
        open_ones = [await ask(port) for _ in range(2)]
        for reader, _ in open_ones:
            await reader.readuntil(b"ok")
        refused, writer = await ask(port)
        with suppress(ConnectionError):
            assert await refused.read() == b""
        for _, each in (*open_ones, (refused, writer)):
            each.close()
