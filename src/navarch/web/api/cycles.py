"""Recent cycles of the scheduler, and recorded ones, which can be opened and compared with another policy."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from navarch.engine.policy import PRESETS
from navarch.kube.errors import ConfigError, KubeError
from navarch.web.api.context import Context
from navarch.web.application import json_response
from navarch.web.errors import RequestError, invalid, not_found
from navarch.web.security.viewer import Viewer
from navarch.web.work.requests import OpenRecording
from navarch.web.work.runner import WorkRunner

LAST: Final = "last"
"""The id of the scheduler's last cycle."""
MOST_RECORDINGS: Final = 200
_NAME: Final = re.compile(r"cycle-(\d{1,16})-\d{1,12}\.json\.gz")


class Cycles:
    """`folder`: of `navarch run --record`; None: there is none."""

    def __init__(self, context: Context, runner: WorkRunner, folder: Path | None, plugin_dirs: Sequence[str]) -> None:
        self._context, self._runner, self._folder, self._plugin_dirs = context, runner, folder, list(plugin_dirs)

    async def get_all(self, request: web.Request, viewer: Viewer) -> web.Response:
        link = self._context.scheduler
        link.viewers.looked()
        recordings = await asyncio.to_thread(self._recordings)
        if link.available:
            recordings.insert(0, {"id": LAST, "time": None, "bytes": None})
        found = {
            "version": self._context.state.log.version,
            "scheduler": {"available": link.available, "reason": link.reason},
            "cycles": link.cycles(),
            "recordings": recordings,
        }
        return json_response(found)

    def _recordings(self) -> list[dict[str, Any]]:
        """Newest first."""
        found = []
        for path in sorted(self._folder.iterdir(), reverse=True) if self._folder is not None else ():
            match = _NAME.fullmatch(path.name)
            if match is not None and path.is_file():
                found.append({"id": path.name, "time": int(match[1]) / 1000, "bytes": path.stat().st_size})
                if len(found) == MOST_RECORDINGS:
                    break
        return found

    async def get(self, request: web.Request, viewer: Viewer) -> web.Response:
        """Names pods of every namespace, so the viewer has to see all of them."""
        if viewer.namespaces is not None:
            raise RequestError(403, "Forbidden", "a recorded cycle names pods of every namespace; this user may not see all of them")
        policy = request.query.get("policy", "")
        if policy and policy not in PRESETS:
            raise invalid(f"policy: expected one of {', '.join(PRESETS)}, found {policy!r}")
        name = request.match_info["id"]
        if name == LAST:
            return await self._last(viewer, policy)
        if _NAME.fullmatch(name) is None or self._folder is None or not (self._folder / name).is_file():
            raise not_found(f"there is no recorded cycle {name!r}")
        return json_response(await self._open(viewer, str(self._folder / name), policy))

    async def _last(self, viewer: Viewer, policy: str) -> web.Response:
        try:
            body = await self._context.scheduler.last_cycle()
        except (KubeError, ConfigError) as error:
            raise RequestError(503, "Unavailable", f"the scheduler does not give its last cycle: {error}") from None
        with tempfile.TemporaryDirectory(prefix="navarch-web-") as folder:
            path = Path(folder, "last.json.gz")
            await asyncio.to_thread(path.write_bytes, body)
            found = await self._open(viewer, str(path), policy)
        return json_response({**found, "id": LAST})

    async def _open(self, viewer: Viewer, file: str, policy: str) -> dict[str, Any]:
        return await self._runner.run(viewer.user, OpenRecording(file, policy, self._plugin_dirs))
