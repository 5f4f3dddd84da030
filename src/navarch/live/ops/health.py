"""HTTP for operators: /livez, /readyz, /healthz, /metrics, and /debug/snapshot for callers on this machine.

/livez answers while the event loop runs. /readyz and /healthz say whether all objects have been read, and if not, what is missing. A
replica that does not lead is ready: it could lead at once.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Missing = Callable[[], list[str]]
"""What keeps the process from being ready; empty: nothing."""


_EXPECTED = "expected an address such as 0.0.0.0:8080 that is free"


class ListenError(ValueError):
    """The address cannot be listened on; the message says which and why."""


class Health:
    def __init__(
        self, missing: Missing, registry: CollectorRegistry, snapshot: Callable[[], Awaitable[bytes]], refresh: Callable[[], None]
    ) -> None:
        self._missing = missing
        self._registry = registry
        self._snapshot = snapshot
        self._refresh = refresh
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, listen: str) -> None:
        host, port = _split(listen)
        app = web.Application()
        app.router.add_get("/livez", _alive)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/healthz", self._ready)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/debug/snapshot", self._debug_snapshot)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            await self.stop()
            raise ListenError(f"{listen}: {_EXPECTED}: {error.strerror or error}") from error
        addresses = self._runner.addresses
        self.port = int(addresses[0][1]) if addresses else port

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _ready(self, request: web.Request) -> web.Response:
        missing = self._missing()
        if missing:
            return web.Response(status=503, text="".join(f"[-]{each}\n" for each in missing))
        return web.Response(text="ok")

    async def _metrics(self, request: web.Request) -> web.Response:
        self._refresh()
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _debug_snapshot(self, request: web.Request) -> web.Response:
        """The input of the last cycle as `navarch replay` reads it. It names every pod of the cluster: loopback only."""
        if not _is_loopback(request.remote):
            return web.Response(status=403, text="only from the machine itself\n")
        body = await self._snapshot()
        if not body:
            return web.Response(status=503, text="no cycle yet: ask the replica that leads (navarch_leading 1)\n")
        name = 'attachment; filename="navarch-cycle.json.gz"'
        return web.Response(body=body, content_type="application/gzip", headers={"Content-Disposition": name})


def _split(listen: str) -> tuple[str | None, int]:
    """Host and port; no host: every address of both families."""
    host, _, port = listen.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ListenError(f"{listen}: {_EXPECTED}: the port has to be a number up to 65535, found {port!r}")
    return host.strip("[]") or None, int(port)


async def _alive(request: web.Request) -> web.Response:
    return web.Response(text="ok")


def _is_loopback(remote: str | None) -> bool:
    try:
        return remote is not None and ipaddress.ip_address(remote.partition("%")[0]).is_loopback
    except ValueError:
        return False
