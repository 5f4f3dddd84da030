"""The pages of the leader's endpoint, read through the API server.

The published state says which pod leads. The API server's proxy reaches that pod, so a client needs no port forward and no route into
the cluster. The proxy passes on no credentials of its caller, and every pod of the cluster can reach the endpoint as well. So the
leader writes a random key into a Secret, and answers requests that carry it: RBAC on the Secret decides which users may read the
pages. The key opens these pages and nothing else; tokens of users stay between them and the API server.

    pages = LeaderPages(client, StateAddress.parse(""))
    waiting = await pages.read(WaitingPage)            # PagesUnavailable says why not
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from navarch.kube.auth.tls import Tls
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.kube.errors import ApiError, Forbidden, KubeError, NotFound
from navarch.kube.resources import PODS, Resource
from navarch.views.published_state import PAGES, PublishedState, StateAddress, find_state, read_bytes, read_page

SECRETS: Final = Resource("", "v1", "secrets")
SERVICES: Final = Resource("", "v1", "services")
KEY: Final = "key"
"""The field of the Secret."""
KEY_HEADER: Final = "Navarch-Pages-Key"
STATE_SECONDS: Final = 10.0
"""How long the published state is used before it is read again: another replica may lead by then."""
REQUEST_SECONDS: Final = 20.0
NOT_REACHABLE: Final = "the scheduler does not run in a pod, so the API server cannot reach it; name the URL of its endpoint"
_PROXIED: Final = {"pods": PODS, "services": SERVICES}
P = TypeVar("P", bound=Struct)


class PagesUnavailable(KubeError):
    """The pages cannot be read; the message says why, and what helps."""


class LeaderPages:
    """Pages of one scheduler. With a `url` (of the address, or given beside it) they are read there, without the API server."""

    def __init__(self, client: Client, address: StateAddress, url: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._address, self._clock = client, address, clock
        self.url = url or address.url
        self._found: tuple[str, PublishedState] | None = None
        self._found_until = -STATE_SECONDS
        self._key = ""

    async def state(self, *, fresh: bool = False) -> PublishedState | None:
        """What the scheduler publishes; None if there is none. At most `STATE_SECONDS` old, or read now. Raises KubeError."""
        if fresh:
            self._found_until = self._clock()
        if self._address.url:
            return await read_page(self._client.endpoint, self._address.url, PublishedState)
        found = await self._find()
        return None if found is None else found[1]

    async def read(self, page: type[P]) -> P:
        """Raises PagesUnavailable."""
        body = await self.read_bytes(PAGES[page])
        try:
            return msgspec.json.decode(body, type=page)
        except msgspec.DecodeError as error:
            raise PagesUnavailable(f"{PAGES[page]} of the scheduler has another form than expected: {error}") from error

    async def read_bytes(self, path: str) -> bytes:
        """What the leader has at a path. Raises PagesUnavailable."""
        try:
            if self.url:
                return await self._read_directly(path)
            return await self._read_through_proxy(path)
        except PagesUnavailable:
            raise
        except KubeError as error:
            raise PagesUnavailable(f"pages of the scheduler cannot be read: {error}") from error

    async def _read_directly(self, path: str) -> bytes:
        if path != "/metrics":
            return await read_bytes(self._client.endpoint, self.url, path)
        # /metrics needs no token unless it is protected, so plain http is allowed.
        address = Endpoint(self.url, tls=Tls() if self.url.startswith("https://") else None)
        async with Client(address, attempts=1) as client:
            return await client.transport.request("GET", path)

    async def _find(self) -> tuple[str, PublishedState] | None:
        now = self._clock()
        if now >= self._found_until:
            self._found = await find_state(self._client, self._address)
            self._found_until = now + STATE_SECONDS
        return self._found

    async def _read_through_proxy(self, path: str) -> bytes:
        for attempt in (1, 2):
            fresh = not self._key
            try:
                return await self._ask_proxy(path)
            except ApiError as error:
                # Another replica may lead by now, with a key of its own.
                self._found_until, self._key = self._clock(), ""
                if attempt == 2 or fresh:
                    raise PagesUnavailable(_explained(error)) from error
        raise AssertionError("unreachable: the second attempt returns or raises")

    async def _ask_proxy(self, path: str) -> bytes:
        found = await self._find()
        if found is None:
            raise PagesUnavailable("no scheduler publishes its state here; --state names its namespace, or the URL of its endpoint")
        namespace, state = found
        leader = state.endpoint
        if leader is None or leader.resource not in _PROXIED or leader.scheme not in ("http", "https"):
            raise PagesUnavailable(NOT_REACHABLE)
        if not self._key:
            self._key = await self._read_key(namespace)
        target = _PROXIED[leader.resource].path(namespace, f"{leader.scheme}:{leader.name}:{leader.port}", "proxy")
        headers = ((KEY_HEADER, self._key),)
        return await self._client.transport.request("GET", target + path, headers=headers, timeout=REQUEST_SECONDS, attempts=1)

    async def _read_key(self, namespace: str) -> str:
        name = self._address.key_name
        try:
            found = await self._client.get(SECRETS, name, namespace=namespace)
        except NotFound:
            raise PagesUnavailable(f"the scheduler has written no Secret {namespace}/{name}; its log says why") from None
        try:
            return base64.b64decode((found.get("data") or {})[KEY]).decode("ascii")
        except (KeyError, TypeError, ValueError):
            raise PagesUnavailable(f"Secret {namespace}/{name}: expected data.{KEY}, as the scheduler writes it") from None


def _explained(error: ApiError) -> str:
    if isinstance(error, Forbidden):
        return f"this account may not read the pages of the scheduler (Role navarch-pages-reader): {error.message}"
    return f"pages of the scheduler cannot be read: {error}"
