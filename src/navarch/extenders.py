"""Asks extenders: HTTP servers that take part in scheduling cycles.

A cycle stops at a question (`engine/points/conversation.py`). `converse` asks it here, runs the cycle again, and goes on until the
cycle is decided. The requests of one question are sent at the same time.

A server that fails several times in a row is not asked for a while (a circuit breaker): a cycle must not wait for one time-out after
another. Its questions fail at once then, and the rules decide what that means.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from navarch.engine.points.conversation import Answer, Exchange, Manifest, Notice, Question, Request, Server, failed
from navarch.engine.record import CycleRecord
from navarch.kube.json_http import JsonServer, ServerError, unverified

log = logging.getLogger(__name__)

AT_ONCE: Final = 16
"""Requests to one server that are under way at the same time."""
FAILURES: Final = 5
"""After this many failures in a row a server is not asked for `PAUSE` seconds."""
PAUSE: Final = 30.0
MOST_QUESTIONS: Final = 2000
"""Questions of one cycle that are asked. Further ones fail."""
MOST_REQUEST_BYTES: Final = 100 << 20


class _Breaker:
    def __init__(self) -> None:
        self.failures = 0
        self.open_until = 0.0


class ExtenderClient:
    """`manifest` gives the API object for a place in a body. `clock` is monotonic, in seconds."""

    def __init__(self, manifest: Callable[[Manifest], Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._manifest = manifest
        self._clock = clock
        self._servers: dict[bytes, JsonServer] = {}
        self._breakers: dict[str, _Breaker] = {}

    async def answer(self, question: Question) -> Exchange:
        """Send the notices, then the requests; returns every answer, or why there is none."""
        await self.tell(question.notices)
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(request: Request) -> Answer:
            async with slots:
                return await self._send(question.server, request)

        answers = await asyncio.gather(*(one(request) for request in question.requests))
        return Exchange(question.attempt, question.requests[0].verb, tuple(answers))

    async def tell(self, notices: Sequence[Notice]) -> None:
        """One after the other. A failure is logged and changes nothing."""
        for notice in notices:
            answer = await self._send(notice.server, notice.request)
            if answer.error:
                log.warning("extender: %s", answer.error)

    async def close(self) -> None:
        for server in self._servers.values():
            await server.close()
        self._servers.clear()

    def problems(self) -> list[str]:
        """Servers that are not asked at present."""
        now = self._clock()
        return [self._paused(url) for url, each in sorted(self._breakers.items()) if now < each.open_until]

    async def _send(self, server: Server, request: Request) -> Answer:
        breaker = self._breakers.setdefault(server.url, _Breaker())
        if self._clock() < breaker.open_until:
            return Answer(error=self._paused(server.url))
        try:
            body = msgspec.json.encode(self._filled(request.body))
            if len(body) > MOST_REQUEST_BYTES:
                return Answer(error=f"the request {request.verb} has {len(body)} bytes, expected at most {MOST_REQUEST_BYTES}")
            found = (await self._server(server).post(request.verb, body)).decode()
        except (ServerError, UnicodeDecodeError, OSError, ssl.SSLError, ValueError) as error:
            self._failed(server, breaker)
            return Answer(error=str(error))
        breaker.failures = 0
        return Answer(found)

    def _failed(self, server: Server, breaker: _Breaker) -> None:
        breaker.failures += 1
        if breaker.failures >= FAILURES:
            breaker.failures, breaker.open_until = 0, self._clock() + PAUSE
            log.warning("%s", self._paused(server.url))

    def _paused(self, url: str) -> str:
        name = JsonServer(url, timeout=0).name
        return f"{name}: it failed {FAILURES} times in a row and is not asked for {PAUSE:g} s"

    def _server(self, server: Server) -> JsonServer:
        key = msgspec.json.encode(server)
        found = self._servers.get(key)
        if found is None:
            name = server.tls.get("serverName") or None
            made = JsonServer(server.url, timeout=server.timeout, tls=tls_context(server.tls), server_name=name)
            found = self._servers[key] = made
        return found

    def _filled(self, value: Any) -> Any:
        """The body with API objects in their places."""
        if isinstance(value, Manifest):
            return _changed(self._manifest(value), value)
        if isinstance(value, Mapping):
            return {key: self._filled(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._filled(each) for each in value]
        return value


def _changed(found: Any, asked: Manifest) -> Any:
    """The object with the fields that the cycle has changed."""
    plain = found if isinstance(found, Mapping) else msgspec.to_builtins(found)
    out = {key: value for key, value in plain.items() if not (asked.bare and key in ("kind", "apiVersion"))}
    for path, value in asked.changes:
        at = out
        *way, last = path.split(".")
        for part in way:
            at[part] = dict(at.get(part) or {})
            at = at[part]
        at[last] = value
    return out


def tls_context(given: Mapping[str, Any]) -> ssl.SSLContext | None:
    """The context for a server's TLS settings, with the names of kube-scheduler's `tlsConfig`; None: that of the system."""
    if not given:
        return None
    if given.get("insecure"):
        context = unverified()
    else:
        authority = base64.b64decode(given["caData"]).decode() if given.get("caData") else None
        context = ssl.create_default_context(cafile=given.get("caFile") or None, cadata=authority)
    if given.get("certData") and given.get("keyData"):
        with tempfile.NamedTemporaryFile() as pair:  # OpenSSL reads a certificate and its key from files alone
            pair.write(base64.b64decode(given["certData"]) + b"\n" + base64.b64decode(given["keyData"]))
            pair.flush()
            context.load_cert_chain(pair.name)
    elif given.get("certFile") and given.get("keyFile"):
        context.load_cert_chain(given["certFile"], given["keyFile"])
    return context


async def converse(
    record: CycleRecord, decide: Callable[[list[Exchange]], CycleRecord], extenders: ExtenderClient, most: int = MOST_QUESTIONS
) -> CycleRecord:
    """Ask until the cycle is decided: `decide` runs it again with these exchanges. The last notices are left to the caller."""
    exchanges: list[Exchange] = []
    while record.question is not None:
        question = record.question
        if len(exchanges) < most:
            exchanges.append(await extenders.answer(question))
        else:
            exchanges.append(failed(question, f"the cycle has more than {most} questions"))
        record = decide(exchanges)
    return record
