"""The login in a cluster: a bearer token that the API server reviews, and what its user may list there.

A namespace is visible to users who may list pods in it, nodes to users who may list nodes. Browsers send the token once (`log_in`) and
get a cookie for it: streams of events cannot carry a header. Reviews are cached for ten seconds (`AccessReview`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Final

from aiohttp import web

from navarch.kube.auth.access_review import AccessReview, TokenUser
from navarch.kube.errors import KubeError
from navarch.kube.resources import PODS, Resource
from navarch.web.errors import RequestError
from navarch.web.security.cookies import cookie_of, set_cookie
from navarch.web.security.viewer import Viewer

NODES: Final = Resource("", "v1", "nodes", namespaced=False)
SESSION_SECONDS: Final = 12 * 3600.0
MOST_SESSIONS: Final = 1000
MOST_NAMESPACES: Final = 2000
"""Namespaces that a user is reviewed for; the others are hidden from users who may not list pods in all of them."""
AT_ONCE: Final = 16


class ClusterLogin:
    """`namespaces()`: those of the cluster. `clock` counts seconds."""

    def __init__(self, access: AccessReview, namespaces: Callable[[], Collection[str]], clock: Callable[[], float]) -> None:
        self._access, self._namespaces, self._clock = access, namespaces, clock
        self._sessions: OrderedDict[str, tuple[float, str]] = OrderedDict()

    async def viewer(self, request: web.Request) -> Viewer:
        token = self._token(request)
        if not token:
            raise RequestError(401, "Unauthorized", "log in with a bearer token of this cluster")
        try:
            user = await self._access.user(token)
            if user is None:
                raise RequestError(401, "Unauthorized", "the API server does not know this token")
            return await self._viewer(user)
        except KubeError as error:
            raise RequestError(503, "Unavailable", f"the API server did not review the token: {error}") from None

    def _token(self, request: web.Request) -> str:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if given:
            return given.strip() if scheme.lower() == "bearer" else ""
        until, token = self._sessions.get(cookie_of(request), (0.0, ""))
        return token if self._clock() < until else ""

    async def _viewer(self, user: TokenUser) -> Viewer:
        everything, nodes = await asyncio.gather(self._access.may_list(user, PODS), self._access.may_list(user, NODES))
        return Viewer(user.name, "cluster", None if everything else await self._visible(user), nodes)

    async def _visible(self, user: TokenUser) -> frozenset[str]:
        at_once = asyncio.Semaphore(AT_ONCE)

        async def sees(namespace: str) -> bool:
            async with at_once:
                return await self._access.may_list(user, PODS, namespace)

        names = sorted(self._namespaces())[:MOST_NAMESPACES]
        answers = await asyncio.gather(*(sees(name) for name in names))
        return frozenset(name for name, seen in zip(names, answers, strict=True) if seen)

    async def log_in(self, request: web.Request, token: str, response: web.Response) -> None:
        """Give the browser a cookie for the token. RequestError 401: it is not valid."""
        try:
            user = await self._access.user(token)
        except KubeError as error:
            raise RequestError(503, "Unavailable", f"the API server did not review the token: {error}") from None
        if user is None:
            raise RequestError(401, "Unauthorized", "the API server does not know this token")
        name = secrets.token_urlsafe(24)
        self._sessions[name] = (self._clock() + SESSION_SECONDS, token)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        set_cookie(request, response, name)

    async def open_page(self, request: web.Request, response: web.Response) -> None:
        """Pages need no login. A token in an address would stay in logs and histories, so none is taken from there."""
