"""The embedded API server: a store, its rules, and an HTTPS listener on loopback.

async with ApiServer() as server:
    server.kubeconfig(path)          # for kubectl and any client
    server.operations.create(...)    # the same rules without HTTP
    server.faults.cut_watches()
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from navarch.embedded.api.bootstrap import bootstrap
from navarch.embedded.api.certificates import load_or_make
from navarch.embedded.api.faults import Faults
from navarch.embedded.api.kinds.crds import CustomKinds
from navarch.embedded.api.kinds.discovery import Discovery
from navarch.embedded.api.kinds.openapi import OpenApi
from navarch.embedded.api.kinds.registry import Registry
from navarch.embedded.api.kubeconfig import write_kubeconfig
from navarch.embedded.api.operations import Operations
from navarch.embedded.api.rest import Rest
from navarch.embedded.controllers.housekeeping import Housekeeping
from navarch.embedded.storage.sqlite_log import SqliteLog
from navarch.embedded.storage.store import Store
from navarch.kube.listener import Bounds, Listener

HEADER_SECONDS = 10.0
"""A connection that has not sent a whole request line and its headers by then is closed."""
IDLE_SECONDS = 120.0
MOST_CONNECTIONS = 8192
"""Every client is on this machine, so there is no other limit for one address."""


class ApiServer:
    """Start it, write a kubeconfig, stop it."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        data_dir: Path | None = None,
        clock: Callable[[], float] = time.time,
        taint_new_nodes: bool = True,
    ) -> None:
        if not ipaddress.ip_address(host).is_loopback:
            raise ValueError(f"the embedded API server listens on loopback only: found {host!r}, expected 127.0.0.1 or ::1")
        self.host = host
        self.port = port
        self.data_dir = data_dir
        self.identity = load_or_make(data_dir / "pki" if data_dir else None, host)
        self.store = Store(SqliteLog(data_dir / "store.db") if data_dir else None, clock)
        self.registry = Registry()
        self.operations = Operations(self.store, self.registry, taint_new_nodes)
        self.custom_kinds = CustomKinds(self.operations)
        self.housekeeping = Housekeeping(self.operations, taint_new_nodes)
        self.faults = Faults(self.store, self._restart)
        self._runner: web.ServerRunner | None = None
        self._listener: Listener | None = None

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    @property
    def ca_pem(self) -> bytes:
        return self.identity.ca_pem

    @property
    def token(self) -> str:
        return self.identity.token

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig (mode 0600) and answer its path."""
        return write_kubeconfig(path, self.url, self.ca_pem, self.token)

    async def start(self) -> None:
        """Load what is stored, make what every cluster has, listen."""
        self.store.start()
        self.housekeeping.start()
        bootstrap(self.operations)
        await self.store.settled()
        await self._listen()

    async def stop(self) -> None:
        """Close watches and connections, write out what is left."""
        await self._hang_up()
        await self.housekeeping.stop()
        await self.store.close()

    async def __aenter__(self) -> ApiServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _listen(self) -> None:
        discovery = Discovery(self.registry, f"{self.host}:{self.port}")
        rest = Rest(self.operations, discovery, OpenApi(self.registry), self.faults, self.token)
        server = web.Server(rest.handle, handler_cancellation=True, access_log=None, keepalive_timeout=IDLE_SECONDS)
        runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await runner.setup()
        bounds = Bounds(MOST_CONNECTIONS, MOST_CONNECTIONS, HEADER_SECONDS)
        listener = Listener(runner, self.host, self.port, self.identity.ssl_context(), bounds)
        await listener.start()
        self._runner, self._listener, self.port = runner, listener, listener.port

    async def _hang_up(self) -> None:
        """Let watches end, stop to listen, and drop connections: no peer is waited for to say good-bye over TLS."""
        for watch in self.store.watches():
            if watch.is_remote:
                watch.close()
        runner, self._runner = self._runner, None
        if runner is None or self._listener is None or runner.server is None:
            return
        await self._listener.stop()
        await asyncio.sleep(0.01)
        transports = [connection.transport for connection in runner.server.connections]
        await runner.cleanup()
        for transport in transports:
            if transport is not None:
                transport.abort()
        await asyncio.sleep(0.01)

    async def _restart(self, down: float) -> None:
        await self._hang_up()
        await asyncio.sleep(down)
        await self._listen()
