"""A server at the level of bytes: it reads HTTP requests and answers each with exactly the bytes it is told to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from tests.worlds.kube.ports import hold_port

Answer = bytes | Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


class Request:
    def __init__(self, head: bytes, body: bytes, connection: int) -> None:
        lines = head.decode().split("\r\n")
        self.method, self.path, _ = lines[0].split(" ")
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        self.body = body
        self.connection = connection
        """The number of the connection it came on, from 0."""


def reply(status: int, body: bytes = b"{}", *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status} Text", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


class RawServer:
    """`answer(request)` gives the bytes to send, or a coroutine function that does as it likes with the connection."""

    def __init__(self, answer: Callable[[Request], Answer], ssl_context: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.connections: list[asyncio.StreamWriter] = []
        self._ssl = ssl_context
        self._server: asyncio.Server | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        self._asked = asyncio.Event()
        self._held = hold_port()
        self.port: int = self._held.getsockname()[1]

    @property
    def url(self) -> str:
        return f"{'https' if self._ssl else 'http'}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> RawServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self._ssl)
        return self

    def listen_no_more(self) -> None:
        """Connections that are there stay; new ones are refused."""
        assert self._server is not None
        self._server.close()

    async def __aexit__(self, *_: object) -> None:
        self.listen_no_more()
        for writer in self.connections:
            writer.transport.abort()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self._held.close()

    async def asked(self, times: int) -> None:
        """Wait until this many requests have come."""
        async with asyncio.timeout(120):
            while len(self.requests) < times:
                self._asked.clear()
                await self._asked.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        number = len(self.connections)
        self.connections.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n"))[:-4]
                length = int(Request(head, b"", number).headers.get("content-length", 0))
                request = Request(head, await reader.readexactly(length), number)
                self.requests.append(request)
                self._asked.set()
                answer = self.answer(request)
                if isinstance(answer, bytes):
                    writer.write(answer)
                else:
                    await answer(request, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()
