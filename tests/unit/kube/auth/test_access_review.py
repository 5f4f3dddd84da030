"""Reviews are asked once in ten seconds for each user and right."""

from __future__ import annotations

from typing import Any

from navarch.kube.auth.access_review import AccessReview
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.kube.resources import PODS, Resource


class Reviewer(Client):
    """An API server that knows one token, whose user may list pods in one namespace."""

    def __init__(self) -> None:
        super().__init__(Endpoint("http://127.0.0.1:1"))
        self.asked: list[dict[str, Any]] = []

    async def create(self, resource: Resource, body: Any, **options: Any) -> Any:
        self.asked.append(body["spec"])
        if resource.plural == "tokenreviews":
            known = body["spec"]["token"] == "good"
            user = {"username": "jane", "groups": ["g"], "extra": {"scopes": ["a"]}}
            return {"status": {"authenticated": known, "user": user}}
        return {"status": {"allowed": body["spec"].get("resourceAttributes", {}).get("namespace") == "ml"}}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_users_and_rights_are_cached_for_ten_seconds() -> None:
    client, clock = Reviewer(), Clock()
    access = AccessReview(client, clock)
    clock.now = 100.0
    for _ in range(3):
        user = await access.user("good")
        assert user is not None
        assert await access.may_list(user, PODS, "ml")
        assert not await access.may_list(user, PODS)
    assert len(client.asked) == 3
    assert client.asked[1]["groups"] == ["g"]
    assert client.asked[1]["extra"] == {"scopes": ["a"]}
    assert "namespace" not in client.asked[2]["resourceAttributes"]
    clock.now += 10.0
    assert await access.user("good") is not None
    assert len(client.asked) == 4
    await client.close()


async def test_a_token_that_is_not_known_may_get_nothing() -> None:
    client, clock = Reviewer(), Clock()
    clock.now = 100.0
    access = AccessReview(client, clock)
    assert await access.user("bad") is None
    assert not await access.may_get("bad", "/metrics")
    assert len(client.asked) == 1
    await client.close()
