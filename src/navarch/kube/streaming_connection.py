"""A connection that carries one request at a time and hands the reply over as it comes: lists of megabytes, watches of hours.

Who reads slowly holds the server back: beyond `BUFFER` bytes that nobody took, the socket is not read.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

from navarch.kube.http1 import Body, Head, ProtocolError, take_head

#: Big enough that a burst of watch events is handed over in few pieces, small enough for a pause between pieces.
BUFFER = 256 * 1024


class StreamingConnection(asyncio.Protocol):
    """`send`, then `head`, then `piece` until it is empty. Raises ConnectionError or ProtocolError where the reply breaks off."""

    def __init__(self, context: ssl.SSLContext | None, lost: Callable[[StreamingConnection], None]) -> None:
        #: What it was made with.
        self.context = context
        self.idle_since = 0.0
        self.closed = asyncio.Event()
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._head: Head | None = None
        self._body: Body | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._paused = False
        self._broken: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        #: A request went out whose reply has not begun.
        self._waiting = False

    @property
    def usable(self) -> bool:
        """It can carry the next request: open, and the last reply came whole with nothing after it."""
        if self._transport is None or self._transport.is_closing() or self._broken is not None:
            return False
        if self._head is None or self._body is None:
            return not self._waiting
        return self._body.done and not self._body.excess and self._head.reusable and not self._pieces

    def send(self, request: bytes) -> None:
        assert self._transport is not None
        self._head = self._body = None
        self._waiting = True
        self._transport.write(request)

    async def head(self) -> Head:
        while self._head is None:
            await self._arrival()
        return self._head

    async def piece(self) -> bytes:
        """What has come of the body since; empty: that was all of it."""
        while not self._pieces:
            if self._body is not None and self._body.done:
                return b""
            await self._arrival()
        piece = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return piece

    async def body(self) -> bytes:
        pieces = []
        while piece := await self.piece():
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def abort(self) -> None:
        """Give it up without good-bye: TLS would wait for an answer to that."""
        if self._transport is not None:
            self._transport.abort()

    async def _arrival(self) -> None:
        if self._broken is not None:
            raise self._broken
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._take(data)
        except ProtocolError as error:
            self._broken = error
            self.abort()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        complete = self._body is not None and (self._body.end() if error is None else self._body.done)
        if not complete and self._broken is None:
            said = str(error) if error is not None else ""
            self._broken = ConnectionError(said or "the connection was closed before the end of the reply")
        self.closed.set()
        self._wake()
        self._lost(self)

    def _take(self, data: bytes) -> None:
        if self._body is None:
            if not self._waiting:
                raise ProtocolError("bytes that belong to no request")
            self._buffer += data
            self._head = take_head(self._buffer)
            if self._head is None:
                return
            self._waiting = False
            self._body = Body(self._head)
            data = bytes(self._buffer)
            self._buffer.clear()
        own = self._body.feed(data)
        if own:
            self._pieces.append(own)
            self._size += len(own)
            if self._size > BUFFER and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()
