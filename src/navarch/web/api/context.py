"""What handlers of the API share: the state of the cluster and what a viewer may see of it."""

from __future__ import annotations

import asyncio
import gzip
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from navarch.views.queues import ancestors
from navarch.web.cluster.api_server_health import ApiServerHealth
from navarch.web.cluster.cluster_state import ClusterState
from navarch.web.cluster.dry_run import DryRun
from navarch.web.errors import RequestError
from navarch.web.scheduler.link import SchedulerLink
from navarch.web.security.hidden_names import HiddenNames
from navarch.web.security.viewer import Viewer
from navarch.web.tables.jobs import NAMESPACE, QUEUE

LARGE: Final = 4096
"""Bytes from which an answer is compressed."""
MOST_BODIES: Final = 64
_Body = tuple[str, bytes, bytes | None]


class Context:
    """`review` finds the user of a request again: the rights of a user may change while a stream is open. `looks_at_jobs` is called
    when a viewer does. `reading` says what is still missing while the cluster is being read."""

    def __init__(
        self,
        state: ClusterState,
        scheduler: SchedulerLink,
        review: Callable[[web.Request], Awaitable[Viewer]],
        health: ApiServerHealth,
        looks_at_jobs: Callable[[], None] = lambda: None,
        reading: Callable[[], str] = lambda: "the cluster is being read",
    ) -> None:
        self.health, self._reading = health, reading
        self.state, self.scheduler, self.review, self.looks_at_jobs = state, scheduler, review, looks_at_jobs
        self.dry_run = DryRun(state)
        self._bodies: OrderedDict[tuple[Any, ...], _Body] = OrderedDict()

    def check_ready(self) -> None:
        if not self.state.ready:
            self.health.viewers.looked()
            raise RequestError(503, "NotReady", self._reading(), retry_after=1)

    def queues_seen(self, viewer: Viewer) -> frozenset[str] | None:
        """Queues whose names the viewer may see: those of jobs in its namespaces, and all above these. None: all."""
        if viewer.namespaces is None:
            return None
        used = {row[QUEUE] for row in self.state.jobs.rows.values() if viewer.sees(row[NAMESPACE])}
        queues = self.state.cluster.queues
        return frozenset(name for queue in used for name in ancestors(queues, queue))

    def hide(self, value: Any, viewer: Viewer) -> Any:
        """The value without names of namespaces and queues that the viewer may not see."""
        if viewer.namespaces is None:
            return value
        known = {row[NAMESPACE] for row in self.state.jobs.rows.values()} | self.state.cluster.namespaces.keys()
        seen = self.queues_seen(viewer) or frozenset()
        return HiddenNames(known - viewer.namespaces, self.state.cluster.queues.keys() - seen).hide(value)

    async def versioned(self, request: web.Request, key: tuple[Any, ...], make: Callable[[], Any]) -> web.Response:
        """An answer that holds for a version of the cluster. It is made, encoded and compressed once for all who ask the same."""
        version = self.state.log.version
        found = self._bodies.get(key)
        if found is None or found[0] != version:
            found = version, msgspec.json.encode({"version": version, **make()}), None
        body, packed = found[1], found[2]
        headers = {"Vary": "Accept-Encoding"}
        if len(body) >= LARGE and "gzip" in request.headers.get("Accept-Encoding", ""):
            if packed is None:
                packed = await asyncio.to_thread(gzip.compress, body, 1)
                found = found[0], body, packed
            headers["Content-Encoding"] = "gzip"
            body = packed
        self._bodies[key] = found
        self._bodies.move_to_end(key)
        while len(self._bodies) > MOST_BODIES:
            self._bodies.popitem(last=False)
        return web.Response(body=body, headers=headers, content_type="application/json", charset="utf-8")
