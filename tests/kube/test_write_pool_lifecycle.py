"""A write pool from its first connection to its close: what it waits for, what it leaves behind, and where credentials come from."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.envtest.certificates import Authority
from tests.worlds.kube.ports import hold_port
from tests.worlds.kube.raw_server import Answer, RawServer, Request, reply
from tests.worlds.kube.write_pool import Rotating, endless_backoff, hang_up, outcomes, pooled, post, silence, until

from navarch.kube.auth.tls import Tls
from navarch.kube.connect import Endpoint
from navarch.kube.errors import ConfigError, OutcomeUnknown, Unreachable
from navarch.kube.write.http1 import Reply
from navarch.kube.write.pool import TICK, Outcome, Priority, WritePool, bind_write


class Gate:
    """Replies that wait until the test opens it."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, _: Request, writer: asyncio.StreamWriter) -> None:
        await self.open.wait()
        writer.write(reply(200))


async def turns(times: int = 50) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


# The end: what is waited for, and what is left.


async def test_drain_waits_for_what_is_on_the_wire() -> None:
    gate = Gate()
    async with pooled(lambda _: gate) as (pool, server):
        told: list[Outcome] = []
        pool.submit(post(), told.append)
        await server.asked(1)
        assert (pool.waiting, pool.in_flight) == (0, 1)
        draining = asyncio.create_task(pool.drain())
        await turns()
        assert not draining.done()
        gate.open.set()
        assert await draining and len(told) == 1
        assert await pool.drain(), "and nothing more is waited for"


async def test_drain_waits_for_what_is_to_be_sent_again(ahead: Callable[[float], None]) -> None:
    def answer(request: Request) -> Answer:
        busy = request.path.endswith("busy") and len(server.requests) == 1
        return reply(429, b"{}", "Retry-After: 20") if busy else reply(200)

    async with pooled(answer) as (pool, server):
        told: list[Outcome] = []
        pool.submit(post("busy"), told.append)
        await until(lambda: pool.counters.throttled)
        assert (pool.waiting, pool.in_flight) == (1, 0)
        draining = asyncio.create_task(pool.drain())
        assert (await pool.request(post("other"))).status == 200
        await turns()
        assert not draining.done() and told == []
        ahead(25.0)
        assert await draining
        assert [type(each) for each in told] == [Reply]


async def test_close_leaves_no_connection() -> None:
    async with pooled(lambda _: reply(200)) as (pool, server):
        await outcomes(pool, [post(str(number)) for number in range(4)])
        assert pool.idle and server.connections
        await pool.close()
        assert (pool.idle, pool.opening) == (0, 0)
        await until(lambda: all(connection.transport.is_closing() for connection in server.connections))


async def test_a_repeatable_write_that_is_on_the_wire_when_the_pool_closes_has_its_outcome() -> None:
    told: list[Outcome] = []
    async with pooled(lambda _: silence) as (pool, server):
        pool.submit(post(repeatable=True), told.append)
        await server.asked(1)
        await pool.close()
        assert [type(each) for each in told] == [OutcomeUnknown]
        assert (pool.waiting, pool.in_flight) == (0, 0)


async def test_a_repeatable_write_is_sent_as_often_as_it_says_and_no_more() -> None:
    async with pooled(lambda _: hang_up) as (pool, _), asyncio.timeout(60):
        with pytest.raises(OutcomeUnknown):
            await pool.request(post(repeatable=True, attempts=3))
        assert pool.counters.sent == 3


async def test_a_binding_goes_first_and_is_never_sent_again_by_itself() -> None:
    """A second one would be refused, and that refusal would hide that the first was carried out."""
    async with pooled(lambda _: hang_up) as (pool, _), asyncio.timeout(60):
        with pytest.raises(OutcomeUnknown):
            await pool.bind("d", "p", uid="u", node="n")
        assert pool.counters.sent == 1
    assert bind_write("d", "p", "u", "n").priority is Priority.BINDING


