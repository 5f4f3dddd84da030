"""Who holds a bearer token, and what may that user do? The API server decides: TokenReview, then SubjectAccessReview.

Rights are ordinary RBAC rules: for non-resource URLs, as for /metrics of Kubernetes' own components, or for resources in namespaces.
Answers are cached for ten seconds.

Whoever reaches a page can cause reviews, with a new token each time. So only a few are asked for at once, a few more wait, for a few
seconds; the others are refused (`Busy`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from navarch.kube.client import Client
from navarch.kube.errors import KubeError
from navarch.kube.resources import Resource

TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", namespaced=False)
ACCESS_REVIEWS: Final = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False)
CACHED_SECONDS: Final = 10.0
MOST_CACHED: Final = 1000
MOST_RIGHTS_CACHED: Final = 20_000
REVIEWS_AT_ONCE: Final = 8
MOST_WAITING: Final = 256
REVIEW_SECONDS: Final = 5.0
"""Until a review has its answer, the time that it waits for its turn included."""
V = TypeVar("V")


class Busy(KubeError):
    """The question was not asked, or not answered in time: there are too many."""


class TokenUser(Struct, frozen=True):
    """The holder of a token, as the API server names it. `extra`: sorted, so that equal users are equal."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class _Cache(Generic[V]):
    def __init__(self, clock: Callable[[], float], most: int) -> None:
        self._clock, self._most = clock, most
        self._answers: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()

    def get(self, key: Hashable) -> tuple[bool, V | None]:
        """Whether an answer is known, and the answer."""
        until, answer = self._answers.get(key, (0.0, None))
        return self._clock() < until, answer

    def put(self, key: Hashable, answer: V) -> V:
        self._answers[key] = (self._clock() + CACHED_SECONDS, answer)
        self._answers.move_to_end(key)
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)
        return answer


class AccessReview:
    """Asks one API server. `clock` counts seconds. Every method raises KubeError if the API server does not answer."""

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        self._client = client
        self._users: _Cache[TokenUser | None] = _Cache(clock, MOST_CACHED)
        self._rights: _Cache[bool] = _Cache(clock, MOST_RIGHTS_CACHED)
        self._turns = asyncio.Semaphore(REVIEWS_AT_ONCE)
        self._waiting = 0

    async def may_get(self, token: str, path: str) -> bool:
        """Whether the token is valid and its user may GET the non-resource path."""
        user = await self.user(token)
        return user is not None and await self._may(user, ("path", path), {"nonResourceAttributes": {"path": path, "verb": "get"}})

    async def user(self, token: str) -> TokenUser | None:
        """None: the token is not valid."""
        key = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        known, found = self._users.get(key)
        return found if known else self._users.put(key, await self._review(token))

    async def may_list(self, user: TokenUser, resource: Resource, namespace: str = "") -> bool:
        """Whether the user may list these objects in the namespace; an empty one: in all, or objects without a namespace."""
        attributes = {"group": resource.group, "version": resource.version, "resource": resource.plural, "verb": "list"}
        if namespace:
            attributes["namespace"] = namespace
        return await self._may(user, ("list", resource.group, resource.plural, namespace), {"resourceAttributes": attributes})

    async def _review(self, token: str) -> TokenUser | None:
        review = await self._ask(TOKEN_REVIEWS, "TokenReview", {"token": token})
        status = review.get("status") or {}
        if not status.get("authenticated"):
            return None
        user = status.get("user") or {}
        extra = tuple(sorted((str(key), tuple(values or ())) for key, values in (user.get("extra") or {}).items()))
        return TokenUser(user.get("username", ""), user.get("uid", ""), tuple(user.get("groups") or ()), extra)

    async def _may(self, user: TokenUser, what: Hashable, attributes: dict[str, Any]) -> bool:
        known, found = self._rights.get((user, what))
        if known:
            return bool(found)
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra},
            **attributes,
        }
        decided = await self._ask(ACCESS_REVIEWS, "SubjectAccessReview", spec)
        return self._rights.put((user, what), bool((decided.get("status") or {}).get("allowed")))

    async def _ask(self, resource: Resource, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        async with self._turn():
            body = {"apiVersion": resource.api_version, "kind": kind, "spec": spec}
            answer: dict[str, Any] = await self._client.create(resource, body)
            return answer

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._waiting >= MOST_WAITING:
            raise Busy("too many tokens are being reviewed")
        self._waiting += 1
        try:
            async with asyncio.timeout(REVIEW_SECONDS), self._turns:
                yield
        except TimeoutError:
            raise Busy(f"no answer within {REVIEW_SECONDS:g} s") from None
        finally:
            self._waiting -= 1
