"""The write pool against a server at the level of bytes: rates, order, refusals, and connections that break."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from tests.worlds.kube.ports import hold_port
from tests.worlds.kube.raw_server import Answer, RawServer, Request, reply
from tests.worlds.kube.write_pool import Rotating, endless_backoff, hang_up, nonsense, outcomes, pooled, post, silence, until

from navarch.kube.auth.credentials import StaticCredentials
from navarch.kube.backoff import Backoff
from navarch.kube.connect import Endpoint
from navarch.kube.errors import ApiError, Conflict, KubeError, OutcomeUnknown, ServerFault, TooManyRequests, Unauthorized, Unreachable
from navarch.kube.write.connection import Connection
from navarch.kube.write.http1 import Reply
from navarch.kube.write.pool import Outcome, Priority, WritePool

BOUND = json.dumps({"kind": "Status", "status": "Success", "code": 201}).encode()
CONFLICT = json.dumps({"kind": "Status", "code": 409, "reason": "Conflict", "message": "already assigned"}).encode()


async def test_a_binding_is_posted_as_the_api_wants_it() -> None:
    async with pooled(lambda _: reply(201, BOUND), credentials=StaticCredentials.token("t")) as (pool, server):
        await pool.bind("team", "p", uid="u1", node="n1")
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/api/v1/namespaces/team/pods/p/binding")
    assert request.headers["authorization"] == "Bearer t"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    body = json.loads(request.body)
    assert body["metadata"] == {"name": "p", "namespace": "team", "uid": "u1"}
    assert (body["kind"], body["target"]["kind"], body["target"]["name"]) == ("Binding", "Node", "n1")


async def test_many_writes_share_few_connections() -> None:
    async with pooled(lambda _: reply(201), connections=4) as (pool, server):
        answers = await outcomes(pool, [post(str(number)) for number in range(500)])
        assert all(isinstance(answer, Reply) for answer in answers)
        assert len(server.connections) == 4
        assert sorted(int(request.path.rsplit("/")[-1]) for request in server.requests) == list(range(500))
        assert pool.waiting == 0 and pool.in_flight == 0


async def test_bindings_go_before_status_and_status_before_events() -> None:
    release = asyncio.Event()

    async def held(_: Request, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(reply(200))

    async with pooled(lambda request: held if request.path.endswith("plug") else reply(200), connections=1) as (pool, server):
        plug = asyncio.create_task(outcomes(pool, [post("plug")]))
        await server.asked(1)
        kinds = [(kind, number) for number in range(2) for kind in reversed(Priority)]
        told: list[Outcome] = []
        for kind, number in kinds:
            pool.submit(post(f"{kind.name}{number}", priority=kind), told.append)
        release.set()
        await pool.drain()
        await plug
    order = [request.path.rsplit("/")[-1] for request in server.requests[1:]]
    assert order == ["BINDING0", "BINDING1", "STATUS0", "STATUS1", "EVENT0", "EVENT1"]


async def test_an_event_that_waited_too_long_goes_first() -> None:
    async with pooled(lambda _: reply(200), connections=1, patience=-1.0) as (pool, server):
        await outcomes(pool, [post("a", priority=Priority.BINDING), post("e", priority=Priority.EVENT)])
    assert [request.path[-1] for request in server.requests] == ["e", "a"]


async def test_a_refusal_carries_the_status() -> None:
    async with pooled(lambda _: reply(409, CONFLICT)) as (pool, server):
        with pytest.raises(Conflict, match="already assigned"):
            await pool.request(post())
        assert len(server.requests) == 1


async def test_a_page_for_people_is_no_success() -> None:
    async with pooled(lambda _: reply(200, b"<html>log in first</html>")) as (pool, _):
        with pytest.raises(OutcomeUnknown, match="log in first"):
            await pool.bind("d", "p", uid="u", node="n")


async def test_a_redirection_is_no_success() -> None:
    """A proxy that wants a login, say: nothing was bound."""
    async with pooled(lambda _: reply(302, b"", "Location: /login")) as (pool, _):
        with pytest.raises(ApiError, match="302"):
            await pool.request(post())


async def test_429_is_sent_again_after_the_time_the_server_asked_for() -> None:
    def answer(request: Request) -> bytes:
        return reply(429, b"{}", "Retry-After: 0.2") if len(server.requests) < 3 else reply(201)

    async with pooled(answer) as (pool, server):
        loop = asyncio.get_running_loop()
        before = loop.time()
        await pool.request(post())
        assert loop.time() - before >= 0.4
        assert len(server.requests) == 3 and pool.counters.throttled == 2


async def test_429_forever_is_told_in_the_end() -> None:
    async with pooled(lambda _: reply(429, b"{}", "Retry-After: 0")) as (pool, server):
        with pytest.raises(TooManyRequests):
            await pool.request(post(attempts=3))
        assert len(server.requests) == 3


@pytest.mark.parametrize(("code", "kind"), [(429, TooManyRequests), (503, ServerFault)])
async def test_a_retry_after_longer_than_the_time_out_of_a_write_is_not_waited_for(code: int, kind: type[KubeError]) -> None:
    async with pooled(lambda _: reply(code, b"{}", "Retry-After: 3600")) as (pool, server), asyncio.timeout(60):
        with pytest.raises(kind):
            await pool.request(post())
        assert len(server.requests) == 1


@pytest.mark.parametrize(("headers", "times"), [((), 1), (("Retry-After: 0",), 5)])
async def test_5xx_is_repeated_only_if_the_server_asks_for_it(headers: tuple[str, ...], times: int) -> None:
    async with pooled(lambda _: reply(503, b"{}", *headers)) as (pool, server):
        (error,) = await outcomes(pool, [post()])
        assert isinstance(error, KubeError)
        assert len(server.requests) == times


@pytest.mark.parametrize(("code", "kind"), [(429, Unreachable), (500, OutcomeUnknown), (503, OutcomeUnknown)])
async def test_after_5xx_the_outcome_is_unknown(code: int, kind: type[KubeError], ahead: Callable[[float], None]) -> None:
    """An API server whose store timed out says when to come back, and cannot know whether the store took it."""
    async with pooled(lambda _: reply(code, b"{}", "Retry-After: 20")) as (pool, server):
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[Outcome] = loop.create_future()
        write = post()
        pool.submit(write, waiting.set_result)
        await until(lambda: pool.counters.throttled)
        await pool.close()
        assert type(await waiting) is kind
        ahead(25.0)  # nor is it sent when its time comes
        for _ in range(3):
            await asyncio.sleep(0)
        assert (len(server.requests), pool.waiting) == (1, 0)


async def test_a_reply_in_chunks_and_a_connection_that_is_not_kept() -> None:
    def answer(request: Request) -> Answer:
        if request.path.endswith("chunked"):
            return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
        return reply(200, b"{}", "Connection: close")

    async with pooled(answer, connections=1) as (pool, server):
        answers = await outcomes(pool, [post("close"), post("chunked"), post("close"), post("chunked")])
        assert [answer.body for answer in answers if isinstance(answer, Reply)] == [b"{}"] * 4
        assert len(server.connections) == 3


async def half_a_reply(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(201, b'{"kind": "Status"}')[:-5])
    await writer.drain()
    writer.transport.close()


@pytest.mark.parametrize("fault", [hang_up, half_a_reply, silence, nonsense])
async def test_a_write_whose_reply_is_missing_is_unknown_and_never_repeated(fault: Answer, ahead: Callable[[float], None]) -> None:
    async with pooled(lambda request: fault if request.path.endswith("bad") else reply(201), connections=2) as (pool, server):
        asking = asyncio.create_task(outcomes(pool, [post("bad"), *(post(str(number)) for number in range(20))]))
        if fault is silence:
            await until(lambda: pool.counters.replies == 20)
            ahead(31.0)
        bad, *good = await asking
        assert isinstance(bad, OutcomeUnknown)
        assert all(isinstance(each, Reply) for each in good)
        assert [request.path for request in server.requests].count("/api/v1/bad") == 1
        assert pool.counters.unknown == 1


async def test_a_repeatable_write_is_sent_again() -> None:
    async with pooled(lambda request: hang_up if len(server.requests) < 3 else reply(200)) as (pool, server):
        assert (await pool.request(post(repeatable=True))).status == 200
        assert len(server.requests) == 3


async def test_a_repeatable_write_that_never_gets_a_reply_is_unknown(ahead: Callable[[float], None]) -> None:
    async with pooled(lambda _: silence) as (pool, server):
        asking = asyncio.create_task(outcomes(pool, [post(repeatable=True)]))
        await server.asked(1)
        ahead(31.0)
        (error,) = await asking
        assert isinstance(error, OutcomeUnknown) and "no reply within 30 s" in str(error)
        assert len(server.requests) == 1


async def test_a_port_without_a_listener_is_unreachable_not_unknown(ahead: Callable[[float], None]) -> None:
    with hold_port() as held:
        pool = WritePool(Endpoint(f"http://127.0.0.1:{held.getsockname()[1]}"))
        asking = asyncio.create_task(outcomes(pool, [post()]))
        await until(lambda: pool.counters.connections_failed)
        ahead(31.0)
        (error,) = await asking
        assert isinstance(error, Unreachable) and "Connect call failed" in str(error)
        await pool.close()


async def test_a_server_that_is_away_is_not_stormed() -> None:
    with hold_port() as held:
        pool = WritePool(Endpoint(f"http://127.0.0.1:{held.getsockname()[1]}"), backoff=endless_backoff())
        told: list[Outcome] = []
        pool.submit(post(), told.append)
        await until(lambda: pool.counters.connections_failed)
        for _ in range(500):
            await asyncio.sleep(0)
        assert (pool.counters.connections_failed, told) == (1, [])
        await pool.close()


async def test_writes_wait_for_a_server_that_comes_back() -> None:
    release = asyncio.Event()

    async def held(_: Request, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(reply(200))

    server = RawServer(lambda _: held if len(server.requests) > 1 else reply(200))
    backoff = Backoff(first=0.05, cap=5.0)
    pool = WritePool(Endpoint(server.url), backoff=backoff)
    running = asyncio.create_task(pool.request(post()))
    await until(lambda: pool.counters.connections_failed)
    async with server:
        assert (await running).status == 200
        # And it is trusted again: as many connections as there are writes, without a wait.
        assert backoff.next() <= 0.05
        many = asyncio.create_task(outcomes(pool, [post(str(number)) for number in range(8)]))
        await server.asked(9)
        release.set()
        await many
        await pool.close()


async def test_idle_connections_are_closed_before_the_server_closes_them(ahead: Callable[[float], None]) -> None:
    async with pooled(lambda _: reply(200), connections=4) as (pool, server):
        await outcomes(pool, [post(str(number)) for number in range(4)])
        await until(lambda: pool.idle == 4)
        ahead(30.0)
        await outcomes(pool, [post("again")])
        ahead(20.0)
        await until(lambda: pool.idle == 1)
        ahead(30.0)
        await until(lambda: pool.idle == 0)
        assert len(server.connections) == 4


async def test_connections_the_server_closed_while_idle_are_replaced() -> None:
    async with pooled(lambda _: reply(200), connections=1) as (pool, server):
        for _ in range(5):
            assert (await pool.request(post())).status == 200
            server.connections[-1].transport.abort()
            # Until the loop has seen the end, as it has long before the next write of a real run.
            await until(lambda: not pool.idle)
        assert len(server.connections) == 5


async def test_a_connection_that_is_about_to_close_carries_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The write is submitted after the pool has begun to close an idle connection and before the loop reports its end."""
    told: list[Outcome] = []
    abort = Connection.abort

    def abort_and_submit(connection: Connection, reason: str) -> None:
        abort(connection, reason)
        pool.submit(post(), told.append)

    async with pooled(lambda _: reply(200), connections=2) as (pool, server):
        await pool.request(post())
        await until(lambda: pool.idle)
        with monkeypatch.context() as patch:
            patch.setattr(Connection, "abort", abort_and_submit)
            server.connections[0].write(b"bytes that belong to no request")
            await until(lambda: pool.opening)
        assert await pool.drain(60.0)
        assert [type(each) for each in told] == [Reply] and len(server.connections) == 2


