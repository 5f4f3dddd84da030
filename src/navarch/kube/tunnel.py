"""Connections to an API server through a proxy: CONNECT, then what a direct connection carries.

The proxy opens a tunnel and sees only the name and port of the server: TLS with the server is end to end, verified as without a proxy.
TLS to an https:// proxy is around that. An http:// server is reached through a tunnel as well: a proxy that forwards requests may hold
back the beginning of a watch until it ends.

The sessions of aiohttp (`TunnelConnector`) and the write pool both open their connections here. aiohttp has its own proxy support, but
it reports a proxy that hangs up during CONNECT as a lost answer, and it uses the certificates of the API server for the proxy. A
failure here is an OSError with the name of the proxy, and nothing was sent.
"""

from __future__ import annotations

import asyncio
import http
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

import aiohttp

from navarch.kube.connect import Endpoint
from navarch.kube.proxy import Proxy, authority
from navarch.kube.write.http1 import ProtocolError, Reply, ReplyParser

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.tracing import Trace

PATIENCE = 10.0
"""Seconds for the handshake with the server, if the caller gives no time-out."""

P = TypeVar("P", bound=asyncio.Protocol)


class ProxyError(OSError):
    """The proxy does not answer, or refused the tunnel."""


async def open_tunnel(endpoint: Endpoint, factory: Callable[[], P], context: ssl.SSLContext | None, timeout: float) -> P:
    """Connect a new protocol through the endpoint's proxy. `context` is for TLS with the server."""
    proxy, loop = endpoint.proxy, asyncio.get_running_loop()
    assert proxy is not None
    asking = _Asking(_request(endpoint, proxy))
    try:
        async with asyncio.timeout(timeout):
            tls = endpoint.proxy_ssl_context
            await loop.create_connection(lambda: asking, proxy.host, proxy.port, ssl=tls)
            reply = await asking.reply
            if reply.status >= 300:
                raise ProxyError(f"proxy {proxy} refused CONNECT: {_said(reply.status)}")
            return await _inside(asking, endpoint, factory, context)
    except BaseException as error:  # also when cancelled: a connection without an owner must be closed
        asking.abort()
        if isinstance(error, TimeoutError) and error.errno is None:
            raise ProxyError(f"proxy {proxy}: no connection within {timeout:g} s: {asking.stage}") from error
        if isinstance(error, (OSError, ProtocolError)) and not isinstance(error, ProxyError):
            raise ProxyError(f"proxy {proxy}: {asking.stage}: {str(error) or type(error).__name__}") from error
        raise


async def _inside(asking: _Asking, endpoint: Endpoint, factory: Callable[[], P], context: ssl.SSLContext | None) -> P:
    """Start the connection to the server through the open tunnel. Servers send nothing before the client does."""
    transport = asking.transport
    if context is not None and transport is not None:
        name = endpoint.tls_server_name or endpoint.host
        transport = await asyncio.get_running_loop().start_tls(transport, asking, context, server_hostname=name)
    if transport is None or transport.is_closing():
        raise ConnectionResetError("it hung up")
    protocol = factory()
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    transport.resume_reading()
    return protocol


def _request(endpoint: Endpoint, proxy: Proxy) -> bytes:
    target = authority(endpoint.host, endpoint.port)
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", f"User-Agent: {endpoint.user_agent}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def _said(status: int) -> str:
    """A status with its standard phrase; the phrase of the proxy may contain anything."""
    known = {each.value: each.phrase for each in http.HTTPStatus}
    return f"{status} {known.get(status, '')}".strip()


class _Asking(asyncio.Protocol):
    """Sends CONNECT and waits for the reply. It reads nothing after the reply: what follows belongs to the protocol above."""

    def __init__(self, request: bytes) -> None:
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None
        self.accepted = False
        self._request = request
        self._parser = ReplyParser(head_only=True)

    @property
    def stage(self) -> str:
        """The current step."""
        if self.transport is None:
            return "it cannot be reached"
        return "no TLS with the server in the tunnel" if self.accepted else "no answer to CONNECT"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio.Transport.
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self.reply.done():
            return
        try:
            reply = self._parser.feed(data)
        except ProtocolError as error:
            self.reply.set_exception(error)
            return
        if reply is not None:
            assert self.transport is not None
            self.transport.pause_reading()
            self.accepted = reply.status < 300
            self.reply.set_result(reply)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.reply.done():
            self.reply.set_exception(error or ConnectionResetError("it hung up"))

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        if not self.reply.cancel() and not self.reply.cancelled():
            self.reply.exception()  # mark the exception as retrieved


class TunnelConnector(aiohttp.BaseConnector):
    """Makes the connections of an aiohttp session through tunnels."""

    def __init__(self, endpoint: Endpoint, *, limit: int, keepalive_timeout: float) -> None:
        super().__init__(limit=limit, keepalive_timeout=keepalive_timeout)
        self._endpoint = endpoint

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        context = req.ssl if isinstance(req.ssl, ssl.SSLContext) else None
        try:
            return await open_tunnel(self._endpoint, self._factory, context, timeout.sock_connect or PATIENCE)
        except OSError as error:
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
