"""Whether what pages show is current: the API server answers or not, and what is missing while the cluster is being read."""

from __future__ import annotations

import asyncio
import time

from aiohttp import ClientSession
from tests.worlds.live.cluster import IMPATIENT, World
from tests.worlds.web import dashboard

from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.views.published_state import HeldOverTime, UsagePage
from navarch.views.queue_history import STEP_SECONDS
from navarch.web.server import WebOptions, WebServer


async def test_an_api_server_that_does_not_answer_is_told_with_its_last_answer(world: World) -> None:
    assert world.server is not None
    async with dashboard(world) as web:
        well = await web.until("status", lambda found: found["apiServer"]["lastAnswer"] is not None)
        assert well["ready"] and well["apiServer"]["answers"] and not well["apiServer"]["reason"]
        world.server.faults.errors(503, path="/version")
        await web.server.health.ask()
        found = (await web.get("status"))["apiServer"]
        assert not found["answers"] and "503" in found["reason"] and found["lastAnswer"] >= well["apiServer"]["lastAnswer"]
        world.server.faults.clear()
        world.server.faults.errors(403, path="/version")
        await web.server.health.ask()  # it answers, though not this
        assert (await web.get("status"))["apiServer"]["answers"]


async def test_what_cannot_be_read_is_told_while_the_cluster_is_being_read(world: World) -> None:
    assert world.server is not None
    world.server.faults.errors(403, path="/api/v1/nodes")
    registry = installed()
    options = WebOptions(listen="127.0.0.1:0", seed=1, patience=IMPATIENT, kubeconfig=world.kubeconfig)
    server = WebServer(world.endpoint(), read_policy("navarch", registry), registry, options)
    await server.start()
    running = asyncio.create_task(server.run())
    headers = {"Authorization": f"Bearer {server.token_login.token}"}
    try:
        async with ClientSession(f"http://127.0.0.1:{server.port}", headers=headers) as session, asyncio.timeout(60):
            message = ""
            while "403" not in message:
                async with session.get("/api/v1/jobs") as answer:
                    assert answer.status == 503
                    message = (await answer.json())["error"]["message"]
                await asyncio.sleep(0.05)
            assert message.startswith("the cluster cannot be read: ") and "/api/v1/nodes" in message
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.stop()


async def test_usage_of_the_time_before_comes_from_the_leader(world: World) -> None:
    await world.node("n1", cpu="4")
    await world.pod("a", cpu="1")
    async with world.scheduler(listen="127.0.0.1:0", lock_namespace="default") as scheduler:
        await world.eventually(lambda: world.get_pod("a"), lambda pod: pod["spec"].get("nodeName"))
        page = scheduler.operator_server.pages.usage()
        assert page is not None
        assert {(row.queue, row.held[-1]) for row in page.rows if row.resource == "cpu"} >= {("default", 1)}
        async with dashboard(world, scheduler=f"http://127.0.0.1:{scheduler.operator_server.health.port}") as web:
            end = (time.time() // STEP_SECONDS + 1) * STEP_SECONDS
            web.server.scheduler.on_usage(UsagePage(STEP_SECONDS, end, [HeldOverTime("default", "cpu", [5.0, 6.0, 7.0, None])]))
            (row,) = (await web.get("usage", queue="default", resource="cpu"))["rows"]
            assert [value for value in row["held"] if value is not None][:3] == [5.0, 6.0, 7.0]
            await web.until("overview", lambda found: found["scheduler"]["available"])
