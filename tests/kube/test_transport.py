"""Requests and streams on the level of bytes: which connection carries what, and how a reply may end."""

from __future__ import annotations

import asyncio

import pytest

from navarch.kube.connect import Endpoint
from navarch.kube.errors import ApiError, OutcomeUnknown, Unreachable
from navarch.kube.streaming_connection import BUFFER
from navarch.kube.transport import Transport

from .raw_server import RawServer, Request, reply


async def test_requests_share_a_connection_and_parameters_are_escaped() -> None:
    async with RawServer(lambda _: reply(200, b"{}")) as server, Transport(Endpoint(server.url + "/behind")) as transport:
        for _ in range(3):
            assert await transport.request("GET", "/api", params={"labelSelector": "a in (b, c)", "limit": 5}) == b"{}"
        await transport.request("POST", "/api", body=b"{}", content_type="x/y")
    assert {request.connection for request in server.requests} == {0}
    assert server.requests[0].path == "/behind/api?labelSelector=a+in+%28b%2C+c%29&limit=5"
    assert "content-length" not in server.requests[0].headers
    assert server.requests[3].headers["content-type"] == "x/y"


@pytest.mark.parametrize(
    "answer",
    [
        reply(200, b"{}", "Connection: close"),
        reply(200, b"{}") + b"HTTP/1.1",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    ],
    ids=["said so", "more than the reply", "HTTP/1.0"],
)
async def test_a_connection_that_cannot_be_trusted_is_not_used_again(answer: bytes) -> None:
    async with RawServer(lambda _: answer) as server, Transport(Endpoint(server.url)) as transport:
        for _ in range(2):
            assert await transport.request("GET", "/api") == b"{}"
    assert [request.connection for request in server.requests] == [0, 1]


async def test_a_reply_that_lasts_until_the_connection_ends() -> None:
    async def until_the_end(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of")
        await writer.drain()
        writer.write(b" it")
        writer.close()

    async with RawServer(lambda _: until_the_end) as server, Transport(Endpoint(server.url)) as transport:
        assert await transport.request("GET", "/api") == b"all of it"


async def test_no_more_requests_at_a_time_than_connections() -> None:
    under_way, most = 0, 0

    async def slowly(_: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        writer.write(reply(200))

    async with RawServer(lambda _: slowly) as server, Transport(Endpoint(server.url), connections=2) as transport:
        await asyncio.gather(*(transport.request("GET", "/api") for _ in range(6)))
    assert most == 2


async def test_who_waits_in_vain_for_a_free_connection_has_sent_nothing() -> None:
    async def silence(_: Request, writer: asyncio.StreamWriter) -> None:
        return None

    async with RawServer(lambda _: silence) as server, Transport(Endpoint(server.url), connections=1) as transport:
        first = asyncio.create_task(transport.request("POST", "/first", body=b"{}", attempts=1, timeout=5))
        await server.asked(1)
        with pytest.raises(Unreachable, match=r"POST /second: no connection within 0.05 s"):
            await transport.request("POST", "/second", body=b"{}", attempts=1, timeout=0.05)
        await transport.close()
        with pytest.raises(OutcomeUnknown, match="closed before the end of the reply"):
            await first
        assert [request.path for request in server.requests] == ["/first"]


async def test_elsewhere_is_no_answer() -> None:
    async with RawServer(lambda _: reply(302, b"", "Location: /x")) as server, Transport(Endpoint(server.url)) as transport:
        with pytest.raises(ApiError, match="GET /api: 302"):
            await transport.request("GET", "/api")
        with pytest.raises(ApiError, match="GET /api: 302"):
            await anext(transport.stream("/api", {}, idle_timeout=lambda: 5.0))


async def test_what_is_no_http_is_an_unknown_outcome() -> None:
    async with RawServer(lambda _: b"SSH-2.0-OpenSSH_9\r\n\r\n") as server, Transport(Endpoint(server.url)) as transport:
        with pytest.raises(OutcomeUnknown, match=r"expected an HTTP/1\.1 status line"):
            await transport.request("GET", "/api", attempts=1)


async def test_who_reads_slowly_holds_the_server_back_and_misses_nothing() -> None:
    total, written = 40 * BUFFER, 0
    everything = asyncio.Event()

    async def flood(_: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(total // BUFFER):
            writer.write(f"{BUFFER:x}\r\n".encode() + b"x" * BUFFER + b"\r\n")
            await writer.drain()
            written += BUFFER
        writer.write(b"0\r\n\r\n")
        everything.set()

    async with RawServer(lambda _: flood) as server, Transport(Endpoint(server.url)) as transport:
        pieces = transport.stream("/watch", {}, idle_timeout=lambda: 5.0)
        got = len(await anext(pieces))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await everything.wait()
        assert written < total
        async for piece in pieces:
            got += len(piece)
        assert got == total and everything.is_set()
