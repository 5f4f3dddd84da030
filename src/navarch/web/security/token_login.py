"""The login on one's own machine: a random token in the address that is printed, then a cookie.

The cookie's value is a second random text: what a browser stores does not open the printed address.
"""

from __future__ import annotations

import hmac
import secrets

from aiohttp import web

from navarch.web.errors import RequestError
from navarch.web.security.cookies import cookie_of, set_cookie
from navarch.web.security.viewer import Viewer

ALL = Viewer("you", "token")


class TokenLogin:
    def __init__(self, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._cookie = secrets.token_urlsafe(24)

    async def viewer(self, request: web.Request) -> Viewer:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if given:
            if scheme.lower() == "bearer" and _same(given.strip(), self.token):
                return ALL
        elif _same(cookie_of(request), self._cookie):
            return ALL
        raise RequestError(401, "Unauthorized", "open the address that `navarch web` printed, with the token in it")

    async def log_in(self, request: web.Request, token: str, response: web.Response) -> None:
        if not _same(token, self.token):
            raise RequestError(401, "Unauthorized", "this token is not valid; `navarch web` prints a new one at each start")
        set_cookie(request, response, self._cookie)

    async def open_page(self, request: web.Request, response: web.Response) -> None:
        """A page is asked for. With the token in its address the browser gets the cookie."""
        given = request.query.get("token")
        if given is not None:
            await self.log_in(request, given, response)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogateescape"), wanted.encode())
