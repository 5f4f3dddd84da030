"""A watch over HTTP: one JSON line an event. One write sends all lines that are waiting.

Each event is encoded once for all its watchers; the event keeps the line. A reader that cannot keep up is disconnected. It lists
again, which costs less than a queue without a bound.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.output.lists import ListOptions, wait_for
from navarch.embedded.storage.feeds import Matches, Watch
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import Store
from navarch.object_types import Manifest

BOOKMARK_SECONDS = 60.0
DEFAULT_TIMEOUT = (1800.0, 3600.0)
BEHIND_LIMIT = 100_000
SLICE = 512
"""Events joined into one write: large enough to save system calls, small enough to let others run."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
Render = Callable[[Record, bool], bytes]
"""Bytes of a record's object in the form this watcher asked for (second argument: whether it is the first)."""


class WatchStream:
    """Serves one watch request."""

    def __init__(
        self, store: Store, kind: Kind, namespace: str, options: ListOptions, matches: Matches | None, render: Render | None
    ) -> None:
        self._store = store
        self._kind = kind
        self._namespace = namespace
        self._options = options
        self._matches = matches
        self._render = render
        self._first = True

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request until it times out, its reader leaves, or the watch is cut."""
        options, store = self._options, self._store
        options.check_watch()
        asked = options.revision()
        await wait_for(store, asked)
        await store.settled()
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        everything = options.initial_events or (options.initial_events is None and not asked)
        try:
            since = 0 if everything else (asked or store.revision)
            watch = store.watch(self._kind.stored, since, self._namespace, self._matches, BEHIND_LIMIT)
        except ApiError as error:
            await response.prepare(request)
            await response.write(_line("ERROR", msgspec.json.encode(error.status())))
            return response
        if request.transport is not None:
            watch.on_overflow = request.transport.abort
        with watch:
            await response.prepare(request)
            await self._send(response, watch.take())
            if options.initial_events:
                await response.write(self._bookmark(max(watch.seen, asked), initial=True))
            await self._follow(response, watch)
        return response

    async def _follow(self, response: web.StreamResponse, watch: Watch) -> None:
        options = self._options
        loop = asyncio.get_running_loop()
        seconds = float(options.timeout) if options.timeout else random.uniform(*DEFAULT_TIMEOUT)
        deadline = loop.time() + seconds
        bookmark_at = loop.time() + BOOKMARK_SECONDS
        while not watch.closed:
            now = loop.time()
            if now >= deadline:
                if options.bookmarks:
                    await response.write(self._bookmark(max(watch.seen, self._store.flushed)))
                return
            if options.bookmarks and now >= bookmark_at:
                await response.write(self._bookmark(max(watch.seen, self._store.flushed)))
                bookmark_at = now + BOOKMARK_SECONDS
            until = min(deadline, bookmark_at) if options.bookmarks else deadline
            events = await watch.batch(max(until - now, 0.001))
            if events:
                await self._send(response, events)
        await self._send(response, watch.take())

    async def _send(self, response: web.StreamResponse, events: list[Event]) -> None:
        for start in range(0, len(events), SLICE):
            await response.write(b"".join([self._encode(event) for event in events[start : start + SLICE]]))

    def _encode(self, event: Event) -> bytes:
        if self._render is not None:
            first, self._first = self._first, False
            return _line(event.type, self._render(event.record, first))
        kind = self._kind
        key = f"{event.type}{kind.api_version}" if kind.from_storage else event.type
        line = event.lines.get(key)
        if line is None:
            line = event.lines[key] = _line(event.type, served_bytes(kind, event.record))
        return line

    def _bookmark(self, revision: int, initial: bool = False) -> bytes:
        metadata: Manifest = {"resourceVersion": str(revision)}
        if initial:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        obj: dict[str, Any] = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata}
        return _line("BOOKMARK", msgspec.json.encode(obj))


def _line(kind: str, raw: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), raw)


def served_bytes(kind: Kind, record: Record) -> bytes:
    """The JSON of a record in the version of a kind; the stored bytes themselves where no conversion is needed."""
    if kind.from_storage is None:
        return record.raw
    return msgspec.json.encode(kind.from_storage(record.decode()))
