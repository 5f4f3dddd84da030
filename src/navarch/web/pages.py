"""The pages: `index.html` for every path that a page shows in the address bar, and its files under /assets.

Pages hold no data of the cluster, so they need no login; the API does.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, Protocol

from aiohttp import web

from navarch.web.errors import not_found

ASSETS: Final = Path(__file__).parent / "assets"
UPLOT: Final = Path(__file__).parent.parent / "simulator" / "report" / "vendor"
"""The simulator's report has uPlot in it; the pages load that copy."""
ELSEWHERE: Final = {f"vendor/{name}": UPLOT / name for name in ("uPlot.iife.min.js", "uPlot.min.css")}
TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".woff2": "font/woff2",
}
_TEXT: Final = frozenset({".css", ".html", ".js", ".json", ".mjs", ".svg", ".txt"})


class PageLogin(Protocol):
    async def open_page(self, request: web.Request, response: web.Response) -> None: ...


class Pages:
    def __init__(self, login: PageLogin, folder: Path = ASSETS) -> None:
        self._login = login
        self._folder = folder.resolve()

    async def page(self, request: web.Request) -> web.Response:
        if request.path.startswith("/api/"):
            raise not_found(f"there is no {request.path}")
        response = self._file(request, "index.html")
        await self._login.open_page(request, response)
        return response

    async def asset(self, request: web.Request) -> web.Response:
        return self._file(request, request.match_info["path"])

    def _file(self, request: web.Request, name: str) -> web.Response:
        try:
            path = ELSEWHERE.get(name) or (self._folder / name).resolve()
            outside = name not in ELSEWHERE and not path.is_relative_to(self._folder)
            exists = not outside and path.suffix in TYPES and path.is_file()
        except (ValueError, OSError):  # no file can have such a name: a byte 0, or too many bytes
            exists = False
        if not exists:
            raise not_found(f"there is no {request.path}")
        body = path.read_bytes()
        tag = hashlib.sha256(body).hexdigest()[:32]
        if request.headers.get("If-None-Match") == f'"{tag}"':
            response = web.Response(status=304)
        else:
            charset = "utf-8" if path.suffix in _TEXT else None
            response = web.Response(body=body, content_type=TYPES[path.suffix], charset=charset)
            if path.suffix in _TEXT:
                response.enable_compression()
        response.etag = tag
        response.headers["Cache-Control"] = "no-cache"
        return response
