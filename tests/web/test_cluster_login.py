"""Tokens of the cluster: users see the namespaces in which they may list pods, and no names of others."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import ClientSession
from tests.worlds.live.cluster import GROUPS, NAMESPACES, World
from tests.worlds.web import Dashboard, dashboard
from tests.worlds.web_cluster import gpu_node, gpu_pod, queue

from navarch.kube.auth.access_review import AccessReview, TokenUser
from navarch.kube.resources import Resource
from navarch.web.stream.event_stream import MOST_OF_A_VIEWER

RIGHTS = {"jane": {"ml"}, "root": {""}, "poor": set[str]()}
"""TokenUser -> namespaces in which pods may be listed; empty name: all."""


class Reviews(AccessReview):
    """Reviews without an API server: the token is the user's name."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def user(self, token: str) -> TokenUser | None:
        return TokenUser(token) if token in RIGHTS else None

    async def may_list(self, user: TokenUser, resource: Resource, namespace: str = "") -> bool:
        self.asked.append(namespace)
        if resource.plural == "nodes":
            return user.name != "poor"
        return bool(RIGHTS[user.name] & {"", namespace})


async def two_tenants(world: World) -> None:
    """`cv/secret` holds the only node, `ml/mine` waits; each in a queue of its own."""
    await gpu_node(world, "n1", 8)
    for namespace, name, node, gpus in (("cv", "secret", "n1", 8), ("ml", "mine", "", 8)):
        await world.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        await queue(world, f"{namespace}-queue")
        body = {
            "apiVersion": GROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"minMember": 1, "queue": f"{namespace}-queue"},
        }
        await world.client.create(GROUPS, body, namespace=namespace)
        await gpu_pod(world, f"{name}-0", gpus, name, node, namespace)


async def get(web: Dashboard, user: str, path: str, status: int = 200) -> Any:
    async with web.session.get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {user}"}) as answer:
        assert answer.status == status, await answer.text()
        return await answer.json()


async def test_a_user_sees_only_its_namespaces(world: World) -> None:
    await two_tenants(world)
    async with dashboard(world, access=Reviews(), login="cluster") as web:
        assert [row[0] for row in (await get(web, "jane", "jobs"))["rows"]] == ["ml/mine"]
        assert len((await get(web, "root", "jobs"))["rows"]) == 2
        assert (await get(web, "poor", "jobs"))["rows"] == []
        seen = await get(web, "jane", "viewer")
        assert (seen["user"], seen["mode"], seen["namespaces"]) == ("jane", "cluster", ["ml"])
        assert (await get(web, "jane", "jobs/cv/secret", 404))["error"]["code"] == "NotFound"
        assert [row["name"] for row in (await get(web, "jane", "queues"))["rows"]] == ["ml-queue"]
        assert (await get(web, "jane", "queues/cv-queue", 404))["error"]["code"] == "NotFound"
        assert (await get(web, "poor", "nodes", 403))["error"]["code"] == "Forbidden"
        assert (await get(web, "jane", "cycles/last", 403))["error"]["code"] == "Forbidden"


async def test_no_answer_names_another_tenant(world: World) -> None:
    await two_tenants(world)
    async with dashboard(world, access=Reviews(), login="cluster") as web:
        paths = ["overview", "jobs", "queues", "queues/ml-queue", "nodes", "nodes/n1", "jobs/ml/mine", "cycles"]
        answers = [json.dumps(await get(web, "jane", path)) for path in paths]
        headers = {"Authorization": "Bearer jane"}
        async with web.session.post("/api/v1/jobs/ml/mine/trials", json={"trials": 40, "seconds": 15}, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            answers.append(await answer.text())
        blockers = json.loads(answers[-1])["explanation"]["blockers"]["jobs"]
        assert blockers == ["(another namespace)"]
        for path, text in zip([*paths, "trials"], answers, strict=True):
            assert "secret" not in text, path
            assert "cv-queue" not in text, path
        node = await get(web, "jane", "nodes/n1")
        assert node["pods"]["rows"][0][0] is None
        assert node["devices"][0]["pods"] == [{"pod": None, "part": 1}]


async def test_a_stream_sends_no_rows_of_other_namespaces(world: World) -> None:
    await two_tenants(world)
    async with dashboard(world, access=Reviews(), login="cluster") as web:
        version = (await get(web, "jane", "jobs"))["version"]
        web.session.headers["Authorization"] = "Bearer jane"
        async with web.events(topics="jobs,nodes,queues,overview", since=version) as events:
            await gpu_pod(world, "hidden-0", 1, "", "", "cv")
            await gpu_pod(world, "seen-0", 1, "", "", "ml")
            data = await events.until(lambda name, data: "jobs" in data and "ml/pod/seen-0" in json.dumps(data["jobs"]))
            assert "hidden" not in json.dumps(data)
            assert "cv-queue" not in json.dumps(data)


async def test_a_browser_logs_in_once_and_gets_a_cookie(world: World) -> None:
    async with dashboard(world, access=Reviews(), login="cluster") as web, ClientSession(web.origin) as browser:
        async with browser.get("/api/v1/viewer") as answer:
            assert answer.status == 401
        async with browser.get("/?token=jane") as answer:
            assert answer.status == 200
            assert "Set-Cookie" not in answer.headers
        for body, status in (({"token": "unknown"}, 401), ({"other": 1}, 400), ({"token": "jane"}, 204)):
            async with browser.post("/login", json=body) as answer:
                assert answer.status == status
        cookie = answer.headers["Set-Cookie"]
        assert "jane" not in cookie
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        async with browser.get("/api/v1/viewer", headers={"Cookie": cookie.partition(";")[0]}) as answer:
            assert (await answer.json())["user"] == "jane"


async def test_tokens_are_reviewed_by_the_api_server(world: World) -> None:
    """The embedded server knows one token, which may do everything."""
    assert world.server is not None
    async with dashboard(world, login="cluster") as web:
        assert (await get(web, world.server.token, "viewer"))["namespaces"] is None
        assert (await get(web, "wrong", "viewer", 401))["error"]["code"] == "Unauthorized"


async def test_probes_need_no_login(world: World) -> None:
    async with dashboard(world, login="cluster") as web, ClientSession(web.origin) as prober:
        for path in ("/livez", "/readyz"):
            async with prober.get(path) as answer:
                assert (answer.status, await answer.text()) == (200, "ok\n")


async def test_one_user_leaves_streams_for_others(world: World) -> None:
    async def stream(user: str) -> int:
        answer = await open_streams.enter_async_context(web.session.get("/api/v1/events", headers={"Authorization": f"Bearer {user}"}))
        return answer.status

    async with dashboard(world, access=Reviews(), login="cluster") as web, AsyncExitStack() as open_streams:
        assert [await stream("jane") for _ in range(MOST_OF_A_VIEWER)] == [200] * MOST_OF_A_VIEWER
        assert await stream("jane") == 429
        assert await stream("root") == 200
