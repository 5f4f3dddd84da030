"""HTTP for operators: /livez, /readyz, /healthz, /metrics, /configz, /state and /debug/snapshot. / names them.

/livez answers while the scheduler's event loop runs. A cycle may occupy that loop, so the server runs in another one (`second_loop`),
and /livez fails only when the first loop has been silent for too long. All other pages are made in the scheduler's loop.

/readyz and /healthz say whether all objects have been read, and if not, what is missing. A replica that does not lead is ready: it
could lead at once.

/configz is the policy in force as JSON: the document under `policy`, and under `effect` what `navarch policy check -o json` says.

/debug/snapshot and the pages under /state name pods and jobs of the whole cluster. A caller on this machine may read them without a
token, if it addressed this machine by `localhost` or by an IP address: a page that a browser loaded from elsewhere cannot (DNS
rebinding), and if no proxy on this machine passed its request on. Other callers need the key that the leader keeps in a Secret
(`views/leader_pages.py`), or a bearer token whose user may `get` the non-resource URL. With `protect_metrics` the same holds for every
caller of /metrics.
"""

from __future__ import annotations

import hmac
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from navarch.kube.auth.access_review import AccessReview
from navarch.kube.errors import KubeError
from navarch.kube.listener import Bounds, Listener
from navarch.views.leader_pages import KEY_HEADER

InScheduler = Callable[[Callable[[], Awaitable[web.Response]]], Awaitable[web.Response]]
Missing = Callable[[], list[str]]
"""What keeps the process from being ready; empty: nothing."""
Page = Callable[[], msgspec.Struct | None]
"""The content of a page; None while this replica does not lead."""
PAGES: Mapping[str, str] = {
    "/livez": "ok while the scheduler's event loop runs",
    "/readyz": "ok, or what is missing",
    "/healthz": "the same",
    "/metrics": "metrics for Prometheus",
    "/configz": "the policy in force",
    "/state": "what the ConfigMap navarch-state publishes",
    "/state/waiting": "the jobs that wait, in order, and why",
    "/state/cycles": "the last cycles: times and counts",
    "/state/decisions": "the last bindings, evictions and nominations",
    "/state/usage": "what queues held in the last hour",
    "/debug/snapshot": "the last cycle, for navarch replay",
}

BOUNDS = Bounds()
_EXPECTED = "expected an address such as 0.0.0.0:8080 that is free"


_NOT_LEADING = "no cycle yet: ask the replica that leads (navarch_leading 1)\n"


class ListenError(ValueError):
    """The address cannot be listened on; the message says which and why."""


async def _here(work: Callable[[], Awaitable[web.Response]]) -> web.Response:
    return await work()


