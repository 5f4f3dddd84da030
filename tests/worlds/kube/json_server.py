"""A real HTTP server for clients of JSON: it notes each request and answers as it is told."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

Handler = Callable[[web.Request, Any], Awaitable[web.StreamResponse]]


class Served:
    """Where the server listens, and what it was asked: (method, path, decoded body)."""

    def __init__(self) -> None:
        self.address = ""
        self.requests: list[tuple[str, str, Any]] = []
        self.headers: list[dict[str, str]] = []


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    """`tls`: serve https with this context."""
    served = Served()

    async def answer(request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            body = msgspec.json.decode(raw) if raw else None
        except msgspec.DecodeError:
            body = raw.decode()
        served.requests.append((request.method, request.path_qs, body))
        served.headers.append(dict(request.headers))
        return await handler(request, body)

    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listener, ssl_context=tls).start()
    served.address = f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield served
    finally:
        await runner.cleanup()


def saying(value: Any, status: int = 200) -> Handler:
    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        raw = value if isinstance(value, bytes) else msgspec.json.encode(value)
        return web.Response(body=raw, status=status, content_type="application/json")

    return answer


def hanging() -> Handler:
    """Answers when the client has gone."""

    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    return answer


def endless() -> Handler:
    """Sends until the client has gone."""

    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65536)

    return answer
