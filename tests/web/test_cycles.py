"""Cycles and decisions of a scheduler at its endpoint, recorded cycles compared with another policy, and reports of simulations."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.worlds.live.cluster import World
from tests.worlds.web import dashboard
from tests.worlds.web_cluster import small_cluster

from navarch.cli.up.scheduler_service import serve_scheduler


async def test_without_a_scheduler_its_figures_are_not_available(world: World) -> None:
    async with dashboard(world) as web:
        found = await web.get("cycles")
        assert found["cycles"] is None
        assert found["recordings"] == []
        assert (await web.until("cycles", lambda found: "no scheduler publishes" in found["scheduler"]["reason"]))["cycles"] is None
        assert (await web.get("cycles/last", 503))["error"]["code"] == "Unavailable"


async def test_cycles_and_decisions_come_from_the_scheduler(world: World) -> None:
    await small_cluster(world)
    await world.pod("a")
    async with world.scheduler(listen="127.0.0.1:0", lock_namespace="default") as scheduler:
        await world.eventually(lambda: world.get_pod("a"), lambda pod: pod["spec"].get("nodeName"))
        async with dashboard(world, scheduler=f"http://127.0.0.1:{scheduler.operator_server.health.port}") as web:
            found = await web.until("overview", lambda found: found["scheduler"]["available"] and found["decisions"])
            (bound,) = (each for each in found["decisions"] if each["job"] == "default/a")
            assert (bound["kind"], bound["pods"], len(bound["nodes"])) == ("bind", 1, 1)
            assert found["scheduler"]["cycleSeconds"]["p50"] > 0
            assert found["scheduler"]["failedWrites"] == 0
            assert found["scheduler"]["bindsPerSecond"] is not None
            cycles = await web.get("cycles")
            assert sum(each["binds"] for each in cycles["cycles"]) >= 1
            assert "allocate" in cycles["cycles"][-1]["timings"]
            last = await web.get("cycles/last", policy="volcano")
            assert last["id"] == "last"
            assert last["compared"]["policy"] == "volcano"
            assert [each["job"] for each in last["jobs"]] == ["default/wide"]
            assert (await web.get("cycles/last", 400, policy="/etc/passwd"))["error"]["code"] == "Invalid"


async def test_without_an_url_the_leader_is_read_through_the_api_server(world: World) -> None:
    assert world.server is not None
    await world.node("n1")
    await world.pod("a")
    async with world.scheduler(listen="127.0.0.1:0", lock_namespace="default", reached_as="services/navarch") as scheduler:
        port = await world.eventually(lambda: asyncio.sleep(0, scheduler.operator_server.health.port), bool)
        serve_scheduler(world.server.operations, "default", port)
        await world.eventually(lambda: world.get_pod("a"), lambda pod: pod["spec"].get("nodeName"))
        async with dashboard(world) as web:
            found = await web.until("overview", lambda found: found["scheduler"]["available"] and found["decisions"])
            assert [each["job"] for each in found["decisions"]] == ["default/a"]
            assert found["scheduler"]["leader"] == scheduler.identity
            assert found["scheduler"]["failedWrites"] == 0
            assert (await web.get("cycles/last"))["id"] == "last"


async def test_a_recorded_cycle_is_opened_and_compared(world: World, tmp_path: Path) -> None:
    records = tmp_path / "records"
    await world.node("n1")
    await world.pod("a")

    def recorded() -> list[Path]:
        return sorted(records.glob("cycle-*.json.gz")) if records.exists() else []

    async with world.scheduler(record=records):

        async def look() -> list[Path]:
            return recorded()

        await world.eventually(look, bool)
    async with dashboard(world, recordings=records) as web:
        (entry,) = (await web.get("cycles"))["recordings"]
        assert entry["id"] == recorded()[0].name
        assert entry["bytes"] > 0
        found = await web.get(f"cycles/{entry['id']}")
        assert found["binds"] == [{"pod": "default/a", "node": "n1", "job": "default/a"}]
        assert found["compared"] is None
        other = await web.get(f"cycles/{entry['id']}", policy="kube-scheduler")
        assert other["compared"]["binds"] == 1
        for wrong in ("cycle-1-1.json.gz", "..%2f..%2fetc%2fpasswd", "x"):
            assert (await web.get(f"cycles/{wrong}", 404))["error"]["code"] == "NotFound"


async def test_reports_of_simulations_are_listed_and_given_as_they_are(world: World, tmp_path: Path) -> None:
    report: dict[str, Any] = {"title": "<b>two teams</b>", "order": ["fifo", "easy"], "policies": {"fifo": {}, "easy": {}}}
    for name, text in (("two-teams", json.dumps(report)), ("broken", "{"), ("other", "[]")):
        (tmp_path / "out" / name).mkdir(parents=True)
        (tmp_path / "out" / name / "report.json").write_text(text, encoding="utf-8")
    async with dashboard(world, simulations=tmp_path / "out") as web:
        (item,) = (await web.get("simulations"))["items"]
        assert (item["name"], item["title"], item["policies"]) == ("two-teams", "<b>two teams</b>", ["fifo", "easy"])
        assert await web.get("simulations/two-teams") == report
        for wrong in ("..", "%2e%2e", "nothing"):
            async with web.session.get(f"/api/v1/simulations/{wrong}") as answer:
                assert answer.status == 404