class Slow(Rotating):
    """Credentials that come when the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.given = asyncio.Event()

    async def authorization(self) -> str:
        self.asked += 1
        await self.given.wait()
        return await super().authorization()


@pytest.mark.parametrize("connected", [False, True])
async def test_close_leaves_no_task(connected: bool) -> None:
    """`connected`: there is a connection, and its next write waits for a credential."""
    before, credentials = asyncio.all_tasks(), Slow()
    told: list[Outcome] = []
    async with RawServer(lambda _: reply(200)) as server:
        pool = WritePool(Endpoint(server.url, credentials=credentials), connections=1)
        if connected:
            credentials.given.set()
            await pool.request(post())
            await until(lambda: pool.idle)
            credentials.given.clear()
            credentials.rejected()
        asked = credentials.asked
        pool.submit(post(), told.append)
        await until(lambda: credentials.asked > asked)
        tasks = asyncio.all_tasks() - before - server.tasks
        assert tasks
        await pool.close()
        assert all(task.done() for task in tasks)
        assert [type(each) for each in told] == [Unreachable]


async def test_a_connection_that_the_server_does_not_want_to_keep_is_closed_by_us() -> None:
    async with pooled(lambda _: reply(200, b"{}", "Connection: close")) as (pool, server):
        await pool.request(post())
        await until(lambda: server.connections[0].transport.is_closing())
        assert pool.idle == 0


async def test_a_reply_without_a_body_says_nothing() -> None:
    async with pooled(lambda _: reply(200, b"")) as (pool, _):
        with pytest.raises(OutcomeUnknown):
            await pool.request(post())


# Order and time.


@pytest.fixture
async def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The delay of each timer that is set."""
    found: list[float] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def noted(delay: float, callback: Callable[..., object], *arguments: Any, context: Any = None) -> asyncio.TimerHandle:
        found.append(delay)
        return call_later(delay, callback, *arguments, context=context)

    monkeypatch.setattr(loop, "call_later", noted)
    return found


async def test_one_timer_looks_after_all_writes(delays: list[float]) -> None:
    async with pooled(lambda _: silence, connections=1) as (pool, _):
        told: list[Outcome] = []
        for number in range(10):
            pool.submit(post(str(number)), told.append)
        assert delays == [TICK]


async def test_an_event_that_waited_too_long_goes_before_a_status(ahead: Callable[[float], None]) -> None:
    gate = Gate()
    async with pooled(lambda request: gate if request.path.endswith("plug") else reply(200), connections=1) as (pool, server):
        told: list[Outcome] = []
        pool.submit(post("plug"), told.append)
        await server.asked(1)
        pool.submit(post("event", priority=Priority.EVENT), told.append)
        ahead(6.0)
        pool.submit(post("status", priority=Priority.STATUS), told.append)
        gate.open.set()
        assert await pool.drain()
    assert [request.path.rsplit("/")[-1] for request in server.requests] == ["plug", "event", "status"]


async def test_a_write_whose_time_is_up_in_the_queue_takes_no_other_with_it(ahead: Callable[[float], None]) -> None:
    gate = Gate()
    async with pooled(lambda request: gate if request.path.endswith("plug") else reply(200), connections=1) as (pool, server):
        told: dict[str, Outcome] = {}
        for name, timeout in (("plug", 3600.0), ("hasty", 5.0), ("calm", 3600.0)):
            pool.submit(post(name, timeout=timeout), partial(told.__setitem__, name))
        await server.asked(1)
        ahead(6.0)
        await until(lambda: told)
        assert [(name, type(each)) for name, each in told.items()] == [("hasty", Unreachable)]
        gate.open.set()
        assert await pool.drain()
        assert [type(told[name]) for name in ("plug", "calm")] == [Reply, Reply]


async def test_a_server_that_does_not_say_when_to_come_back_is_left_alone_for_half_a_second(delays: list[float]) -> None:
    async with pooled(lambda _: reply(429)) as (pool, _):
        pool.submit(post(), lambda outcome: None)
        await until(lambda: pool.counters.throttled)
        assert 0.5 <= delays[-1] <= 0.55


async def test_a_server_that_is_away_is_tried_by_one_connection_at_a_time() -> None:
    with hold_port() as held:
        endpoint = Endpoint(f"http://127.0.0.1:{held.getsockname()[1]}")
        pool = WritePool(endpoint, connections=8, backoff=endless_backoff())
        told: list[Outcome] = []
        for number in range(20):
            pool.submit(post(str(number)), told.append)
        await until(lambda: pool.counters.connections_failed == 8)
        await turns()
        assert (pool.opening, pool.counters.connections_failed, told) == (1, 8, [])
        await pool.close()


