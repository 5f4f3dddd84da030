"""Faults on demand, for tests: what goes wrong between a client and a real API server, made to go wrong here.

server.faults.cut_watches()                    # every open watch ends, as after a proxy's restart
server.faults.delay(0.5, path="/binding")      # answers come late
server.faults.errors(503, rate=0.1, seed=7)    # one request in ten is refused
server.faults.expire_history()                 # resourceVersions of the past are gone: 410
await server.faults.restart()                  # the listener goes away and comes back on the same port
server.faults.clear()
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from navarch.embedded.api.errors import ApiError
from navarch.embedded.storage.store import Store

REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
    422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip

Hook = Callable[[web.BaseRequest], Awaitable[None]]


@dataclass(slots=True)
class _Rule:
    path: str
    method: str
    rate: float
    random: random.Random
    left: int
    code: int = 0
    seconds: float = 0.0
    retry_after: int = 0

    def strikes(self, request: web.BaseRequest) -> bool:
        if self.left == 0 or self.path not in request.path or self.method not in ("", request.method):
            return False
        if self.rate < 1.0 and self.random.random() >= self.rate:
            return False
        self.left -= 1
        return True


class Faults:
    """Rules that strike requests, and deeds that strike at once."""

    def __init__(self, store: Store, restart: Callable[[float], Awaitable[None]]) -> None:
        self._store = store
        self._restart = restart
        self._rules: list[_Rule] = []
        self._hooks: list[Hook] = []
        self.struck = 0
        """How many requests were refused or delayed so far."""

    def delay(self, seconds: float, *, path: str = "", method: str = "", rate: float = 1.0, seed: int = 0, times: int = -1) -> None:
        """Let requests whose path contains `path` wait before they are served; `times` limits how often."""
        self._rules.append(_Rule(path, method, rate, random.Random(seed), times, seconds=seconds))

    def errors(
        self,
        code: int,
        *,
        path: str = "",
        method: str = "",
        rate: float = 1.0,
        seed: int = 0,
        times: int = -1,
        retry_after: int = 0,
    ) -> None:
        """Refuse requests with a code, before they do anything."""
        self._rules.append(_Rule(path, method, rate, random.Random(seed), times, code=code, retry_after=retry_after))

    def intercept(self, hook: Hook) -> None:
        """Await `hook` for each request before the rules apply. It may wait, record the request, or raise."""
        self._hooks.append(hook)

    def clear(self) -> None:
        """End all rules; hooks stay."""
        self._rules.clear()

    def cut_watches(self) -> int:
        """End the open watches of clients; answers how many."""
        cut = [watch for watch in self._store.watches() if watch.is_remote]
        for watch in cut:
            watch.close()
        return len(cut)

    def expire_history(self) -> int:
        """Forget all history: watches and lists at an older revision get 410."""
        return self._store.compact()

    async def restart(self, down: float = 0.0) -> None:
        """Drop all connections and listen again after `down` seconds, on the same port."""
        await self._restart(down)

    async def before(self, request: web.BaseRequest) -> None:
        """Called for each request; waits or raises as hooks and rules say."""
        for hook in self._hooks:
            await hook(request)
        for rule in self._rules:
            if rule.strikes(request):
                self.struck += 1
                if rule.seconds:
                    await asyncio.sleep(rule.seconds)
                if rule.code:
                    message = f"fault injected: {rule.code} for {request.method} {request.path}"
                    raise ApiError(rule.code, REASONS.get(rule.code, ""), message, retry_after=rule.retry_after)