async def test_401_fetches_the_credential_once_for_all() -> None:
    credentials = Rotating()

    def answer(request: Request) -> bytes:
        return reply(201) if request.headers["authorization"] == "Bearer 2" else reply(401)

    async with pooled(answer, credentials=credentials, connections=8) as (pool, _):
        answers = await outcomes(pool, [post(str(number)) for number in range(50)])
        assert all(isinstance(answer, Reply) for answer in answers)
        assert credentials.fetches == 2


async def test_a_credential_runs_out_more_than_once() -> None:
    accepted, credentials = ["Bearer 1"], Rotating()

    def answer(request: Request) -> bytes:
        return reply(201) if request.headers["authorization"] == accepted[0] else reply(401)

    async with pooled(answer, credentials=credentials, connections=2) as (pool, server):
        for number in (1, 2, 3):
            accepted[0] = f"Bearer {number}"
            answers = await outcomes(pool, [post(str(each)) for each in range(10)])
            assert all(isinstance(answer, Reply) for answer in answers), number
            for connection in server.connections:  # nor do new connections wait for it
                connection.transport.abort()
            await until(lambda: not pool.idle)


async def test_401_again_is_told() -> None:
    async with pooled(lambda _: reply(401), credentials=Rotating()) as (pool, server):
        with pytest.raises(Unauthorized):
            await pool.request(post())
        assert len(server.requests) == 2


