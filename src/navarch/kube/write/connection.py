"""One connection of the write pool: an asyncio.Protocol that carries one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from navarch.kube.connect import Endpoint
from navarch.kube.write.http1 import ProtocolError, Reply, ReplyParser


class RequestHead:
    """The headers that all requests share, encoded once for each value of the credential."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._prefix = endpoint.prefix.encode()
        default_port = 443 if endpoint.tls else 80
        name = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        host = name if endpoint.port == default_port else f"{name}:{endpoint.port}"
        fixed = [("Host", host), ("Accept", "application/json"), ("User-Agent", endpoint.user_agent), *endpoint.headers]
        self._fixed = "".join(f"{key}: {value}\r\n" for key, value in fixed).encode("latin-1")
        self.credential: str | None = None
        """The credential that requests are sent with now."""
        self._encoded = b""

    def current(self) -> bytes | None:
        """The shared headers; None if the credential must be fetched first."""
        value = self._endpoint.credentials.cached()
        if value is None:
            return None
        if value != self.credential:
            self.credential = value
            self._encoded = self._fixed
            if value:
                self._encoded += f"Authorization: {value}\r\n".encode("latin-1")
        return self._encoded

    async def fetch(self) -> None:
        await self._endpoint.credentials.authorization()

    def request(self, method: str, path: str, content_type: str, body: bytes) -> bytes:
        """A whole request as bytes."""
        line = f"{method} ".encode() + self._prefix + f"{path} HTTP/1.1\r\n".encode("ascii")
        ending = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode("ascii")
        return line + self._encoded + ending + body


class Connection(asyncio.Protocol):
    """Sends a request and calls back with its reply or its error."""

    def __init__(
        self,
        head: RequestHead,
        replied: Callable[[Connection, Reply], None],
        lost: Callable[[Connection, str], None],
    ) -> None:
        self.idle_since = 0.0
        self.proven = False
        """Whether it has carried a reply."""
        self.outdated = False
        """Its certificates have been replaced: it carries no further write."""
        self.closed = asyncio.Event()
        self._head = head
        self._replied = replied
        self._lost = lost
        self._parser = ReplyParser()
        self._transport: asyncio.Transport | None = None
        self._waiting = False
        self._reason = "the connection was closed before the reply"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)

    @property
    def usable(self) -> bool:
        """False once either side has begun to close it."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, method: str, path: str, content_type: str, body: bytes) -> None:
        assert self._transport is not None and not self._waiting
        self._waiting = True
        self._transport.write(self._head.request(method, path, content_type, body))

    def data_received(self, data: bytes) -> None:
        if not self._waiting:
            self.abort("bytes that belong to no request")
            return
        try:
            reply = self._parser.feed(data)
        except ProtocolError as error:
            self.abort(str(error))
            return
        if reply is not None:
            self._complete(reply)

    def eof_received(self) -> None:
        reply = self._parser.end() if self._waiting else None
        if reply is not None:
            self._complete(reply)

    def _complete(self, reply: Reply) -> None:
        self._waiting = False
        self.proven = True
        self._replied(self, reply)

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None:
            self._reason = str(error) or type(error).__name__
        self._waiting = False
        self.closed.set()
        self._lost(self, self._reason)

    def abort(self, reason: str) -> None:
        """Close the connection; the loop then calls `lost`."""
        self._reason = reason
        if self._transport is not None:
            self._transport.abort()
