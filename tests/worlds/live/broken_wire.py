"""A wire that breaks: everything passes through, and now and then a connection ends just when the server has answered.

The server has then done what it was asked, and the client does not know. TLS passes through untouched.
"""

from __future__ import annotations

import asyncio
import random


class BreakingWire:
    """Listens on `port` and forwards to the server. `rate` is the chance that a piece of an answer breaks the connection."""

    def __init__(self, server_port: int, seed: int) -> None:
        self.port = 0
        self.rate = 0.0
        self.broken = 0
        self.sides: set[_Side] = set()
        self._server_port = server_port
        self._rng = random.Random(seed)
        self._listener: asyncio.Server | None = None

    async def __aenter__(self) -> BreakingWire:
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: _Client(self), "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listener is not None
        self._listener.close()
        for side in list(self.sides):
            side.abort()
        await self._listener.wait_closed()
        while self.sides:
            await asyncio.sleep(0)

    def cut(self) -> None:
        """From now on no answer comes through; what is open ends. `rate = 0` mends it."""
        self.rate = 1.0
        for side in list(self.sides):
            side.abort()

    async def join(self, client: _Client) -> None:
        try:
            _, server = await asyncio.get_running_loop().create_connection(
                lambda: _Server(self, client), "127.0.0.1", self._server_port
            )
        except OSError:
            client.abort()
            return
        client.joined(server)

    def breaks(self) -> bool:
        if not self.rate or self._rng.random() >= self.rate:
            return False
        self.broken += 1
        return True


class _Side(asyncio.Protocol):
    def __init__(self, wire: BreakingWire) -> None:
        self.wire = wire
        self.other: _Side | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.wire.sides.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.wire.sides.discard(self)
        if self.other is not None:
            self.other.abort()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def send(self, piece: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(piece)


class _Client(_Side):
    def __init__(self, wire: BreakingWire) -> None:
        super().__init__(wire)
        self._early: list[bytes] = []
        self._joining: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._joining = asyncio.get_running_loop().create_task(self.wire.join(self))

    def joined(self, server: _Side) -> None:
        self.other = server
        if self not in self.wire.sides:
            server.abort()
        for piece in self._early:
            server.send(piece)

    def data_received(self, piece: bytes) -> None:
        if self.other is None:
            self._early.append(piece)
        else:
            self.other.send(piece)


class _Server(_Side):
    def __init__(self, wire: BreakingWire, client: _Client) -> None:
        super().__init__(wire)
        self.other = client

    def data_received(self, piece: bytes) -> None:
        assert self.other is not None
        if self.wire.breaks():
            self.abort()
        else:
            self.other.send(piece)
