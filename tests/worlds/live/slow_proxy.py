"""A proxy before the API server that takes its time for some requests."""

from __future__ import annotations

import asyncio

from aiohttp import web
from tests.worlds.live.cluster import World
from tests.worlds.live.false_proxy import FalseProxy


class SlowProxy(FalseProxy):
    """`slow`: a part of the paths that take `seconds` longer."""

    def __init__(self, world: World, slow: str, seconds: float) -> None:
        super().__init__(world)
        self.slowed = 0
        self._slow, self._seconds = slow, seconds

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._slow in request.path:
            self.slowed += 1
            await asyncio.sleep(self._seconds)
        return await super()._handle(request)
