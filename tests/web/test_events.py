"""The stream of changes: versions, changed and removed rows, resuming, filters."""

from __future__ import annotations

from typing import Any

from tests.worlds.live.cluster import World
from tests.worlds.web import dashboard

from navarch.kube.resources import PODS


def changed_ids(data: Any) -> set[str]:
    return {row[0] for row in data.get("jobs", {}).get("changed", ())}


async def test_a_new_job_is_sent_as_a_changed_row_and_a_gone_one_as_removed(world: World) -> None:
    await world.node("n1")
    async with dashboard(world) as web:
        version = (await web.get("jobs"))["version"]
        async with web.events(topics="jobs", since=version) as events:
            await world.pod("a")
            data = await events.until(lambda name, data: "default/pod/a" in changed_ids(data))
            assert set(data) == {"version", "jobs"}
            await world.client.delete(PODS, "a", namespace="default", grace_period=0)
            data = await events.until(lambda name, data: "default/pod/a" in data["jobs"]["removed"])
        assert data["version"] != version


async def test_a_stream_resumes_from_the_last_event_id_without_loss(world: World) -> None:
    await world.node("n1")
    async with dashboard(world) as web:
        async with web.events(topics="jobs", since=(await web.get("jobs"))["version"]) as events:
            await world.pod("a")
            _, last, _ = await events.next()
        await world.pod("b")
        await web.until("jobs", lambda found: any(row[0] == "default/pod/b" for row in found["rows"]))
        async with web.events(topics="jobs", last=last) as events:
            name, _, data = await events.next()
            assert name == "change"
            assert "default/pod/b" in changed_ids(data)


async def test_an_unknown_version_is_reset(world: World) -> None:
    await world.node("n1")
    async with dashboard(world) as web:
        for version in ("0000-1", "junk", "-", f"{'9' * 40}-9"):
            async with web.events(since=version) as events:
                name, _, data = await events.next()
                assert name == "reset"
                assert data == {"version": (await web.get("jobs"))["version"]}


async def test_filters_hold_for_the_stream_as_well(world: World) -> None:
    await world.node("n1")
    async with dashboard(world) as web:
        version = (await web.get("jobs"))["version"]
        async with web.events(topics="jobs", since=version, text="wanted") as events:
            await world.pod("other")
            await world.pod("wanted")
            data = await events.until(lambda name, data: bool(changed_ids(data)))
            assert changed_ids(data) == {"default/pod/wanted"}


async def test_topics_are_checked_and_nodes_are_sent_in_columns(world: World) -> None:
    async with dashboard(world) as web:
        assert (await web.get("events", 400, topics="odd"))["error"]["code"] == "Invalid"
        version = (await web.get("jobs"))["version"]
        async with web.events(topics="nodes,overview", since=version) as events:
            await world.node("n9")
            data = await events.until(lambda name, data: "nodes" in data)
            assert data["nodes"]["changed"]["names"] == ["n9"]
            assert data["overview"]["nodes"]["total"] == 1
            assert "jobs" not in data
