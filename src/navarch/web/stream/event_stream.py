"""Server-sent events: what changed since the version that a viewer has.

Each stream waits for the next version and then asks for the difference. Viewers that have the same version, ask for the same topics
and may see the same get the same bytes, which are made once. A viewer that reads slowly skips versions and gets their sum.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from aiohttp import web
from multidict import MultiMapping

from navarch.web.api.context import Context
from navarch.web.api.lists import Lists
from navarch.web.errors import RequestError, invalid
from navarch.web.security.viewer import Viewer
from navarch.web.stream.change_log import TOPICS, Changed
from navarch.web.tables.job_filter import JobFilter, read_filter

KEEP_ALIVE: Final = 15.0
REVIEW_SECONDS: Final = 10.0
"""The rights of a viewer are reviewed again after this time."""
MOST_STREAMS: Final = 200
MOST_OF_A_VIEWER: Final = 20
"""Streams of one user: each tab of a browser has one. The others are left for other users."""
MOST_MADE: Final = 32
"""Encoded events that are kept for viewers who ask the same."""


@dataclass(frozen=True)
class Wanted:
    topics: frozenset[str]
    jobs: JobFilter
    viewer: Viewer


def read_topics(query: MultiMapping[str]) -> frozenset[str]:
    text = query.get("topics", ",".join(TOPICS))
    found = frozenset(each for each in text.split(",") if each)
    if not found or found - set(TOPICS):
        raise invalid(f"topics: expected some of {', '.join(TOPICS)}, found {text!r}")
    return found


class EventStreams:
    def __init__(self, context: Context, lists: Lists) -> None:
        self._context, self._lists = context, lists
        self._made: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._of: Counter[str] = Counter()
        """User -> streams that are open now."""

    async def events(self, request: web.Request, viewer: Viewer) -> web.StreamResponse:
        self._context.check_ready()
        wanted = Wanted(read_topics(request.query), read_filter(request.query), viewer)
        if self.open >= MOST_STREAMS:
            raise RequestError(429, "TooManyStreams", f"{MOST_STREAMS} pages are open already", retry_after=10)
        if self._of[viewer.user] >= MOST_OF_A_VIEWER:
            raise RequestError(429, "TooManyStreams", f"{viewer.user}: {MOST_OF_A_VIEWER} pages are open already", retry_after=10)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"})
        self._of[viewer.user] += 1
        try:
            await response.prepare(request)
            await self._send(request, response, wanted)
        finally:
            self._of[viewer.user] -= 1
            self._of += Counter()  # forgets users without streams
        return response

    @property
    def open(self) -> int:
        """Streams that are open now."""
        return self._of.total()

    async def _send(self, request: web.Request, response: web.StreamResponse, wanted: Wanted) -> None:
        log = self._context.state.log
        since = request.headers.get("Last-Event-ID") or request.query.get("since", "")
        number = log.number_of(since) if since else log.number
        reviewed = time.monotonic()
        await response.write(b"retry: 2000\n\n")
        while True:
            self._context.scheduler.viewers.looked()
            if "jobs" in wanted.topics:
                self._context.looks_at_jobs()
            if time.monotonic() - reviewed > REVIEW_SECONDS:
                reviewed = time.monotonic()
                try:
                    viewer = await self._context.review(request)
                except RequestError:
                    return  # the browser connects again and is told
                if viewer != wanted.viewer:
                    wanted, number = replace(wanted, viewer=viewer), None
            if number is None or (number < log.number and log.since(number) is None):
                number = log.number
                await response.write(_event("reset", log.version, msgspec.json.encode({"version": log.version})))
            elif number < log.number:
                event, number = self._event(wanted, number), log.number
                if event:
                    await response.write(event)
            try:
                async with asyncio.timeout(KEEP_ALIVE):
                    await self._context.state.after(number)
            except TimeoutError:
                await response.write(b": still here\n\n")

    def _event(self, wanted: Wanted, number: int) -> bytes:
        """Empty: nothing that the viewer asked for changed."""
        log = self._context.state.log
        key = (wanted.topics, wanted.jobs, wanted.viewer.namespaces, wanted.viewer.sees_nodes, number, log.number)
        found = self._made.get(key)
        if found is None:
            changed = log.since(number)
            assert changed is not None
            data = self._data(wanted, changed)
            found = _event("change", log.version, msgspec.json.encode({"version": log.version, **data})) if data else b""
            self._made[key] = found
            while len(self._made) > MOST_MADE:
                self._made.popitem(last=False)
        return found

    def _data(self, wanted: Wanted, changed: Changed) -> dict[str, Any]:
        topics, viewer = wanted.topics, wanted.viewer
        found: dict[str, Any] = {}
        if "jobs" in topics and changed.jobs:
            found["jobs"] = self._jobs(wanted, changed)
        if "queues" in topics and changed.queues:
            found["queues"] = self._queues(viewer, changed)
        if "nodes" in topics and changed.nodes and viewer.sees_nodes:
            found["nodes"] = self._nodes(viewer, changed)
        if "cycles" in topics and changed.cycles:
            found["cycles"] = {"changed": self._context.scheduler.cycles()}
        if "overview" in topics:
            version = self._context.state.log.version
            found["overview"] = {"version": version, **self._lists.overview_of(viewer)}
        return found

    def _jobs(self, wanted: Wanted, changed: Changed) -> dict[str, Any]:
        state, viewer = self._context.state, wanted.viewer
        rows, removed = [], []
        for key in sorted(changed.jobs):
            if not viewer.sees(key.partition("/")[0]):
                continue
            row = state.jobs.rows.get(key)
            if row is None or not wanted.jobs.matches(row, state.cluster.queues, state.jobs.labels):
                removed.append(key)
            else:
                rows.append(row)
        return {"changed": rows, "removed": removed}

    def _queues(self, viewer: Viewer, changed: Changed) -> dict[str, Any]:
        seen, known = self._context.queues_seen(viewer), self._context.state.queues.rows
        rows = [row for name, row in known.items() if name in changed.queues and (seen is None or name in seen)]
        removed = [name for name in sorted(changed.queues) if name not in known and (seen is None or name in seen)]
        return {"changed": rows, "removed": removed}

    def _nodes(self, viewer: Viewer, changed: Changed) -> dict[str, Any]:
        state = self._context.state
        names = [name for name in sorted(changed.nodes) if state.nodes.exists(name)]
        removed = [name for name in sorted(changed.nodes) if not state.nodes.exists(name)]
        seen = self._context.queues_seen(viewer)
        return {"changed": state.nodes.columns(names, state.assessment, viewer.sees, seen), "removed": removed}


def _event(name: str, version: str, data: bytes) -> bytes:
    """JSON has no line ends outside of texts, and none unescaped in texts, so one data line is enough."""
    return b"event: " + name.encode() + b"\nid: " + version.encode() + b"\ndata: " + data + b"\n\n"
