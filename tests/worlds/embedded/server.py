"""An embedded API server in a thread of its own, so that blocking clients (kubectl, the official client) can speak to it,
and a small HTTP client that is the same for embedded and real servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload
from urllib.parse import urlencode, urlsplit

from navarch.embedded.api.server import ApiServer

T = TypeVar("T")


@dataclass
class Answer:
    """What came back."""

    code: int
    body: Any
    headers: http.client.HTTPMessage

    @property
    def reason(self) -> str:
        return self.body.get("reason", "") if isinstance(self.body, dict) else ""

    @property
    def message(self) -> str:
        return self.body.get("message", "") if isinstance(self.body, dict) else str(self.body)


class Http:
    """Requests to one API server over one kept connection."""

    def __init__(self, url: str, token: str, ca_pem: bytes, kubeconfig: Path) -> None:
        self.url = url
        self.token = token
        self.ca_pem = ca_pem
        self.kubeconfig = kubeconfig
        self._tls = ssl.create_default_context(cadata=ca_pem.decode())
        self._connection: http.client.HTTPSConnection | None = None

    def connect(self, timeout: float = 120.0) -> http.client.HTTPSConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        return http.client.HTTPSConnection(parts.hostname, parts.port, context=self._tls, timeout=timeout)

    def headers(self, **more: str) -> dict[str, str]:
        found = {"Authorization": f"Bearer {self.token}", "User-Agent": "contract/1.0"}
        found.update({key.replace("_", "-"): value for key, value in more.items()})
        return found

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: dict[str, Any] | None = None,
        **headers: str,
    ) -> Answer:
        target = f"{path}?{urlencode(query, doseq=True)}" if query else path
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            headers.setdefault("Content_Type", content_type)
        for attempt in (1, 2):
            if self._connection is None:
                self._connection = self.connect()
            try:
                self._connection.request(method, target, data, self.headers(**headers))
                response = self._connection.getresponse()
                raw = response.read()
            except (http.client.HTTPException, OSError):
                self.close()
                if attempt == 2:
                    raise
            else:
                break
        try:
            decoded: Any = json.loads(raw)
        except ValueError:
            decoded = raw.decode(errors="replace")
        return Answer(response.status, decoded, response.headers)

    def get(self, path: str, **query: Any) -> Answer:
        return self("GET", path, query=query or None)

    def post(self, path: str, body: Any, **query: Any) -> Answer:
        return self("POST", path, body, query=query or None)

    def put(self, path: str, body: Any, **query: Any) -> Answer:
        return self("PUT", path, body, query=query or None)

    def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return self("DELETE", path, body, query=query or None)

    def patch(self, path: str, body: Any, kind: str = "merge-patch+json", **query: Any) -> Answer:
        return self("PATCH", path, body, content_type=f"application/{kind}", query=query or None)

    @contextlib.contextmanager
    def watch(self, path: str, **query: Any) -> Iterator[Iterator[dict[str, Any]]]:
        """Events of a watch, as they come; the watch ends with the block."""
        connection = self.connect()
        query.setdefault("watch", "true")
        connection.request("GET", f"{path}?{urlencode(query, doseq=True)}", headers=self.headers())
        response = connection.getresponse()
        try:
            yield (json.loads(line) for line in response)
        finally:
            response.close()
            connection.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class ServerThread:
    """Runs an ApiServer on a loop in a thread."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._stop: asyncio.Event | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.server: ApiServer | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="api-server")

    async def _main(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            self.server = ApiServer(**self._options)
            await self.server.start()
        except BaseException as error:
            self._failure = error
            self._ready.set()
            raise
        self._ready.set()
        await self._stop.wait()
        await self.server.stop()

    def __enter__(self) -> ApiServer:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None or self.server is None:
            raise RuntimeError("the server did not start") from self._failure
        return self.server

    def __exit__(self, *_: object) -> None:
        assert self.loop is not None and self._stop is not None
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @overload
    def run(self, make: Callable[[], Awaitable[T]]) -> T: ...

    @overload
    def run(self, make: Callable[[], T]) -> T: ...

    def run(self, make: Callable[[], Awaitable[T] | T]) -> T:
        """Run something on the server's loop and wait for what it gives."""

        async def body() -> T:
            made = make()
            return await made if isinstance(made, Awaitable) else made

        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(body(), self.loop).result(120)


def http_of(server: ApiServer, folder: Path) -> Http:
    """A client of an embedded server."""
    return Http(server.url, server.token, server.ca_pem, server.kubeconfig(folder / "kubeconfig"))
