"""The lists of the API: overview, jobs, queues, nodes."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from navarch.web.api.context import Context
from navarch.web.application import json_response
from navarch.web.errors import RequestError
from navarch.web.security.viewer import Viewer
from navarch.web.tables.job_filter import read_filter, read_part
from navarch.web.tables.jobs import COLUMNS, NAMESPACE
from navarch.web.tables.overview import oldest_gang, starved_and_loans


class Lists:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._state = context.state

    async def viewer(self, request: web.Request, viewer: Viewer) -> web.Response:
        return await self._context.versioned(request, ("viewer", viewer), viewer.to_dict)

    async def status(self, request: web.Request, viewer: Viewer) -> web.Response:
        """Whether what pages show is current. Answered also while the cluster is being read."""
        health = self._context.health
        health.viewers.looked()
        return json_response({"apiServer": health.to_dict(), "ready": self._state.ready})

    async def overview(self, request: web.Request, viewer: Viewer) -> web.Response:
        self._context.check_ready()
        self._context.scheduler.viewers.looked()
        return await self._context.versioned(request, ("overview", viewer.namespaces), lambda: self.overview_of(viewer))

    def overview_of(self, viewer: Viewer) -> dict[str, Any]:
        state = self._state
        starved, loans = starved_and_loans(state.cluster, state.assessment.queues)
        seen = self._context.queues_seen(viewer)
        if seen is not None:
            starved = [each for each in starved if each["queue"] in seen]
            loans = [each for each in loans if each["borrower"] in seen and each["lender"] in seen]
        waiting = (state.jobs.rows[key] for key in state.jobs.waiting)
        states = state.jobs.states
        return {
            "time": state.clock(),
            "policy": state.policy.source,
            **state.totals.to_dict(state.nodes.used(), state.assessment),
            "jobs": {
                "waiting": states["waiting"],
                "running": states["running"] + states["terminating"],
                "finished": states["succeeded"] + states["failed"],
            },
            "starved": starved,
            "loans": loans,
            "oldest": oldest_gang(waiting, lambda row: viewer.sees(row[NAMESPACE])),
            "scheduler": self._context.scheduler.summary(),
            "decisions": self._context.hide(self._context.scheduler.decisions(), viewer),
        }

    async def jobs(self, request: web.Request, viewer: Viewer) -> web.Response:
        self._context.check_ready()
        self._context.looks_at_jobs()
        wanted, part = read_filter(request.query), read_part(request.query)
        state = self._state

        def make() -> dict[str, Any]:
            seen = [row for row in state.jobs.rows.values() if viewer.sees(row[NAMESPACE])]
            found = [row for row in seen if wanted.matches(row, state.cluster.queues, state.jobs.labels)] if wanted else seen
            return {"total": len(seen), "matched": len(found), "columns": COLUMNS, "rows": part.of(found)}

        return await self._context.versioned(request, ("jobs", viewer.namespaces, wanted, part), make)

    async def queues(self, request: web.Request, viewer: Viewer) -> web.Response:
        self._context.check_ready()
        seen = self._context.queues_seen(viewer)

        def make() -> dict[str, Any]:
            rows = [row for name, row in self._state.queues.rows.items() if seen is None or name in seen]
            resources = {resource for row in rows for part in row["numbers"].values() for resource in part} - {"pods"}
            return {"resources": sorted(resources), "rows": rows}

        return await self._context.versioned(request, ("queues", seen), make)

    async def usage(self, request: web.Request, viewer: Viewer) -> web.Response:
        """What queues held over time."""
        self._context.check_ready()
        self._context.scheduler.viewers.looked()
        state, query = self._state, request.query
        seen = self._context.queues_seen(viewer)
        found = state.queue_history.to_dict(state.clock(), seen, query.get("queue", ""), query.get("resource", ""))
        return json_response(found)

    async def nodes(self, request: web.Request, viewer: Viewer) -> web.Response:
        self._context.check_ready()
        check_nodes(viewer)
        state, seen = self._state, self._context.queues_seen(viewer)

        def make() -> dict[str, Any]:
            return state.nodes.columns(state.nodes.names(), state.assessment, viewer.sees, seen)

        return await self._context.versioned(request, ("nodes", viewer.namespaces, seen), make)


def check_nodes(viewer: Viewer) -> None:
    if not viewer.sees_nodes:
        raise RequestError(403, "Forbidden", "this user may not list nodes")
