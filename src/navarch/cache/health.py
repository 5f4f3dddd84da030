"""HTTP for operators: /livez, /readyz, /healthz, /metrics, and /debug/snapshot for callers on this machine.

/livez says whether the event loop turns (that it answers at all is the proof). /readyz and /healthz say whether the cluster is
mirrored, and if not, what is still missing. A replica that does not lead is ready: it could lead at once.

Five GETs, each on a connection of its own: kubelets and Prometheus ask a few times a minute, for which no framework is needed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable

from msgspec import Struct

from navarch.cache.exposition import CONTENT_TYPE, Registry

log = logging.getLogger(__name__)

Missing = Callable[[], list[str]]
"""What keeps us from being ready; empty: nothing."""
MAX_HEAD = 16 * 1024
PATIENCE = 30.0
"""Seconds for a caller to ask, and to take the answer."""
_PHRASES = {
    200: "OK",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class ListenError(ValueError):
    """The address cannot be listened on; the message says which and why."""


class Answer(Struct, frozen=True):
    body: bytes
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[str, ...] = ()

    def encoded(self, with_body: bool) -> bytes:
        head = [
            f"HTTP/1.1 {self.status} {_PHRASES[self.status]}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(self.body)}",
            "Connection: close",
            *self.headers,
        ]
        return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + (self.body if with_body else b"")


class Health:
    def __init__(
        self, missing: Missing, registry: Registry, snapshot: Callable[[], Awaitable[bytes]], refresh: Callable[[], None]
    ) -> None:
        self._missing = missing
        self._registry = registry
        self._snapshot = snapshot
        self._refresh = refresh
        self._server: asyncio.Server | None = None
        self._callers: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def start(self, listen: str) -> None:
        host, _, port = listen.rpartition(":")
        try:
            self._server = await asyncio.start_server(self._serve, host.strip("[]") or None, int(port), limit=MAX_HEAD)
        except (OSError, ValueError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ListenError(f"{listen}: expected an address such as 0.0.0.0:8080 that is free: {reason}") from error
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in self._callers:
                writer.transport.abort()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._callers.add(writer)
        try:
            async with asyncio.timeout(PATIENCE):
                asked = await reader.readuntil(b"\r\n\r\n")
            method, _, rest = asked.partition(b"\r\n")[0].decode("latin-1").partition(" ")
            answer = await self._answer(method, rest.partition(" ")[0].partition("?")[0], writer)
            writer.write(answer.encoded(with_body=method != "HEAD"))
            async with asyncio.timeout(PATIENCE):
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:  # TimeoutError is an OSError
            log.debug("a caller of the health port went away or said nothing: %s", error)
        finally:
            self._callers.discard(writer)
            writer.transport.abort()

    async def _answer(self, method: str, path: str, writer: asyncio.StreamWriter) -> Answer:
        if method not in ("GET", "HEAD"):
            return Answer(b"only GET\n", 405, headers=("Allow: GET, HEAD",))
        try:
            if path == "/livez":
                return Answer(b"ok")
            if path in ("/readyz", "/healthz"):
                return self._ready()
            if path == "/metrics":
                self._refresh()
                return Answer(self._registry.text(), content_type=CONTENT_TYPE)
            if path == "/debug/snapshot":
                return await self._debug_snapshot(writer)
        except Exception:
            log.exception("%s failed", path)
            return Answer(b"this failed; the log says how\n", 500)
        return Answer(b"expected /livez, /readyz, /healthz, /metrics or /debug/snapshot\n", 404)

    def _ready(self) -> Answer:
        missing = self._missing()
        if missing:
            return Answer("".join(f"[-]{each}\n" for each in missing).encode(), 503)
        return Answer(b"ok")

    async def _debug_snapshot(self, writer: asyncio.StreamWriter) -> Answer:
        """The input of the last cycle as `navarch replay` reads it. It names every pod of the cluster: loopback only."""
        peer = writer.get_extra_info("peername")
        if not _is_loopback(peer[0] if peer else None):
            return Answer(b"only from the machine itself\n", 403)
        name = 'Content-Disposition: attachment; filename="navarch-cycle.json.gz"'
        return Answer(await self._snapshot(), content_type="application/gzip", headers=(name,))


def _is_loopback(remote: str | None) -> bool:
    try:
        return remote is not None and ipaddress.ip_address(remote.partition("%")[0]).is_loopback
    except ValueError:
        return False
