"""Connections to one API server: some that are used again and again, some for one stream each.

A connection is used again only if it was made with the certificates of now, so after they were replaced no request goes over a
connection of the old ones. API servers close idle connections after 90 s or more; we do so earlier, so that no request races
with that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from navarch.kube.connect import Endpoint
from navarch.kube.streaming_connection import StreamingConnection

IDLE_LIMIT = 45.0


class ConnectionPool:
    """`limit` bounds the connections of `taken`; those of `open` belong to their caller and are not counted."""

    def __init__(self, endpoint: Endpoint, limit: int) -> None:
        self._endpoint = endpoint
        self._slots = asyncio.Semaphore(limit)
        self._idle: list[StreamingConnection] = []
        self._open: set[StreamingConnection] = set()

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[StreamingConnection]:
        """A connection for one request and its whole reply. Raises ConnectionError where there is none to be had."""
        async with self._slots:
            connection = self._rested() or await self.open()
            try:
                yield connection
            finally:
                if connection.usable:
                    connection.idle_since = asyncio.get_running_loop().time()
                    self._idle.append(connection)
                else:
                    connection.abort()

    async def open(self) -> StreamingConnection:
        """A new connection. Ask for it after the credential, which can be a certificate."""
        endpoint, context = self._endpoint, self._endpoint.ssl_context
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: StreamingConnection(context, self._open.discard),
                endpoint.host,
                endpoint.port,
                ssl=context,
                server_hostname=(endpoint.tls_server_name or endpoint.host) if context else None,
            )
        except (OSError, UnicodeError) as error:  # ssl.SSLError is an OSError; a host that is no name a UnicodeError
            said = str(error) or type(error).__name__
            raise ConnectionError(f"cannot connect to {endpoint.host}:{endpoint.port}: {said}") from error
        self._open.add(connection)
        return connection

    async def close(self) -> None:
        """Requests and streams under way fail."""
        self._idle.clear()
        closing = list(self._open)
        for connection in closing:
            connection.abort()
        for connection in closing:
            await connection.closed.wait()

    def _rested(self) -> StreamingConnection | None:
        """The connection used last, if it still serves; those that do not are let go."""
        context, now = self._endpoint.ssl_context, asyncio.get_running_loop().time()
        fit = [c for c in self._idle if c.usable and c.context is context and now - c.idle_since < IDLE_LIMIT]
        for connection in self._idle:
            if connection not in fit:
                connection.abort()
        self._idle = fit
        return fit.pop() if fit else None
