"""The cookie of a login.

Its name has the port in it: browsers send a cookie to every port of a host, and two servers must not overwrite each other's.
"""

from __future__ import annotations

from aiohttp import web


def cookie_of(request: web.Request) -> str:
    """Its value; empty: there is none."""
    return request.cookies.get(_name(request), "")


def set_cookie(request: web.Request, response: web.Response, value: str) -> None:
    response.set_cookie(_name(request), value, path="/", httponly=True, samesite="Strict", secure=request.secure)


def _name(request: web.Request) -> str:
    transport = request.transport
    port = transport.get_extra_info("sockname")[1] if transport is not None else 0
    return f"navarch-{port}"
