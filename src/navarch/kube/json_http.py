"""JSON over HTTP to a server that is not an API server: a metrics server, an extender.

Such a server may be slow, wrong or malicious. An answer has a time-out and a bound on its size, redirects are not followed, and every
failure is a `ServerError` with a sentence. Proxies are those of the environment, as for the API server. User and password of an
address appear in no message.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Mapping
from typing import Final

import aiohttp

from navarch.kube.errors import ConfigError
from navarch.kube.proxy import Proxy, choose_proxy

MOST_BYTES: Final = 10 << 20
"""The largest answer that is read."""
_ACCOUNT: Final = re.compile(r"//[^/@\s]*@")


class ServerError(Exception):
    """The server did not answer as it should. `status`: the HTTP status, 0 without an answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def without_account(address: str) -> str:
    """
    >>> without_account("http://me:secret@host/path")
    'http://host/path'
    """
    return _ACCOUNT.sub("//", address)


class JsonServer:
    """`address`: URL with whatever path the server lives under. `tls`: the context for https; None: that of the system.
    `server_name`: the name that the certificate must have, where it is not that of the URL."""

    def __init__(
        self,
        address: str,
        *,
        timeout: float,
        tls: ssl.SSLContext | None = None,
        most_bytes: int = MOST_BYTES,
        headers: Mapping[str, str] | None = None,
        server_name: str | None = None,
    ) -> None:
        self.address = address.rstrip("/")
        self.name = without_account(self.address)
        self._timeout = timeout
        self._tls = tls
        self._most = most_bytes
        self._headers = dict(headers or {})
        self._server_name = server_name
        self._session: aiohttp.ClientSession | None = None
        self._proxy: Proxy | None = None

    async def post(self, path: str, body: bytes) -> bytes:
        return await self.request("POST", path, body)

    async def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The body of an answer with status 200. Raises ServerError."""
        where = f"{self.name}/{path}"
        try:
            async with asyncio.timeout(self._timeout):
                return await self._request(method, path, body)
        except TimeoutError:
            raise ServerError(f"{where}: no answer within {self._timeout:g} s") from None
        except (aiohttp.ClientError, ValueError, ConfigError, OSError) as error:
            said = without_account(str(error)) or type(error).__name__
            raise ServerError(f"{where}: {said}") from None

    async def _request(self, method: str, path: str, body: bytes | None) -> bytes:
        if self._session is None:
            self._proxy = choose_proxy(self.name, os.environ)
            self._session = aiohttp.ClientSession(headers=self._headers, cookie_jar=aiohttp.DummyCookieJar())
        proxy = self._proxy
        account = {"Proxy-Authorization": proxy.authorization} if proxy and proxy.authorization else {}
        tunnel = self.address.lower().startswith("https:")  # the proxy does not see what is inside of one
        headers = {"Content-Type": "application/json"} if body is not None else {}
        async with self._session.request(
            method,
            f"{self.address}/{path}",
            data=body,
            headers=headers if tunnel else {**headers, **account},
            proxy=str(proxy) if proxy else None,
            proxy_headers=account if tunnel else None,
            ssl=self._tls if self._tls is not None else True,
            server_hostname=self._server_name,
            allow_redirects=False,
        ) as response:
            if response.status != 200:
                raise ServerError(f"{self.name}/{path}: status {response.status}, expected 200", response.status)
            return await read_bounded(response, self._most, f"{self.name}/{path}")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


async def read_bounded(response: aiohttp.ClientResponse, most: int, where: str) -> bytes:
    """The body, unless it is larger than `most`: the rest is not read then."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most:
            response.close()
            raise ServerError(f"{where}: the answer is larger than {most} bytes", response.status)
        parts.append(part)
    return b"".join(parts)


def unverified() -> ssl.SSLContext:
    """A context that believes every certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
