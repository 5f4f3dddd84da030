"""How this project listens for HTTP: a bounded number of connections, and a bounded time for a request's headers.

A connection that sends half a request holds a descriptor. Without bounds a stranger takes all of them, and then the process cannot
open a connection to the API server either. So:

- At most `Bounds.most` connections are open; more wait in the system's queue until one ends. Of one address at most
  `Bounds.per_address` are open; further ones are closed at once.
- A connection without a whole request within `Bounds.silent_seconds`, at its beginning or after its last answer, is closed, and so is
  a TLS handshake that takes that long.
- The bounds stay below a quarter of the descriptors that the system allows (`raise_descriptor_limit` asks for all of them).

    listener = Listener(runner, "0.0.0.0", 8080, context)      # an aiohttp runner after `setup()`
    await listener.start()
    await listener.stop()
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
from functools import partial
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from msgspec import Struct

log = logging.getLogger(__name__)

BACKLOG: Final = 1024
AT_ONCE: Final = 32
"""Connections that are accepted before other work goes on."""
ROOM_SECONDS: Final = 0.05
PAUSE_SECONDS: Final = 1.0
"""After an error of `accept`: no descriptors are left, say."""
MOST_DESCRIPTORS: Final = 65536


class Bounds(Struct, frozen=True):
    most: int = 1024
    per_address: int = 768
    """Less than all, so that one address never keeps the others out. Proxies speak for many."""
    silent_seconds: float = 15.0


def raise_descriptor_limit() -> None:
    """Take as many descriptors as the system allows: the soft limit is often 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Listener:
    """Accepts connections for the server of an aiohttp runner, whose `keepalive_timeout` has to be `Bounds.silent_seconds` too."""

    def __init__(
        self, runner: web.BaseRunner, host: str | None, port: int, tls: ssl.SSLContext | None = None, bounds: Bounds | None = None
    ) -> None:
        """`host` None: every address of both families."""
        assert runner.server is not None
        self.port = port
        self._server = runner.server
        self._host, self._tls, self._bounds = host, tls, bounds or Bounds()
        self._most = min(self._bounds.most, max(16, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._address: dict[RequestHandler, str] = {}
        """Connections that are open."""
        self._beginning: set[RequestHandler] = set()
        """Those whose TLS handshake is not over."""
        self._silent: set[RequestHandler] = set()
        """Those without a whole request."""
        make_request = self._server.request_factory

        def heard(message: Any, payload: Any, protocol: RequestHandler, *more: Any) -> web.BaseRequest:
            self._silent.discard(protocol)
            return make_request(message, payload, protocol, *more)

        self._server.request_factory = heard

    async def start(self) -> None:
        """Raises OSError for an address that cannot be used."""
        flags, kind = socket.AI_PASSIVE, socket.SOCK_STREAM
        found = await asyncio.get_running_loop().getaddrinfo(self._host, self.port, type=kind, flags=flags)
        try:
            for family, _, protocol, _, address in dict.fromkeys(found):
                self._listen(family, protocol, (address[0], self.port, *address[2:]))
        except OSError:
            self._close_sockets()
            raise
        for each in self._sockets:
            self._resume(each)

    def _listen(self, family: int, protocol: int, address: tuple[object, ...]) -> None:
        made = socket.socket(family, socket.SOCK_STREAM, protocol)
        self._sockets.append(made)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
        self.port = int(made.getsockname()[1])

    async def stop(self) -> None:
        """Listen no more. Connections that are open belong to the runner."""
        loop, tasks = asyncio.get_running_loop(), list(self._tasks)
        for each in self._sockets:
            loop.remove_reader(each)
        for task in tasks:
            task.cancel()
        self._close_sockets()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _close_sockets(self) -> None:
        for each in self._sockets:
            each.close()
        self._sockets.clear()

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _pause(self, listening: socket.socket, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)
        loop.call_later(seconds, self._resume, listening)

    def _accept(self, listening: socket.socket) -> None:
        """Connections wait. `loop.sock_accept` is not used: cancelled at the wrong moment, it loses one."""
        for _ in range(AT_ONCE):
            held = self._open()
            if len(held) >= self._most:
                self._pause(listening, ROOM_SECONDS)
                return
            try:
                accepted, (address, *_) = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("port %d accepts no connection now: %s", self.port, error)
                self._pause(listening, PAUSE_SECONDS)
                return
            if sum(each == address for each in held.values()) >= self._bounds.per_address:
                accepted.close()
                continue
            accepted.setblocking(False)
            protocol = self._server()
            self._address[protocol] = address
            self._beginning.add(protocol)
            task = asyncio.get_running_loop().create_task(self._begin(protocol, accepted))
            self._tasks.add(task)
            task.add_done_callback(partial(self._began, protocol, accepted))

    def _began(self, protocol: RequestHandler, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if protocol in self._beginning:  # it was cancelled before it ran
            self._beginning.discard(protocol)
            accepted.close()

    def _open(self) -> dict[RequestHandler, str]:
        alive = self._beginning.union(self._server.connections)
        self._address = {protocol: address for protocol, address in self._address.items() if protocol in alive}
        return self._address

    async def _begin(self, protocol: RequestHandler, accepted: socket.socket) -> None:
        loop, limit = asyncio.get_running_loop(), self._bounds.silent_seconds
        self._silent.add(protocol)
        loop.call_later(limit, self._close_if_silent, protocol)
        try:
            if self._tls is None:
                await loop.connect_accepted_socket(lambda: protocol, accepted)
            else:
                await loop.connect_accepted_socket(lambda: protocol, accepted, ssl=self._tls, ssl_handshake_timeout=limit)
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError
            log.debug("a connection did not begin: %s", error)
            self._silent.discard(protocol)
        finally:
            self._beginning.discard(protocol)

    def _close_if_silent(self, protocol: RequestHandler) -> None:
        if protocol in self._silent:
            self._silent.discard(protocol)
            if protocol.transport is not None:
                protocol.transport.abort()
