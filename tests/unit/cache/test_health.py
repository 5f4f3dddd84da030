"""The health port as callers see it, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from navarch.cache.exposition import Registry
from navarch.cache.health import MAX_HEAD, Health, ListenError


class Answers:
    def __init__(self) -> None:
        self.missing: list[str] = []
        self.registry = Registry()
        self.cycles = self.registry.counter("cycles", "Cycles run.")
        self.health = Health(lambda: self.missing, self.registry, self.snapshot, self.cycles.inc)

    async def snapshot(self) -> bytes:
        return b"x" * 1_000_000

    async def ask(self, request: str) -> tuple[str, dict[str, str], bytes]:
        """Status line, headers, body, until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.health.port)
        writer.write(request.encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(10):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        line, *headers = head.decode().split("\r\n")
        return line, dict(each.split(": ", 1) for each in headers), body


@pytest.fixture
async def answers() -> AsyncIterator[Answers]:
    made = Answers()
    await made.health.start("127.0.0.1:0")
    yield made
    await made.health.stop()


async def test_ready_once_nothing_is_missing(answers: Answers) -> None:
    answers.missing = ["pods are not listed yet"]
    assert (await answers.ask("GET /livez"))[2] == b"ok"
    line, _, body = await answers.ask("GET /readyz?verbose")
    assert (line, body) == ("HTTP/1.1 503 Service Unavailable", b"[-]pods are not listed yet\n")
    answers.missing = []
    assert (await answers.ask("GET /healthz"))[0] == "HTTP/1.1 200 OK"


async def test_metrics_are_refreshed_for_who_asks(answers: Answers) -> None:
    _, headers, body = await answers.ask("GET /metrics")
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert body.endswith(b"cycles_total 1.0\n")
    assert (await answers.ask("GET /metrics"))[2].endswith(b"cycles_total 2.0\n")


async def test_a_snapshot_comes_whole(answers: Answers) -> None:
    _, headers, body = await answers.ask("GET /debug/snapshot")
    assert len(body) == int(headers["Content-Length"]) == 1_000_000
    assert headers["Content-Type"] == "application/gzip"


@pytest.mark.parametrize(
    ("request_line", "status"),
    [("GET /", "404 Not Found"), ("POST /metrics", "405 Method Not Allowed"), ("nonsense", "405 Method Not Allowed")],
)
async def test_what_is_not_offered(answers: Answers, request_line: str, status: str) -> None:
    assert (await answers.ask(request_line))[0] == f"HTTP/1.1 {status}"


async def test_head_is_an_answer_without_its_body(answers: Answers) -> None:
    line, headers, body = await answers.ask("HEAD /livez")
    assert (line, headers["Content-Length"], body) == ("HTTP/1.1 200 OK", "2", b"")


async def test_a_failure_is_logged_and_said(answers: Answers, caplog: pytest.LogCaptureFixture) -> None:
    answers.registry.watch("broken", "", "kind", lambda: {"a": 1 / 0})
    assert (await answers.ask("GET /metrics"))[0] == "HTTP/1.1 500 Internal Server Error"
    assert "ZeroDivisionError" in caplog.text
    assert (await answers.ask("GET /livez"))[2] == b"ok"


async def test_who_says_nothing_or_too_much_holds_nobody_up(answers: Answers) -> None:
    _, silent = await asyncio.open_connection("127.0.0.1", answers.health.port)
    reader, babbling = await asyncio.open_connection("127.0.0.1", answers.health.port)
    babbling.write(b"x" * (4 * MAX_HEAD))
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        assert (await answers.ask("GET /livez"))[2] == b"ok"
        await answers.health.stop()
    for writer in (silent, babbling):
        writer.transport.abort()


async def test_an_address_that_is_taken_or_none(answers: Answers) -> None:
    for listen in (f"127.0.0.1:{answers.health.port}", "127.0.0.1:http", "127.0.0.1:99999", "8080x"):
        with pytest.raises(ListenError, match=f"{listen}: expected an address"):
            await Answers().health.start(listen)
