"""One queue: how its share came about, what it borrows and lends, what waits in it."""

from __future__ import annotations

from aiohttp import web
from msgspec.structs import replace

from navarch.explanation.queues import queue_explained
from navarch.web.api.context import Context
from navarch.web.api.names import find_queue
from navarch.web.application import json_response
from navarch.web.security.viewer import Viewer


class QueuePage:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def get(self, request: web.Request, viewer: Viewer) -> web.Response:
        context, state = self._context, self._context.state
        context.check_ready()
        name = find_queue(context, viewer, request.match_info["name"])
        record = await context.dry_run.record()
        # The dry run tells what waits. What queues hold is told as it is now, before the next cycle.
        found = queue_explained(state.cluster, replace(record, queues=state.assessment.queues), name, state.policy)
        seen = context.queues_seen(viewer)
        if seen is not None:
            found.borrows = [each for each in found.borrows if each.queue in seen]
            found.lends = [each for each in found.lends if each.queue in seen]
            hidden = [each for each in found.waiting if not viewer.sees(each.job.partition("/")[0])]
            found.waiting = [each for each in found.waiting if viewer.sees(each.job.partition("/")[0])]
            if hidden:
                found.notes.append(f"{len(hidden)} waiting jobs of other namespaces are not shown")
        return json_response({"version": state.log.version, "queue": state.queues.rows[name], "explanation": found.to_dict()})