async def test_a_server_that_does_not_answer_the_handshake_is_given_up(ahead: Callable[[float], None]) -> None:
    """It takes connections and says nothing: a load balancer whose servers hang."""
    entered = asyncio.Event()
    writers: list[asyncio.StreamWriter] = []

    async def mute(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        entered.set()

    listener = await asyncio.start_server(mute, "127.0.0.1", 0)
    try:
        port = listener.sockets[0].getsockname()[1]
        pool = WritePool(Endpoint(f"https://127.0.0.1:{port}", tls=Tls(insecure=True)), connections=1)
        told: list[Outcome] = []
        pool.submit(post(), told.append)
        await entered.wait()
        await turns()
        assert pool.counters.connections_failed == 0
        ahead(11.0)
        await until(lambda: pool.counters.connections_failed)
        assert told == []
        await pool.close()
        assert [type(each) for each in told] == [Unreachable]
    finally:
        listener.close()
        for writer in writers:
            writer.transport.abort()


async def test_the_name_in_the_certificate_may_be_another_than_that_of_the_host(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.server())

    async def outcome(name: str) -> Any:
        tls = Tls(authority=authority.certificate_file)
        pool = WritePool(Endpoint(server.url, tls=tls, tls_server_name=name), connections=1, backoff=endless_backoff())
        asking = asyncio.create_task(pool.request(post()))
        await until(lambda: asking.done() or pool.counters.connections_failed)
        await pool.close()
        (found,) = await asyncio.gather(asking, return_exceptions=True)
        return found

    async with RawServer(lambda _: reply(200), context) as server:
        assert (await outcome("localhost")).status == 200
        assert isinstance(await outcome("kubernetes.example.com"), Unreachable)
        assert len(server.requests) == 1


# Credentials.


class Failing(Rotating):
    """Credentials that cannot be had, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.asked = 0

    async def authorization(self) -> str:
        self.asked += 1
        if self.asked <= self.times:
            raise ConfigError("log in first")
        return await super().authorization()


async def test_a_credential_that_cannot_be_had_for_a_while() -> None:
    credentials = Failing(2)
    async with pooled(lambda _: reply(200), credentials=credentials) as (pool, server):
        assert (await pool.request(post())).status == 200
        assert credentials.asked == 3 and server.requests[0].headers["authorization"] == "Bearer 1"


async def test_a_credential_that_cannot_be_had_is_not_asked_for_without_a_pause(ahead: Callable[[float], None]) -> None:
    """A connection is open, its credential has expired, and no new one can be had. Writes fail with that reason in the end."""
    credentials = Failing(0)
    async with pooled(lambda _: reply(200), credentials=credentials, connections=1, backoff=endless_backoff()) as (pool, _):
        await pool.request(post())
        await until(lambda: pool.idle)
        credentials.rejected()
        credentials.times, credentials.asked = 1000, 0
        asking = asyncio.create_task(pool.request(post()))
        await until(lambda: credentials.asked)
        await turns(200)
        assert credentials.asked == 1
        ahead(31.0)
        with pytest.raises(Unreachable, match="not sent within 30 s: log in first"):
            await asking


async def test_many_writes_that_wait_for_a_credential_ask_for_it_once() -> None:
    credentials = Slow()
    credentials.given.set()
    async with pooled(lambda _: reply(200), credentials=credentials, connections=3) as (pool, _):
        await pool.request(post())
        await until(lambda: pool.idle)
        credentials.rejected()
        credentials.given.clear()
        asking = asyncio.create_task(outcomes(pool, [post(str(number)) for number in range(5)]))
        await until(lambda: credentials.asked == 2)
        await turns()
        assert credentials.asked == 2, "neither each write nor each new connection for itself"
        credentials.given.set()
        assert all(isinstance(each, Reply) for each in await asking)


async def test_a_credential_is_fetched_before_the_first_connection() -> None:
    """It may be a certificate, and that is shown in the handshake."""

    class Watching(Rotating):
        async def authorization(self) -> str:
            connected.append(len(server.connections))
            return await super().authorization()

    connected: list[int] = []
    async with pooled(lambda _: reply(200), credentials=Watching(), connections=1) as (pool, server):
        await pool.request(post())
    assert connected == [0]
