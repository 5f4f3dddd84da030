"""HTTP/1.1 with nothing around it: the cheapest way from Python to an API server.

The load generator and the bare client use it, so that what they cost is as close to nothing as it gets and the bare
client is a ceiling worth the name. It knows just enough: keep-alive, one request at a time on a connection, a reply with
a length or in chunks. It is deliberately not `navarch.kube`: a ceiling made of the thing that is measured says little.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast
from urllib.parse import urlsplit

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """Where to send, from a kubeconfig that tests/envtest wrote: one cluster, one user with a token."""

    host: str
    port: int
    ca_file: str
    token: str

    @classmethod
    def read(cls, kubeconfig: Path) -> Self:
        config = json.loads(kubeconfig.read_text(encoding="utf-8"))
        cluster = config["clusters"][0]["cluster"]
        address = urlsplit(cluster["server"])
        token = config["users"][0]["user"]["token"]
        return cls(str(address.hostname), int(address.port or 443), cluster["certificate-authority"], token)

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca_file)


class Reply(Exception):
    """A reply that is not a 2xx, with the server's own words."""


class Connection(asyncio.Protocol):
    """One connection; `post` waits for the reply before the next request may be sent."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._buffer = bytearray()
        self._reply: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class is no subclass of it

    def connection_lost(self, exc: Exception | None) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(exc or ConnectionError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end])
        length = LENGTH.search(head)
        if length is not None:
            if len(self._buffer) < end + 4 + int(length[1]):
                return
        elif CHUNKED.search(head) is not None and not self._buffer.endswith(b"0\r\n\r\n"):
            return
        body = bytes(self._buffer[end + 4 :])
        self._buffer.clear()
        if self._reply is not None and not self._reply.done():
            self._reply.set_result((int(head[9:12]), body))

    async def post(self, path: str, body: bytes) -> bytes:
        assert self._transport is not None
        self._reply = asyncio.get_running_loop().create_future()
        self._transport.write(b"POST %b%b%d\r\n\r\n%b" % (path.encode(), self._head, len(body), body))
        status, text = await self._reply
        if status >= 300:
            raise Reply(f"POST {path}: {status} {text.decode(errors='replace')}")
        return text

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Pool:
    """Connections that take requests as they become free."""

    def __init__(self, target: Target, size: int) -> None:
        self._target = target
        self._size = size
        self._connections: list[Connection] = []
        self._free: asyncio.Queue[Connection] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        tls = self._target.tls()
        lines = [
            " HTTP/1.1",
            f"Host: {self._target.host}:{self._target.port}",
            f"Authorization: Bearer {self._target.token}",
            "Content-Type: application/json",
            "Accept: application/json",
            "Content-Length: ",
        ]
        head = "\r\n".join(lines).encode()
        for _ in range(self._size):
            _, connection = await loop.create_connection(lambda: Connection(head), self._target.host, self._target.port, ssl=tls)
            self._connections.append(connection)
            self._free.put_nowait(connection)
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()

    async def post(self, path: str, body: bytes) -> bytes:
        """One request on whichever connection is free next."""
        connection = await self._free.get()
        try:
            return await connection.post(path, body)
        finally:
            self._free.put_nowait(connection)

    async def post_all(self, requests: Iterable[tuple[str, bytes]]) -> None:
        """Many requests, every connection busy until none is left."""
        remaining = iter(requests)

        async def drain(connection: Connection) -> None:
            for path, body in remaining:
                await connection.post(path, body)

        await asyncio.gather(*(drain(connection) for connection in self._connections))
