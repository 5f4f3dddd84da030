"""Thousands of small writes a second over a few keep-alive connections.

The rate of bindings limits the throughput of a scheduler. With a general HTTP client a binding costs more CPU here than in the API
server. So this pool implements HTTP/1.1 itself (`http1`), with one request in flight on each connection. The callback that completes a
request sends the next one: no task, no lock and no await for each request.

    pool = WritePool(endpoint)
    await pool.bind("default", "p", uid=uid, node="n1")                  # raises ApiError, Unreachable, OutcomeUnknown
    pool.submit(Write("POST", path, body, priority=Priority.EVENT), done)  # done(outcome), called in the loop
    await pool.drain(); await pool.close()

Guarantees:
- Waiting writes are sent by priority, then in order of submission; a write of lower priority that waited for `patience` goes first.
- After 429, and 5xx with Retry-After, a write is sent again after that time, if its time-out allows it; after 401 once, with a new
  credential.
- A write whose connection broke or whose time ran out after it was sent is `OutcomeUnknown`. The pool sends it again only if it has
  `repeatable=True`: doing it twice is the same as doing it once.
- A write that was never sent, or was only refused with 429, fails as `Unreachable`; after 5xx its outcome is unknown.
- `answers` says what an answer means: a proxy that answers for the server has bound no pod.
- Every write gets exactly one outcome.
- `may_write` is asked before each write is sent. After it returns False, all waiting writes fail as `Unreachable`.
- Replaced certificates hold for all later writes: connections with older ones are closed between two writes.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import random
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from navarch.kube.answers import Again, Answer, answer_of
from navarch.kube.backoff import Backoff
from navarch.kube.client import binding
from navarch.kube.connect import Endpoint
from navarch.kube.errors import KubeError, OutcomeUnknown, Unreachable
from navarch.kube.resources import PODS
from navarch.kube.transport import WITHHELD
from navarch.kube.tunnel import open_tunnel
from navarch.kube.write.connection import Connection, RequestHead
from navarch.kube.write.http1 import Reply

log = logging.getLogger(__name__)

TICK = 0.25
"""How often time-outs are checked. There is one timer for all writes: a timer for each would cost as much as the write."""
IDLE_LIMIT = 45.0
"""API servers close idle connections after 90 s or more; the pool does so earlier, so that no write meets that."""

Outcome = Reply | KubeError
Done = Callable[[Outcome], None]


class Priority(enum.IntEnum):
    """Which write goes first when all connections are busy."""

    BINDING = 0
    STATUS = 1
    EVENT = 2


@dataclass(slots=True)
class Write:
    """One request of the pool."""

    method: str
    path: str
    body: bytes
    content_type: str = "application/json"
    priority: Priority = Priority.STATUS
    timeout: float = 30.0
    """Seconds from submission to an outcome."""
    repeatable: bool = False
    """Sending it twice does no more than sending it once."""
    attempts: int = 5
    # Kept by the pool.
    done: Done | None = field(default=None, repr=False)
    submitted: float = 0.0
    credential: str | None = field(default=None, repr=False)
    refreshed: bool = False
    maybe_done: bool = False
    """Its connection broke, or it was answered with 5xx: the server may have processed it."""


@dataclass
class PoolCounters:
    """What happened so far, for metrics."""

    sent: int = 0
    replies: int = 0
    throttled: int = 0
    unknown: int = 0
    connections_opened: int = 0
    connections_failed: int = 0


class WritePool:
    """See the module."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        connections: int = 32,
        connect_timeout: float = 10.0,
        patience: float = 5.0,
        rng: random.Random | None = None,
        may_write: Callable[[], bool] = lambda: True,
        backoff: Backoff | None = None,
    ) -> None:
        """`backoff`: the waits between attempts to connect after a failure."""
        self.counters = PoolCounters()
        self.may_write: Final = may_write
        self._endpoint = endpoint
        self._limit = connections
        self._connect_timeout = connect_timeout
        self._patience = patience
        self._rng = rng or random.Random()
        self._head = RequestHead(endpoint)
        self._context = endpoint.ssl_context
        self._waiting: tuple[deque[Write], ...] = tuple(deque() for _ in Priority)
        self._delayed: dict[int, tuple[Write, asyncio.TimerHandle]] = {}
        self._idle: list[Connection] = []
        self._busy: dict[Connection, Write] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._backoff = backoff or Backoff(first=0.05, cap=5.0, rng=self._rng)
        self._troubled = False
        """The last connection failed before it carried a reply: open one at a time, not all at once."""
        self.last_connect_error = ""
        """Why the last connection or credential could not be had; empty: none failed."""
        self._tick: asyncio.TimerHandle | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._drained: list[asyncio.Future[None]] = []
        self._closed = False

    @property
    def waiting(self) -> int:
        """Writes not yet on the wire."""
        return sum(map(len, self._waiting)) + len(self._delayed)

    @property
    def in_flight(self) -> int:
        return len(self._busy)

    @property
    def idle(self) -> int:
        """Idle connections."""
        return len(self._idle)

    @property
    def opening(self) -> int:
        """Connections that are being opened, those that wait to be tried again included."""
        return len(self._opening)

    def submit(self, write: Write, done: Done) -> None:
        """Send as soon as a connection is free. `done` is called once, in the loop; its exceptions are logged."""
        loop = asyncio.get_running_loop()
        write.done, write.submitted = done, loop.time()
        if self._closed:
            loop.call_soon(done, Unreachable("the pool is closed", method=write.method, path=write.path))
            return
        self._waiting[write.priority].append(write)
        self._dispatch()
        if self._tick is None:
            self._tick = loop.call_later(TICK, self._look_at_the_clock)

    async def request(self, write: Write) -> Reply:
        """Send and wait; a refusal raises."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def done(outcome: Outcome) -> None:
            if future.cancelled():
                return
            if isinstance(outcome, Reply):
                future.set_result(outcome)
            else:
                future.set_exception(outcome)

        self.submit(write, done)
        return await future

    async def bind(self, namespace: str, name: str, *, uid: str, node: str) -> None:
        """Bind a pod to a node, before all other kinds of writes."""
        await self.request(bind_write(namespace, name, uid, node))

    async def drain(self, timeout: float | None = None) -> bool:
        """Wait until every write submitted so far has its outcome; False if time ran out first."""
        if not self.waiting and not self._busy:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._drained.append(future)
        try:
            async with asyncio.timeout(timeout):
                await future
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Close all connections. Writes without an outcome fail: `OutcomeUnknown` if they were sent, otherwise `Unreachable`."""
        self._closed = True
        if self._tick is not None:
            self._tick.cancel()
        tasks = [*self._opening, *([self._refreshing] if self._refreshing else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        closing = [*self._idle, *self._busy]
        for write, handle in list(self._delayed.values()):
            handle.cancel()
            self._waiting[write.priority].append(write)
        self._delayed.clear()
        for queue in self._waiting:
            while queue:
                self._give_up(queue.popleft(), "the pool was closed before it was sent")
        for connection in closing:
            connection.abort("the pool was closed")
        for connection in closing:
            await connection.closed.wait()

    # States of a write: waiting -> busy -> outcome, or back to waiting.

    def _dispatch(self) -> None:
        """Put waiting writes on free connections, and open more while writes wait and the limit allows."""
        while self._idle:
            if not self._idle[-1].usable:
                self._idle.pop()
            elif (write := self._next()) is not None:
                self._send(self._idle.pop(), write)
            else:
                break
        wanted = min(self._limit - len(self._busy) - len(self._idle), sum(map(len, self._waiting)))
        if self._troubled:
            wanted = min(wanted, 1)
        while len(self._opening) < wanted and self._refreshing is None:
            task = asyncio.get_running_loop().create_task(self._open())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def _next(self) -> Write | None:
        if not self.may_write():
            self._withhold()
            return None
        if self._head.current() is None:
            self._refresh()
            return None
        for queue in self._waiting[Priority.STATUS :]:
            if queue and asyncio.get_running_loop().time() - queue[0].submitted > self._patience:
                return queue.popleft()
        for queue in self._waiting:
            if queue:
                return queue.popleft()
        return None

    def _withhold(self) -> None:
        for queue in self._waiting:
            late = list(queue)
            queue.clear()
            for write in late:
                self._give_up(write, WITHHELD)

    def _send(self, connection: Connection, write: Write) -> None:
        self._busy[connection] = write
        write.attempts -= 1
        write.credential = self._head.credential
        self.counters.sent += 1
        connection.send(write.method, write.path, write.content_type, write.body)

    def _refresh(self) -> None:
        """Fetch a new credential, then continue."""
        if self._refreshing is None and any(self._waiting):
            self._refreshing = asyncio.get_running_loop().create_task(self._fetch_credential())

    async def _fetch_credential(self) -> None:
        try:
            await self._head.fetch()
        except Exception as error:
            # Whatever the source of credentials raises, it is asked again: without it no write is ever sent.
            log.warning("no credential for writes: %s", error, exc_info=not isinstance(error, KubeError))
            self.last_connect_error = str(error)
            await asyncio.sleep(self._backoff.next())
        self._refreshing = None
        self._look_at_certificates()
        self._dispatch()

    async def _open(self) -> None:
        endpoint, loop = self._endpoint, asyncio.get_running_loop()
        if self._troubled:
            await asyncio.sleep(self._backoff.next())
        try:
            # A credential can be a client certificate, which the handshake needs.
            if self._head.current() is None:
                await self._head.fetch()
            context = self._look_at_certificates()
            if endpoint.proxy is not None:
                connection = await open_tunnel(endpoint, self._connection, context, self._connect_timeout)
            else:
                async with asyncio.timeout(self._connect_timeout):
                    _, connection = await loop.create_connection(
                        self._connection,
                        endpoint.host,
                        endpoint.port,
                        ssl=context,
                        server_hostname=(endpoint.tls_server_name or endpoint.host) if context else None,
                    )
        except Exception as error:
            # TimeoutError and ssl.SSLError are OSErrors. Anything else is a fault of ours, and still only means no connection now.
            self.counters.connections_failed += 1
            self.last_connect_error = str(error) or type(error).__name__
            unforeseen = not isinstance(error, OSError | KubeError)
            log.info("%s: no connection for writes: %s", endpoint.base, self.last_connect_error, exc_info=unforeseen)
            self._troubled = True
            self._opening.discard(_this_task())
            self._dispatch()
            return
        self.counters.connections_opened += 1
        self._opening.discard(_this_task())
        connection.idle_since = loop.time()
        connection.outdated = context is not self._context
        if connection.outdated:
            connection.abort("certificates were replaced meanwhile")
        else:
            self._idle.append(connection)
        self._dispatch()

    def _connection(self) -> Connection:
        return Connection(self._head, self._replied, self._lost)

    def _look_at_certificates(self) -> ssl.SSLContext | None:
        """The TLS context for new connections. If it changed, older connections are closed when they are idle."""
        context = self._endpoint.ssl_context
        if context is not self._context:
            self._context = context
            idle, self._idle = self._idle, []
            for connection in (*idle, *self._busy):
                connection.outdated = True
            for connection in idle:
                connection.abort("certificates were replaced")
        return context

    def _replied(self, connection: Connection, reply: Reply) -> None:
        write = self._busy[connection]
        answer = answer_of(write.method, write.path, reply.status, reply.body, retry_after=reply.retry_after)
        if answer.again is Again.WITH_NEW_CREDENTIAL:
            # The certificate may have expired, and a new one may be there.
            self._look_at_certificates()
        del self._busy[connection]
        self.counters.replies += 1
        if self._troubled:
            self._troubled = False
            self._backoff.reset()
        kept = reply.reusable and not connection.outdated
        if kept:
            # Send the next write first: the server works on it while this reply is processed.
            following = self._next()
            if following is not None:
                self._send(connection, following)
            else:
                connection.idle_since = asyncio.get_running_loop().time()
                self._idle.append(connection)
        else:
            connection.abort("certificates were replaced" if reply.reusable else "the server does not keep it open")
        if answer.error is None:
            self._finish(write, reply)
        else:
            self._refused(connection, write, answer, answer.error)
        if not kept:
            self._dispatch()

    def _refused(self, connection: Connection, write: Write, answer: Answer, error: KubeError) -> None:
        if answer.again is Again.WITH_NEW_CREDENTIAL and not write.refreshed:
            write.refreshed = True
            # Other writes may have been refused too, and a new credential may have been fetched meanwhile.
            if self._endpoint.credentials.cached() == write.credential and not connection.outdated:
                self._endpoint.credentials.rejected()
            self._waiting[write.priority].appendleft(write)
            self._dispatch()
            return
        write.maybe_done |= answer.maybe_done
        asked = 0.5 if answer.retry_after is None else answer.retry_after
        pause = asked * (1 + 0.1 * self._rng.random())
        in_time = asyncio.get_running_loop().time() + pause <= write.submitted + write.timeout
        if answer.again is Again.LATER and write.attempts > 0 and in_time and not self._closed:
            self.counters.throttled += 1
            self._delayed[id(write)] = (write, asyncio.get_running_loop().call_later(pause, self._again, write))
            return
        self._finish(write, error)

    def _again(self, write: Write) -> None:
        del self._delayed[id(write)]
        self._waiting[write.priority].append(write)
        self._dispatch()

    def _lost(self, connection: Connection, reason: str) -> None:
        """A connection is gone."""
        if not connection.proven and not connection.outdated:
            self._troubled = True
            self.last_connect_error = reason
        write = self._busy.pop(connection, None)
        if write is None:
            if connection in self._idle:
                self._idle.remove(connection)
            return
        write.maybe_done = True
        in_time = asyncio.get_running_loop().time() - write.submitted <= write.timeout
        if write.repeatable and write.attempts > 0 and in_time and not self._closed:
            self._waiting[write.priority].appendleft(write)
        else:
            self._give_up(write, reason)
        if not self._closed:
            self._dispatch()

    def _finish(self, write: Write, outcome: Outcome) -> None:
        assert write.done is not None
        done, write.done = write.done, None
        try:
            done(outcome)
        except Exception:
            # The connection and the writes behind this one do not depend on its caller.
            log.exception("the caller of %s %s failed on its outcome %s", write.method, write.path, outcome)
        if self._drained and not self._busy and not self.waiting:
            for future in self._drained:
                if not future.done():
                    future.set_result(None)
            self._drained.clear()

    def _give_up(self, write: Write, reason: str) -> None:
        """No reply will come. Only a write that was never sent is certainly not processed."""
        self.counters.unknown += write.maybe_done
        kind = OutcomeUnknown if write.maybe_done else Unreachable
        self._finish(write, kind(reason, method=write.method, path=write.path))

    def _look_at_the_clock(self) -> None:
        """Check time-outs of sent and waiting writes, and close idle connections."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._look_at_certificates()
        for connection, write in list(self._busy.items()):
            if now - write.submitted > write.timeout:
                connection.abort(f"no reply within {write.timeout:g} s")
        cause = self.last_connect_error or "all connections are busy"
        for queue in self._waiting:
            late = [write for write in queue if now - write.submitted > write.timeout]
            if late:
                kept = [write for write in queue if now - write.submitted <= write.timeout]
                queue.clear()
                queue.extend(kept)
            for write in late:
                self._give_up(write, f"not sent within {write.timeout:g} s: {cause}")
        for connection in [each for each in self._idle if now - each.idle_since > IDLE_LIMIT]:
            self._idle.remove(connection)
            connection.abort("idle")
        working = self._busy or self._idle or self._opening or self.waiting
        self._tick = loop.call_later(TICK, self._look_at_the_clock) if working else None


def bind_write(namespace: str, name: str, uid: str, node: str) -> Write:
    """A binding as a write. Not repeatable: a second binding is refused, and the refusal would hide the success of the first."""
    body = binding(namespace, name, uid, node)
    return Write("POST", PODS.path(namespace, name, "binding"), body, priority=Priority.BINDING)


def _this_task() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None
    return task
