"""Trials by POST: the answer, bodies, and limits in number and rate."""

from __future__ import annotations

from typing import Any

from tests.worlds.live.cluster import World
from tests.worlds.web import Dashboard, dashboard
from tests.worlds.web_cluster import small_cluster

from navarch.web.work.limits import WorkLimits


async def post(web: Dashboard, path: str, status: int, body: Any = None, **options: Any) -> Any:
    given: dict[str, Any] = {"json": body} if body is not None or not options else options
    async with web.session.post(f"/api/v1/{path}", **given) as answer:
        assert answer.status == status, await answer.text()
        if status == 429:
            assert int(answer.headers["Retry-After"]) >= 1
        return await answer.json()


async def test_trials_tell_what_would_start_a_job(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world) as web:
        found = (await post(web, "jobs/default/wide/trials", 200, {"trials": 60, "seconds": 15}))["explanation"]
        assert found["trials"] > 1
        assert found["blockers"]["jobs"] == ["default/held"]
        assert any(change["starts"] for change in found["changes"])


async def test_bodies_are_checked_before_any_work(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world, limits=WorkLimits(trials=10, seconds=2.0, a_minute=1)) as web:
        path = "jobs/default/wide/trials"
        assert "trials" in (await post(web, path, 400, {"trials": 11}))["error"]["message"]
        assert "seconds" in (await post(web, path, 400, {"seconds": 2.1}))["error"]["message"]
        assert (await post(web, path, 400, {"seconds": "x"}))["error"]["code"] == "Invalid"
        assert (await post(web, path, 400, {"policy": "/etc/passwd"}))["error"]["code"] == "Invalid"
        assert (await post(web, path, 400, [1]))["error"]["code"] == "Invalid"
        form = {"data": b"trials=5", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}
        assert (await post(web, path, 415, **form))["error"]["code"] == "UnsupportedMediaType"
        large = {"data": b" " * (65 << 10), "headers": {"Content-Type": "application/json"}}
        assert (await post(web, path, 413, **large))["error"]["code"]
        assert (await post(web, "jobs/default/nothing/trials", 404, {}))["error"]["code"] == "NotFound"
        assert (await post(web, "overview", 405, {}))["error"]["code"]


async def test_a_viewer_may_ask_only_so_often(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world, limits=WorkLimits(a_minute=1)) as web:
        await post(web, "jobs/default/wide/trials", 200, {"trials": 1, "seconds": 1})
        assert (await post(web, "jobs/default/wide/trials", 429, {"trials": 1}))["error"]["code"] == "TooManyRequests"
