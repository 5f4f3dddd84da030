"""A proxy before the API server that answers some requests itself, and otherwise passes on what it gets.

    async with FalseProxy(world) as proxy, world.scheduler(kubeconfig=proxy.kubeconfig):
        proxy.answer(lambda method, path: path.endswith("/binding"), 404, b"<html>", times=1, carried_out=True)

`hold_watches()` keeps back what watches bring, as a slow network does, until `release_watches()`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import aiohttp
import yaml
from aiohttp import web
from tests.worlds.live.cluster import World
from yarl import URL

_numbers = itertools.count()
_DROPPED = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})


@dataclass
class FalseAnswer:
    strikes: Callable[[str, str], bool]
    """method, path"""
    status: int
    body: bytes
    left: int
    carried_out: bool
    """The server gets the request; only its answer is replaced."""
    told: int = 0


class FalseProxy:
    def __init__(self, world: World) -> None:
        self.seen: list[tuple[str, str]] = []
        self.answers: list[FalseAnswer] = []
        self.kubeconfig: Path = world.folder / f"false-proxy-{next(_numbers)}.kubeconfig"
        self._world = world
        self._flows = asyncio.Event()
        self._flows.set()
        self._runner: web.ServerRunner | None = None
        self._session: aiohttp.ClientSession | None = None

    def answer(
        self, strikes: Callable[[str, str], bool], status: int, body: bytes, *, times: int = -1, carried_out: bool = False
    ) -> FalseAnswer:
        made = FalseAnswer(strikes, status, body, times, carried_out)
        self.answers.append(made)
        return made

    def hold_watches(self) -> None:
        self._flows.clear()

    def release_watches(self) -> None:
        self._flows.set()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(auto_decompress=False, connector=aiohttp.TCPConnector(limit=0))
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None, handler_cancellation=True), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        server = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": self._world.namespace}}],
            "current-context": "x",
        }
        self.kubeconfig.write_text(yaml.safe_dump(document), encoding="utf-8")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None and self._session is not None
        self._flows.set()
        await self._session.close()
        await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.seen.append((request.method, request.path))
        lie = next((each for each in self.answers if each.left and each.strikes(request.method, request.path)), None)
        if lie is not None:
            lie.left -= 1
            lie.told += 1
            if lie.carried_out:
                async with await self._ask(request) as reply:
                    await reply.read()
            return web.Response(status=lie.status, body=lie.body, content_type="text/html")
        watched = request.query.get("watch") == "true"
        async with await self._ask(request) as reply:
            kept = {name: value for name, value in reply.headers.items() if name.lower() not in _DROPPED}
            if not watched or reply.status != 200:
                return web.Response(status=reply.status, body=await reply.read(), headers=kept)
            answer = web.StreamResponse(status=200, headers=kept)
            await answer.prepare(request)
            async for chunk in reply.content.iter_any():
                await self._flows.wait()
                await answer.write(self.passed_on(request, chunk))
            return answer

    def passed_on(self, request: web.BaseRequest, chunk: bytes) -> bytes:
        """What of a watch goes to the client."""
        return chunk

    async def _ask(self, request: web.BaseRequest) -> aiohttp.ClientResponse:
        assert self._session is not None
        endpoint = self._world.client.endpoint
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _DROPPED]
        if authorization := await endpoint.credentials.authorization():
            headers.append(("Authorization", authorization))
        return await self._session.request(
            request.method,
            URL(endpoint.base + request.path_qs, encoded=True),
            data=await request.read() or None,
            headers=headers,
            ssl=endpoint.ssl_context or True,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None),
        )
