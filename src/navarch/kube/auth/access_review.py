"""May the holder of a bearer token read a path of ours? The API server decides: TokenReview, then SubjectAccessReview.

Rights are ordinary RBAC rules for non-resource URLs, as for /metrics of Kubernetes' own components. An answer is cached for ten
seconds.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from navarch.kube.client import Client
from navarch.kube.resources import Resource

TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", namespaced=False)
ACCESS_REVIEWS: Final = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False)
CACHED_SECONDS: Final = 10.0
MOST_CACHED: Final = 1000


class AccessReview:
    """Asks one API server. `clock` counts seconds."""

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._answers: OrderedDict[tuple[bytes, str], tuple[float, bool]] = OrderedDict()

    async def may_get(self, token: str, path: str) -> bool:
        """Whether the token is valid and its user may GET the non-resource path. ApiError if the API server does not answer."""
        key = (hashlib.sha256(token.encode(errors="surrogateescape")).digest(), path)
        until, answer = self._answers.get(key, (0.0, False))
        if self._clock() < until:
            return answer
        answer = await self._review(token, path)
        self._answers[key] = (self._clock() + CACHED_SECONDS, answer)
        while len(self._answers) > MOST_CACHED:
            self._answers.popitem(last=False)
        return answer

    async def _review(self, token: str, path: str) -> bool:
        review: Any = await self._client.create(TOKEN_REVIEWS, _body(TOKEN_REVIEWS, "TokenReview", {"token": token}))
        status = review.get("status") or {}
        if not status.get("authenticated"):
            return False
        user = status.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        decided: Any = await self._client.create(ACCESS_REVIEWS, _body(ACCESS_REVIEWS, "SubjectAccessReview", spec))
        return bool((decided.get("status") or {}).get("allowed"))


def _body(resource: Resource, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": kind, "spec": spec}
