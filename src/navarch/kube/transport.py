"""HTTP to one API server: credentials, time-outs, and which failures are tried again.

Watches live for minutes and each has a connection of its own; requests are short and share some, so that a stream never waits
for a slow write or the other way round. HTTP/1.1 on purpose: measured, HTTP/2 in Python costs ten times the CPU a request. And
spoken by ourselves: a general client takes 150 ms to import, a third of all that a start of the scheduler spends.

What is repeated here, and only this:
- a request that certainly did not reach the server (no connection);
- a GET whose answer got lost;
- 429, and 5xx that carry Retry-After, unless that is longer than the request may take;
- 401 once, with the credential fetched anew.
A write whose answer got lost is `OutcomeUnknown`, for the caller to find out. So is one that was answered with 5xx and could not
be sent again: a store that timed out says 5xx and when to come back, and may have taken it all the same.

`may_write` is asked before anything but a GET is sent, the first time or again: a process that was stopped for longer than its
lease lasts wakes up in the midst of its work and must not go on with it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Self
from urllib.parse import urlencode

from navarch.kube.backoff import Backoff
from navarch.kube.connect import Endpoint
from navarch.kube.connection_pool import ConnectionPool
from navarch.kube.errors import (
    ApiError,
    OutcomeUnknown,
    TransportError,
    Unauthorized,
    Unreachable,
    error_from_reply,
)
from navarch.kube.http1 import Head, ProtocolError
from navarch.kube.request_head import RequestHead

log = logging.getLogger(__name__)

JSON = "application/json"
WITHHELD = "not sent: this process does not lead any more"
Params = Mapping[str, str | int]


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
        self._may_write = may_write
        self._timeout = timeout
        self._attempts = attempts
        self._rng = rng or random.Random()
        self._head = RequestHead(endpoint)
        self._pool = ConnectionPool(endpoint, connections)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        await self._pool.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float | None = None,
        attempts: int | None = None,
    ) -> bytes:
        """One request, its reply's body. Raises `ApiError`, `Unreachable` or `OutcomeUnknown`."""
        backoff = Backoff(first=0.2, cap=5.0, rng=self._rng)
        left = self._attempts if attempts is None else attempts
        limit = timeout or self._timeout
        fresh_credentials = False
        maybe_done = ""  # what a server said that may have carried the write out
        while True:
            left -= 1
            if method != "GET" and not self._may_write():
                withheld = Unreachable(WITHHELD, method=method, path=path)
                raise _unknown(maybe_done, withheld) if maybe_done else withheld
            try:
                return await self._once(method, path, params, body, content_type, limit)
            except Unauthorized:
                if fresh_credentials:
                    raise
                fresh_credentials, left = True, max(left, 1)
                self.endpoint.credentials.rejected()
                continue
            except ApiError as error:
                wait = self._wait_before_repeat(method, error, backoff)
                if left <= 0 or wait is None or (error.retry_after or 0.0) > limit:
                    if error.code == 429 and maybe_done:
                        raise _unknown(maybe_done, error) from error
                    raise
                if error.code >= 500 and method != "GET":
                    maybe_done = str(error)
                log.debug("%s; again in %.1f s", error, wait)
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
        self, path: str, params: Params, *, idle_timeout: Callable[[], float], open_timeout: float = 30.0
    ) -> AsyncGenerator[bytes, None]:
        """The body of a long GET as it arrives, in pieces of any size; never repeated here.

        Ends when the server ends it. `idle_timeout()` seconds without a byte raise `OutcomeUnknown`; it is asked before each wait,
        since the beginning of a stream may have to come faster than the rest.
        """
        await self._have_credential()
        idle = idle_timeout()
        connection = None
        try:
            # Connecting has a limit of its own, whose failure says that nothing was sent.
            async with asyncio.timeout(open_timeout):
                connection = await self._pool.open()
            connection.send(self._head.request("GET", _target(path, params), JSON, None))
            async with asyncio.timeout(idle):
                head = await connection.head()
                if head.status >= 300:
                    raise _refusal("GET", path, head, await connection.body())
            while True:
                idle = idle_timeout()
                async with asyncio.timeout(idle):
                    piece = await connection.piece()
                if not piece:
                    break
                yield piece
        except Unauthorized:
            self.endpoint.credentials.rejected()
            raise
        except (OSError, ProtocolError) as error:
            late = f"no byte within {idle:g} s" if connection else f"no connection within {open_timeout:g} s"
            raise _failed("GET", path, error, late, sent=connection is not None) from error
        finally:
            if connection is not None:
                connection.abort()

    async def _once(
        self, method: str, path: str, params: Params | None, body: bytes | None, content_type: str, timeout: float
    ) -> bytes:
        await self._have_credential()
        sent = False
        try:
            async with asyncio.timeout(timeout), self._pool.taken() as connection:
                connection.send(self._head.request(method, _target(path, params), content_type, body))
                sent = True
                head = await connection.head()
                answer = await connection.body()
        except (OSError, ProtocolError) as error:
            late = f"no reply within {timeout:g} s" if sent else f"no connection within {timeout:g} s"
            raise _failed(method, path, error, late, sent) from error
        if head.status >= 300:
            raise _refusal(method, path, head, answer)
        return answer

    async def _have_credential(self) -> None:
        if self._head.current() is None:
            await self._head.fetch()

    def _wait_before_repeat(self, method: str, error: ApiError, backoff: Backoff) -> float | None:
        """Seconds to wait before the same request may be sent again; None: it may not."""
        if error.code == 429 or (error.code >= 500 and error.retry_after is not None):
            # At least what the server asked for, and a little apart from the others it asked.
            return max(backoff.next(), (error.retry_after or 0.0) * (1 + 0.1 * self._rng.random()))
        if error.code == 503 and method == "GET":
            return backoff.next()
        return None


def _unknown(maybe_done: str, then: TransportError | ApiError) -> OutcomeUnknown:
    """Not carried out this time, and before that perhaps it was."""
    return OutcomeUnknown(f"it may have been carried out ({maybe_done}); then: {then}", method=then.method, path=then.path)


def _target(path: str, params: Params | None) -> str:
    return f"{path}?{urlencode(params)}" if params else path


def _refusal(method: str, path: str, head: Head, body: bytes) -> ApiError:
    """Nothing but a yes is followed: API servers do not send one elsewhere."""
    return error_from_reply(head.status, body, method=method, path=path, retry_after=head.retry_after)


def _failed(method: str, path: str, error: Exception, late: str, sent: bool) -> TransportError:
    said = late if isinstance(error, TimeoutError) else str(error) or type(error).__name__
    return (OutcomeUnknown if sent else Unreachable)(said, method=method, path=path)
