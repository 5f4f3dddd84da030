"""START in the grid of jobs: a forecast by walltimes, made in a process of its own; a reason where there is no basis."""

from __future__ import annotations

from tests.worlds.live.cluster import World
from tests.worlds.web import dashboard


async def test_a_waiting_job_starts_when_the_running_one_reaches_its_deadline(world: World) -> None:
    await world.node("n1", cpu="4")
    async with world.scheduler(listen=""):
        await world.pod("first", cpu="4", activeDeadlineSeconds=3600)
        await world.eventually(lambda: world.get_pod("first"), lambda pod: pod["spec"].get("nodeName"))
        await world.gang("second", 1, cpu="3", activeDeadlineSeconds=60)
    async with dashboard(world) as web:
        before = (await web.rows())["default/second"]
        # The look at jobs begins a forecast; the next one comes much later.
        assert (before["start"], before["startUnknown"]) == (None, "not estimated yet")
        found = await web.until("jobs", lambda found: any(row[found["columns"].index("start")] for row in found["rows"]))
        row = next(dict(zip(found["columns"], row, strict=True)) for row in found["rows"] if row[0] == "default/second")
        overview = await web.get("overview")
        half, most = row["start"]
        assert 3000 < half - overview["time"] < 3700 and most >= half
        assert row["startUnknown"] == ""
        assert (await web.get("jobs/default/second"))["job"]["start"] == [half, most]
        assert all(row["startUnknown"] == "" for row in (await web.rows()).values())


async def test_without_a_basis_the_reason_stands_beside_the_job(world: World) -> None:
    await world.node("n1", cpu="4")
    await world.pod("large", cpu="3")
    async with dashboard(world) as web:
        await web.server.starts.forecast()
        found = await web.until("jobs", lambda found: "history" in found["rows"][0][found["columns"].index("startUnknown")])
        assert found["rows"][0][found["columns"].index("start")] is None
