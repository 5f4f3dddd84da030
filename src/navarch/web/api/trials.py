"""Trials for one job: what would start it, as `navarch explain` finds it. The only request that is not a GET."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Struct

from navarch.web.api.context import Context
from navarch.web.api.names import find_job
from navarch.web.application import json_response, read_json
from navarch.web.errors import invalid
from navarch.web.security.viewer import Viewer
from navarch.web.tables.jobs import ID
from navarch.web.work.requests import Explain
from navarch.web.work.runner import WorkRunner

TRIALS: Final = 200
SECONDS: Final = 5.0
"""What is tried unless the request says otherwise, as `navarch explain` does."""


class Wanted(Struct, forbid_unknown_fields=True):
    trials: int | None = None
    seconds: float | None = None


class Trials:
    """`cluster()`: how the working process finds the cluster and reads it now."""

    def __init__(self, context: Context, runner: WorkRunner, cluster: Callable[[], Explain]) -> None:
        self._context, self._runner, self._cluster = context, runner, cluster

    async def post(self, request: web.Request, viewer: Viewer) -> web.Response:
        context = self._context
        context.check_ready()
        wanted = await read_json(request, Wanted)
        limits = self._runner.limits
        trials = min(TRIALS, limits.trials) if wanted.trials is None else wanted.trials
        seconds = min(SECONDS, limits.seconds) if wanted.seconds is None else wanted.seconds
        if not 1 <= trials <= limits.trials:
            raise invalid(f"trials: expected 1 to {limits.trials}, found {trials}")
        if not 0 < seconds <= limits.seconds:
            raise invalid(f"seconds: expected more than 0 and at most {limits.seconds:g}, found {seconds:g}")
        row = find_job(context, viewer, request.match_info["namespace"], request.match_info["name"])
        work = msgspec.structs.replace(self._cluster(), job=row[ID], trials=trials, seconds=seconds)
        found = await self._runner.run(viewer.user, work)
        return json_response(context.hide(_visible(found, viewer), viewer))


def _visible(found: dict[str, Any], viewer: Viewer) -> dict[str, Any]:
    """Without manifests of namespaces that the viewer may not see: changes hold whole objects."""
    for change in found["explanation"]["changes"]:
        change["objects"] = [
            each for each in change["objects"] if viewer.sees((each.get("metadata") or {}).get("namespace") or "default")
        ]
    return found
