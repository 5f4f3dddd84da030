"""Reports of `navarch simulate --report`: folders with a `report.json`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from navarch.web.application import json_response
from navarch.web.errors import not_found
from navarch.web.security.viewer import Viewer

REPORT: Final = "report.json"
MOST_REPORTS: Final = 500
MOST_BYTES: Final = 64 << 20
_HERE: Final = "."
"""The name of a report that lies in the folder itself."""


class Heading(msgspec.Struct):
    """The parts of a report that the list shows."""

    title: str = ""
    order: list[str] = msgspec.field(default_factory=list)
    """Names of the policies."""


class Simulations:
    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    async def get_all(self, request: web.Request, viewer: Viewer) -> web.Response:
        return json_response({"items": await asyncio.to_thread(self._items)})

    def _items(self) -> list[dict[str, Any]]:
        found = []
        for name, path in self._reports():
            about = path.stat()
            try:
                heading = msgspec.json.decode(path.read_bytes(), type=Heading) if about.st_size <= MOST_BYTES else Heading()
            except msgspec.DecodeError:
                continue  # not a report
            found.append(
                {"name": name, "modified": about.st_mtime, "bytes": about.st_size, "title": heading.title, "policies": heading.order}
            )
        return found

    def _reports(self) -> list[tuple[str, Path]]:
        if self._folder is None:
            return []
        folders = [(_HERE, self._folder), *((path.name, path) for path in sorted(self._folder.iterdir()) if path.is_dir())]
        return [(name, path / REPORT) for name, path in folders if (path / REPORT).is_file()][:MOST_REPORTS]

    async def get(self, request: web.Request, viewer: Viewer) -> web.Response:
        name = request.match_info["name"]
        path = dict(await asyncio.to_thread(self._reports)).get(name)
        if path is None or path.stat().st_size > MOST_BYTES:
            raise not_found(f"there is no report {name!r}")
        body = await asyncio.to_thread(path.read_bytes)
        response = web.Response(body=body, content_type="application/json", charset="utf-8")
        response.enable_compression()
        return response
