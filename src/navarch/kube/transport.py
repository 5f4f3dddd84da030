"""HTTP to one API server: two connection pools, credentials, time-outs and retries.

Watches last for minutes and each holds a connection; requests are short. They have separate pools, so that neither waits for the
other. HTTP/1.1 is a choice: HTTP/2 in Python costs ten times the CPU for a request (measured).

Only these requests are repeated:
- a request that did not reach the server (no connection);
- a GET whose answer was lost;
- 429, and 5xx with Retry-After, unless the wait exceeds the time-out of the request;
- 401, once, with a new credential.

`answers` says what an answer means. Redirects are not followed: API servers send none. A write whose answer was lost is
`OutcomeUnknown`. So is a write that was answered with 5xx and cannot be sent again: a store that timed out may still have stored it.

`may_write` is asked before every request except GET, also before a retry: a process that was suspended for longer than its lease must
not continue to write.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Final, Self

import aiohttp
from yarl import URL

from navarch.kube.answers import Again, Answer, answer_of, opens_stream
from navarch.kube.backoff import Backoff
from navarch.kube.connect import Endpoint
from navarch.kube.errors import KubeError, OutcomeUnknown, TransportError, Unreachable, parse_retry_after
from navarch.kube.tunnel import TunnelConnector

log = logging.getLogger(__name__)

JSON = "application/json"
WATCH_BUFFER = 256 * 1024
"""Large enough to pass on a burst of watch events in few pieces, small enough to pause between pieces."""
SMALL_PIECE = WATCH_BUFFER // 4
"""A stream with larger pieces than this has much to bring, and is read on at once."""
WITHHELD = "not sent: this process does not lead any more"
Params = Mapping[str, str | int]
Headers = Sequence[tuple[str, str]]


class Transport:
    """Requests and streams to an `Endpoint`; use as `async with Transport(endpoint) as transport`.

    `rng` seeds the jitter of retries. `connections` bounds the requests in flight (watches are not counted).
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        connections: int = 64,
        timeout: float = 30.0,
        attempts: int = 5,
        rng: random.Random | None = None,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self.endpoint = endpoint
        self.may_write: Final = may_write
        self._connections = connections
        self._timeout = timeout
        self._attempts = attempts
        self._rng = rng or random.Random()
        self._requests: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close both pools; requests in flight fail."""
        sessions, self._requests, self._streams = (self._requests, self._streams), None, None
        for session in sessions:
            if session is not None:
                await session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Headers = (),
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> bytes:
        """Send one request; returns the body of the reply. Raises `ApiError`, `Unreachable` or `OutcomeUnknown`."""
        backoff = Backoff(first=0.2, cap=5.0, rng=self._rng)
        left = self._attempts if attempts is None else attempts
        limit = timeout or self._timeout
        fresh_credentials = False
        maybe_done = ""  # the last answer of a server that may have processed the write
        while True:
            left -= 1
            if method != "GET" and not self.may_write():
                withheld = Unreachable(WITHHELD, method=method, path=path)
                raise _unknown(maybe_done, withheld) if maybe_done else withheld
            try:
                return await self._once(method, path, params, body, content_type, headers, limit)
            except _Refused as refused:
                answer, error = refused.answer, refused.error
                if answer.again is Again.WITH_NEW_CREDENTIAL:
                    if fresh_credentials:
                        raise error from None
                    fresh_credentials, left = True, max(left, 1)
                    continue
                wait = self._wait_before_repeat(method, answer, backoff)
                if left <= 0 or wait is None or (answer.retry_after or 0.0) > limit:
                    if maybe_done and answer.again is Again.LATER and not answer.maybe_done:
                        raise _unknown(maybe_done, error) from None
                    raise error from None
                if answer.maybe_done and method != "GET":
                    maybe_done = str(error)
            except Unreachable as error:
                if left <= 0 and maybe_done:
                    raise _unknown(maybe_done, error) from error
                if left <= 0:
                    raise
                wait = backoff.next()
                log.debug("%s; again in %.1f s", error, wait)
            except OutcomeUnknown as error:
                if left <= 0 or method != "GET":
                    raise
                wait = backoff.next()
                log.debug("%s; again in %.1f s", error, wait)
            await asyncio.sleep(wait)

    async def stream(
        self,
        path: str,
        params: Params,
        *,
        idle_timeout: Callable[[], float],
        gather: Callable[[], float] = lambda: 0.0,
        open_timeout: float = 30.0,
    ) -> AsyncGenerator[bytes, None]:
        """The body of a long GET as it arrives, in pieces of any size; not repeated here.

        Ends when the server ends it. `idle_timeout()` seconds without a byte raise `OutcomeUnknown`. It is called before each wait:
        the beginning of a stream may have a shorter time-out than the rest. After a small piece nothing is read for
        `gather()` seconds, so that the pieces of a busy stream are read together.
        """
        if self._streams is None:
            self._streams = self._session(limit=0, keepalive=15)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=open_timeout)
        authorization = await self._authorization()
        tls = self._tls()
        idle = idle_timeout()
        try:
            # Connecting has its own time-out: when it fails, nothing was sent.
            async with asyncio.timeout(open_timeout + idle):
                opened = await self._streams.get(
                    self._url(path),
                    params=params,
                    headers=self._headers(authorization),
                    ssl=tls,
                    timeout=timeout,
                    allow_redirects=False,
                    read_bufsize=WATCH_BUFFER,
                    server_hostname=self.endpoint.tls_server_name,
                )
            async with opened as reply:
                if not opens_stream(reply.status):
                    async with asyncio.timeout(idle):
                        refusal = answer_of("GET", path, reply.status, await reply.read(), retry_after=_retry_after(reply))
                    assert refusal.error is not None
                    raise _Refused(refusal, refusal.error)
                content = reply.content
                try:
                    while True:
                        idle = idle_timeout()
                        async with asyncio.timeout(idle):
                            chunk = await content.readany()
                        if not chunk:
                            break
                        yield chunk
                        if len(chunk) < SMALL_PIECE and (pause := gather()) > 0:
                            await _read_nothing(reply, pause)
                finally:
                    # The stream is abandoned: closing TLS properly would wait for an answer.
                    if reply.connection is not None and reply.connection.transport is not None:
                        reply.connection.transport.abort()
        except _Refused as refused:
            if refused.answer.again is Again.WITH_NEW_CREDENTIAL:
                self._rejected(authorization, tls)
            raise refused.error from None
        except aiohttp.ClientError as error:
            raise _translated("GET", path, error) from error
        except TimeoutError as error:
            raise OutcomeUnknown(f"no byte within {idle:g} s", method="GET", path=path) from error

    async def _once(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: bytes | None,
        content_type: str,
        further_headers: Headers,
        timeout: float,
    ) -> bytes:
        if self._requests is None:
            self._requests = self._session(limit=self._connections, keepalive=60)
        authorization = await self._authorization()
        tls = self._tls()
        headers = [*self._headers(authorization), *further_headers]
        if body is not None:
            headers.append(("Content-Type", content_type))
        try:
            async with self._requests.request(
                method,
                self._url(path),
                params=params,
                data=body,
                headers=headers,
                ssl=tls,
                timeout=aiohttp.ClientTimeout(total=timeout),
                allow_redirects=False,
                server_hostname=self.endpoint.tls_server_name,
            ) as reply:
                received = await reply.read()
                answer = answer_of(method, path, reply.status, received, retry_after=_retry_after(reply))
                if answer.error is None:
                    return received
                if answer.again is Again.WITH_NEW_CREDENTIAL:
                    self._rejected(authorization, tls)
                raise _Refused(answer, answer.error)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _translated(method, path, error) from error

    def _session(self, *, limit: int, keepalive: float) -> aiohttp.ClientSession:
        connector: aiohttp.BaseConnector
        if self.endpoint.proxy is not None:
            connector = TunnelConnector(self.endpoint, limit=limit, keepalive_timeout=keepalive)
        else:
            connector = aiohttp.TCPConnector(limit=limit, keepalive_timeout=keepalive)
        headers = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": self.endpoint.user_agent}
        return aiohttp.ClientSession(connector=connector, headers=headers, cookie_jar=aiohttp.DummyCookieJar())

    async def _authorization(self) -> str:
        credentials = self.endpoint.credentials
        value = credentials.cached()
        return await credentials.authorization() if value is None else value

    def _headers(self, authorization: str) -> list[tuple[str, str]]:
        headers = list(self.endpoint.headers)
        if authorization:
            headers.append(("Authorization", authorization))
        return headers

    def _rejected(self, authorization: str, tls: ssl.SSLContext | bool) -> None:
        """After a 401. Many requests may get it at the same time; only the first one fetches a new credential, which can take
        seconds."""
        if self.endpoint.credentials.cached() == authorization and self._tls() is tls:
            self.endpoint.credentials.rejected()

    def _tls(self) -> ssl.SSLContext | bool:
        """The TLS context. It is read after the credential, which can be a certificate. aiohttp separates connections by their
        context, so after certificates were replaced no request uses an older connection."""
        return self.endpoint.ssl_context or True

    def _url(self, path: str) -> URL:
        return URL(self.endpoint.base + path, encoded=True)

    def _wait_before_repeat(self, method: str, answer: Answer, backoff: Backoff) -> float | None:
        """Seconds to wait before the same request may be sent again; None: it may not."""
        if answer.again is Again.LATER:
            # At least the time that the server asked for, plus jitter.
            return max(backoff.next(), (answer.retry_after or 0.0) * (1 + 0.1 * self._rng.random()))
        if answer.again is Again.IF_READ and method == "GET":
            return backoff.next()
        return None


class _Refused(Exception):
    """An answer that is no success. `error` is what the caller gets."""

    def __init__(self, answer: Answer, error: KubeError) -> None:
        self.answer, self.error = answer, error


def _retry_after(reply: aiohttp.ClientResponse) -> float | None:
    return parse_retry_after(reply.headers.get("Retry-After"))


async def _read_nothing(reply: aiohttp.ClientResponse, seconds: float) -> None:
    """Leave what arrives to the socket's buffer: one read for many events costs less than one for each."""
    transport = reply.connection.transport if reply.connection is not None else None
    if transport is None:
        return
    transport.pause_reading()
    await asyncio.sleep(seconds)
    transport.resume_reading()


def _unknown(maybe_done: str, then: KubeError) -> OutcomeUnknown:
    """The request failed now, and an earlier attempt may have been processed."""
    return OutcomeUnknown(f"it may have been carried out ({maybe_done}); then: {then}")


def _translated(method: str, path: str, error: Exception) -> TransportError:
    text = _said(error)
    before_sending = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
    kind = Unreachable if isinstance(error, before_sending) else OutcomeUnknown
    return kind(text, method=method, path=path)


def _said(error: Exception) -> str:
    """The cause of a failed connection. The text of aiohttp has the memory address of the TLS context and not always the cause."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"cannot connect to {error.host}:{error.port}: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {str(error.os_error) or type(error.os_error).__name__}"
    return str(error) or type(error).__name__