class Health:
    def __init__(
        self,
        missing: Missing,
        registry: CollectorRegistry,
        snapshot: Callable[[], Awaitable[bytes]],
        refresh: Callable[[], None],
        access: AccessReview | None = None,
        *,
        protect_metrics: bool = False,
        notes: Callable[[], list[str]] = list,
        configuration: Callable[[], dict[str, object]] = dict,
        pages: Mapping[str, Page] | None = None,
        key: str = "",
        silence: Callable[[], float] = lambda: 0.0,
        in_scheduler: InScheduler = _here,
    ) -> None:
        """`notes`: what operators should know although we are ready. `configuration`: the answer of /configz. `pages`: those under
        /state. `key`: opens them to callers from afar. `silence()`: seconds since the scheduler's event loop last ran, if that is too
        long. `in_scheduler(work)` runs a coroutine in that loop."""
        self._silence = silence
        self._in_scheduler = in_scheduler
        self._pages = pages or {}
        self._key = key.encode()
        self._configuration = configuration
        self._missing = missing
        self._registry = registry
        self._snapshot = snapshot
        self._refresh = refresh
        self._access = access
        self._protect_metrics = protect_metrics
        self._notes = notes
        self._runner: web.AppRunner | None = None
        self._listener: Listener | None = None
        self.port = 0

    async def start(self, listen: str, tls: ssl.SSLContext | None = None) -> None:
        host, port = split_address(listen)
        app = web.Application()
        app.router.add_get("/", _index)
        app.router.add_get("/livez", self._alive)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/healthz", self._ready)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/configz", self._configz)
        app.router.add_get("/debug/snapshot", self._debug_snapshot)
        for path in self._pages:
            app.router.add_get(path, self._state)
        self._runner = web.AppRunner(app, access_log=None, keepalive_timeout=BOUNDS.silent_seconds)
        await self._runner.setup()
        self._listener = Listener(self._runner, host, port, tls, BOUNDS)
        try:
            await self._listener.start()
        except OSError as error:
            await self.stop()
            raise ListenError(f"{listen}: {_EXPECTED}: {error.strerror or error}") from error
        self.port = self._listener.port

    async def stop(self) -> None:
        if self._listener is not None:
            await self._listener.stop()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _alive(self, request: web.Request) -> web.Response:
        silent = self._silence()
        if silent:
            return web.Response(status=503, text=f"the event loop has not run for {silent:.0f} s\n")
        return web.Response(text="ok")

    async def _ready(self, request: web.Request) -> web.Response:
        return await self._in_scheduler(self._readiness)

    async def _readiness(self) -> web.Response:
        missing = self._missing()
        if missing:
            return web.Response(status=503, text="".join(f"[-]{each}\n" for each in missing))
        return web.Response(text="".join(["ok", *(f"\n[!]{note}" for note in self._notes())]))

    async def _metrics(self, request: web.Request) -> web.Response:
        if self._protect_metrics and (refusal := await self._refusal(request)) is not None:
            return refusal
        return await self._in_scheduler(self._figures)

    async def _figures(self) -> web.Response:
        self._refresh()
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _configz(self, request: web.Request) -> web.Response:
        return await self._in_scheduler(self._effect)

    async def _effect(self) -> web.Response:
        return web.Response(body=msgspec.json.encode(self._configuration(), enc_hook=str), content_type="application/json")

    async def _state(self, request: web.Request) -> web.Response:
        if (refusal := await self._refusal_from_afar(request)) is not None:
            return refusal
        return await self._in_scheduler(partial(self._page, request.path))

    async def _page(self, path: str) -> web.Response:
        page = self._pages[path]()
        if page is None:
            return web.Response(status=503, text=_NOT_LEADING)
        return web.Response(body=msgspec.json.encode(page, enc_hook=str), content_type="application/json")

    async def _debug_snapshot(self, request: web.Request) -> web.Response:
        """The input of the last cycle as `navarch replay` reads it."""
        if (refusal := await self._refusal_from_afar(request)) is not None:
            return refusal
        return await self._in_scheduler(self._last_cycle)

    async def _last_cycle(self) -> web.Response:
        body = await self._snapshot()
        if not body:
            return web.Response(status=503, text=_NOT_LEADING)
        name = 'attachment; filename="navarch-cycle.json.gz"'
        return web.Response(body=body, content_type="application/gzip", headers={"Content-Disposition": name})

    async def _refusal_from_afar(self, request: web.Request) -> web.Response | None:
        """None if the caller is on this machine, or its bearer token lets it read the path."""
        passed_on = "X-Forwarded-For" in request.headers
        if is_loopback(request.remote) and names_this_machine(request.host) and not passed_on:
            return None
        return await self._refusal(request)

    async def _refusal(self, request: web.Request) -> web.Response | None:
        """None if the caller's key or bearer token lets it read the path."""
        given = request.headers.get(KEY_HEADER, "").encode(errors="replace")
        if given and self._key:
            if hmac.compare_digest(given, self._key):
                return None
            return web.Response(status=403, text=f"{KEY_HEADER}: another replica has written this key\n")
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if self._access is None or scheme.lower() != "bearer" or not token.strip():
            headers = {"WWW-Authenticate": "Bearer"}
            return web.Response(status=401, text=f"{request.path} needs a bearer token\n", headers=headers)
        try:
            allowed = await self._access.may_get(token.strip(), request.path)
        except KubeError as error:
            return web.Response(status=503, text=f"the API server did not review the token: {error}\n")
        if allowed:
            return None
        return web.Response(status=403, text=f"the token's user may not get the non-resource URL {request.path}\n")


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """ListenError if the files cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ListenError(f"{certificate}, {key}: expected a certificate and its key: {error}") from None
    return context


def split_address(listen: str) -> tuple[str | None, int]:
    """Host and port; no host: every address of both families."""
    host, _, port = listen.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ListenError(f"{listen}: {_EXPECTED}: the port has to be a number up to 65535, found {port!r}")
    return host.strip("[]") or None, int(port)


async def _index(request: web.Request) -> web.Response:
    return web.Response(text="navarch\n\n" + "".join(f"{path:17} {text}\n" for path, text in PAGES.items()))


def is_loopback(remote: str | None) -> bool:
    try:
        return remote is not None and ipaddress.ip_address(remote.partition("%")[0]).is_loopback
    except ValueError:
        return False


def names_this_machine(host: str) -> bool:
    """Whether a Host header is `localhost` or an IP address, and not a name that a stranger's DNS server points here.

    >>> names_this_machine("localhost:8080"), names_this_machine("[::1]:8080"), names_this_machine("evil.example:8080")
    (True, True, False)
    """
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name == "localhost"
    return True
