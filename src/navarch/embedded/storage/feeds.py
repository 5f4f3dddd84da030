"""A feed of one resource for one reader: queued for `async for`, in batches for HTTP, or by callback.

A selector makes its own view: an object that begins to match is ADDED, one that ceases to match is DELETED with its
last matching state and the revision of the change. That translation is here, so that every kind of reader gets it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from navarch.embedded.storage.record import Event, Record

if TYPE_CHECKING:
    from navarch.embedded.storage.store import Store

Matches = Callable[[Record], bool]


class Watch:
    """Events of one resource in revision order, from where it was opened until it is closed."""

    def __init__(self, store: Store, resource: str, namespace: str, matches: Matches | None, limit: int) -> None:
        self.resource = resource
        self.namespace = namespace
        self.seen = 0
        """The newest revision this watch was offered (matching or not); what a bookmark may say."""
        self.closed = False
        self.overflowed = False
        self.on_overflow: Callable[[], None] | None = None
        """Called when the reader fell too far behind: it may be stuck in a write and see nothing else."""
        self._store = store
        self._matches = matches
        self._limit = limit
        self._queue: deque[Event] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._callback: Callable[[Event], None] | None = None

    @property
    def is_remote(self) -> bool:
        """Whether a client reads it over HTTP (those alone are bounded)."""
        return self._limit > 0

    def replay(self, events: Iterable[Event]) -> None:
        """Offer events of the past, without the bound that holds for live ones."""
        for event in events:
            self.seen = max(self.seen, event.revision)
            seen = self.translate(event)
            if seen is not None:
                self._queue.append(seen)

    def offer(self, event: Event) -> None:
        """Take a live event; one that was already replayed is passed over."""
        if self.closed or event.revision <= self.seen:
            return
        self.seen = event.revision
        seen = self.translate(event)
        if seen is None:
            return
        if self._callback is not None:
            self._callback(seen)
            return
        self._queue.append(seen)
        if self._limit and len(self._queue) > self._limit:
            self.overflowed = True
            self.close()
            if self.on_overflow is not None:
                self.on_overflow()
            return
        self._wake()

    def translate(self, event: Event) -> Event | None:
        """How this watch sees an event, or None if it does not."""
        record, previous = event.record, event.previous
        if self.namespace and record.namespace != self.namespace:
            return None
        matches = self._matches
        if matches is None:
            return event
        if event.type == "DELETED":
            return event if matches(record) else None
        if matches(record):
            if event.type == "ADDED" or (previous is not None and matches(previous)):
                return event
            return _as(event, "ADDED")
        if previous is not None and matches(previous):
            return _as(event, "DELETED")
        return None

    def call(self, callback: Callable[[Event], None]) -> None:
        """Pass events to `callback` from now on, the waiting ones first."""
        while self._queue and not self.closed:
            callback(self._queue.popleft())
        self._callback = callback

    def take(self) -> list[Event]:
        """All events that wait, without waiting."""
        found = list(self._queue)
        self._queue.clear()
        return found

    async def batch(self, timeout: float | None = None) -> list[Event]:
        """Wait for events and return all that are there; empty when closed or timed out."""
        if not self._queue and not self.closed:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(timeout):  # `wait_for` would swallow a cancellation that comes with an event
                    await self._waiter
            except TimeoutError:
                return []
            finally:
                self._waiter = None
        return self.take()

    def close(self) -> None:
        """End the feed; what waits can still be taken."""
        if not self.closed:
            self.closed = True
            self._store.discard(self)
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> Event:
        while not self._queue:
            if self.closed:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._queue.popleft()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _as(event: Event, kind: str) -> Event:
    """The same change under another type, made once and shared by all watches that see it so."""
    found = event.views.get(kind)
    if found is None:
        if kind == "ADDED":
            found = Event("ADDED", event.record, None, event.time)
        else:
            assert event.previous is not None
            obj = event.previous.decode()
            obj["metadata"]["resourceVersion"] = str(event.revision)
            last = Record(event.record.resource, obj, event.revision, event.previous.fields)
            found = Event("DELETED", last, event.previous, event.time)
        event.views[kind] = found
    return found
