"""One connection of the write pool: an asyncio.Protocol that carries one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from navarch.kube.http1 import ProtocolError, Reply, ReplyParser
from navarch.kube.request_head import RequestHead


class Connection(asyncio.Protocol):
    """Sends a request and calls back with its reply, or with the reason why there will be none."""

    def __init__(
        self,
        head: RequestHead,
        replied: Callable[[Connection, Reply], None],
        lost: Callable[[Connection, str], None],
    ) -> None:
        self.idle_since = 0.0
        #: Whether a reply ever came on it.
        self.proven = False
        #: It was made with certificates that have been replaced: no further write goes over it.
        self.outdated = False
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
            self._waiting = False
            self.proven = True
            self._replied(self, reply)

    def eof_received(self) -> None:
        reply = self._parser.end() if self._waiting else None
        if reply is not None:
            self._waiting = False
            self._replied(self, reply)

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None:
            self._reason = str(error) or type(error).__name__
        self._waiting = False
        self.closed.set()
        self._lost(self, self._reason)

    def abort(self, reason: str) -> None:
        """Give the connection up; `lost` follows from the loop."""
        self._reason = reason
        if self._transport is not None:
            self._transport.abort()
