"""The HTTP application: guards first, then pages and the JSON API."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeVar

import msgspec
from aiohttp import web

from navarch.web.errors import RequestError, invalid
from navarch.web.pages import Pages
from navarch.web.security.headers import add_headers
from navarch.web.security.hosts import HostCheck
from navarch.web.security.viewer import Viewer

log = logging.getLogger(__name__)

MOST_BODY: Final = 64 << 10
"""Bytes of a request's body."""
T = TypeVar("T")
API: Final = "/api/v1"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ViewerHandler = Callable[[web.Request, Viewer], Awaitable[web.StreamResponse]]
"""A handler of the API, with the user that the login found."""


class LoginBody(msgspec.Struct, forbid_unknown_fields=True):
    token: str


class Login(Protocol):
    async def viewer(self, request: web.Request) -> Viewer:
        """The user of the request. RequestError 401: the request carries no valid login."""

    async def log_in(self, request: web.Request, token: str, response: web.Response) -> None:
        """The answer gets a cookie for the token. RequestError 401: the token is not valid."""

    async def open_page(self, request: web.Request, response: web.Response) -> None:
        """A page is asked for; the answer may get a cookie."""


def application(
    login: Login,
    hosts: HostCheck,
    handlers: Mapping[tuple[str, str], ViewerHandler] | None = None,
    ready: Callable[[], bool] = lambda: True,
) -> web.Application:
    """`handlers`: (method, path below /api/v1) -> handler. `ready`: the answer of /readyz."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            hosts.check(request)
            return await handler(request)
        except RequestError as error:
            return refusal(error)
        except web.HTTPException as error:
            return refusal(RequestError(error.status, type(error).__name__.removeprefix("HTTP"), error.reason or ""))
        except ConnectionError:
            return web.Response(status=499)  # the viewer went away; raised further it would be logged as an error
        except Exception:
            # One request that fails must not end its connection without an answer. The others go on.
            log.exception("%s %s failed", request.method, request.path)
            return refusal(RequestError(500, "InternalError", "the server failed; its log says where"))

    def for_viewer(handler: ViewerHandler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await handler(request, await login.viewer(request))

        return handle

    app = web.Application(middlewares=[guard], client_max_size=MOST_BODY)
    app.on_response_prepare.append(add_headers)
    pages = Pages(login)
    for (method, path), handler in (handlers or {}).items():
        app.router.add_route(method, f"{API}/{path}", for_viewer(handler))

    async def log_in(request: web.Request) -> web.Response:
        response = web.Response(status=204)
        await login.log_in(request, (await read_json(request, LoginBody)).token, response)
        return response

    async def alive(request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def is_ready(request: web.Request) -> web.Response:
        return web.Response(text="ok\n") if ready() else web.Response(status=503, text="the cluster is being read\n")

    app.router.add_post("/login", log_in)
    app.router.add_get("/livez", alive)
    app.router.add_get("/readyz", is_ready)
    app.router.add_get("/assets/{path:.+}", pages.asset)
    app.router.add_get("/{path:.*}", pages.page)
    return app


async def read_json(request: web.Request, body: type[T]) -> T:
    """The body of a request. RequestError: it is something else."""
    if request.content_type != "application/json":  # a form of another site cannot send this
        raise RequestError(415, "UnsupportedMediaType", "expected Content-Type: application/json")
    try:
        return msgspec.json.decode(await request.read() or b"{}", type=body)
    except msgspec.DecodeError as error:
        raise invalid(f"the body: {error}") from None


def json_response(value: object, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json", charset="utf-8")


def refusal(error: RequestError) -> web.Response:
    response = json_response(error.to_dict(), error.status)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    return response