async def test_close_gives_each_write_one_outcome() -> None:
    told: list[Outcome] = []
    async with pooled(lambda _: silence, connections=2) as (pool, server):
        for number in range(5):
            pool.submit(post(str(number)), told.append)
        await server.asked(2)
        assert not await pool.drain(timeout=0.01)
        await pool.close()
        assert sorted(type(outcome).__name__ for outcome in told) == ["OutcomeUnknown"] * 2 + ["Unreachable"] * 3
        pool.submit(post(), told.append)
        await asyncio.sleep(0)
        assert len(told) == 6 and isinstance(told[-1], Unreachable)
        assert (pool.waiting, pool.in_flight) == (0, 0)


async def test_the_outcome_of_a_cancelled_request_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    release = asyncio.Event()

    async def held(_: Request, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(reply(200))

    async with pooled(lambda _: held) as (pool, server):
        waiting = asyncio.create_task(pool.request(post()))
        await server.asked(1)
        waiting.cancel()
        release.set()
        assert await pool.drain(timeout=60)
    assert waiting.cancelled() and [record for record in caplog.records if record.name.startswith("navarch")] == []


async def test_drain_waits_for_what_is_under_way() -> None:
    told: list[Outcome] = []
    async with pooled(lambda _: reply(200)) as (pool, _):
        for number in range(100):
            pool.submit(post(str(number)), told.append)
        assert await pool.drain(timeout=120)
        assert len(told) == 100


async def test_a_server_that_accepts_and_hangs_up_is_not_stormed() -> None:
    """A load balancer without servers behind it: most writes must wait unsent, not be lost one by one."""
    async with pooled(lambda _: hang_up, connections=8) as (pool, server):
        told = await outcomes(pool, [post(str(number), timeout=1.0) for number in range(200)])
        kinds = [type(outcome) for outcome in told]
        assert kinds.count(Unreachable) > 150 and kinds.count(OutcomeUnknown) == pool.counters.sent >= len(server.requests)
        assert len(server.connections) < 40


async def test_a_callback_that_raises_does_not_affect_other_writes(caplog: pytest.LogCaptureFixture) -> None:
    def broken(outcome: Outcome) -> None:
        raise RuntimeError("cannot cope")

    async with pooled(lambda _: reply(200), connections=1) as (pool, server):
        pool.submit(post("first"), broken)
        assert (await pool.request(post("second"))).status == 200
        assert len(server.connections) == 1
    assert "cannot cope" in caplog.text


async def test_writes_are_withheld_once_they_are_not_allowed() -> None:
    """The first reply comes when the right to write is gone: what waits for its connection is told so, at once."""
    allowed = [True]

    def answer(_: Request) -> bytes:
        allowed[0] = False
        return reply(201)

    async with RawServer(answer) as server:
        pool = WritePool(Endpoint(server.url), connections=1, may_write=lambda: allowed[0])
        first, *others = await outcomes(pool, [post(str(number)) for number in range(5)])
        assert isinstance(first, Reply)
        assert all(isinstance(each, Unreachable) and "does not lead" in str(each) for each in others)
        assert len(server.requests) == 1
        allowed[0] = True
        assert (await pool.request(post("again"))).status == 201
        await pool.close()
