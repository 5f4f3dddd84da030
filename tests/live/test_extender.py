"""A live scheduler with an HTTP extender: it is asked while watches go on, and its answers are recorded with the cycle."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.worlds.extender_server import Answers, extender
from tests.worlds.kube.json_server import serving
from tests.worlds.live.cluster import World

from navarch.installed import installed
from navarch.kube.resources import PODS
from navarch.offline import replay

pytestmark = pytest.mark.live


def policy(world: World, url: str, more: str = "") -> Path:
    file = world.folder / "extender.yaml"
    file.write_text(
        f"""\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: extender
    arguments:
      extender.urlPrefix: {url}
      extender.httpTimeout: 60s
      extender.predicateVerb: predicate
      extender.prioritizeVerb: prioritize
      extender.onSessionCloseVerb: close
{more}""",
        encoding="utf-8",
    )
    return file


async def test_answers_decide_and_are_recorded(world: World) -> None:
    await world.node("refused", cpu="8")
    await world.node("second", cpu="8")
    await world.node("best", cpu="8")
    answers: Answers = {
        "predicate": [{"match": {"node.Name": "refused"}, "body": {"status": "not here", "code": 3}}, {"body": {}}],
        "prioritize": [{"body": {"nodeScore": {"refused": 100, "best": 50}}}],
    }
    recorded = world.folder / "cycles"
    history = await world.watch()
    with extender(answers) as seen:
        async with world.scheduler(policy=str(policy(world, seen.url)), record=recorded):
            await world.pod("a", cpu="1")
            await history.until_bound(1)
    assert {task.node for task in history.tasks.values()} == {"best"}
    body = next(body for verb, body in seen.requests if verb == "predicate")
    assert body["task"]["Pod"]["metadata"]["name"] == "a" and body["node"]["Node"]["status"]["allocatable"]["cpu"] == "8"
    bound = 0
    for file in sorted(recorded.iterdir()):
        recording = replay.read(file)
        again = replay.again(recording, installed())
        assert replay.same(bytes(recording.decisions), replay.decisions(again))
        bound += len(again.binds)
    assert bound == 1, "the cycle that bound the pod replays without the extender"


async def test_a_dry_run_asks_on_request(world: World) -> None:
    await world.node("refused", cpu="8")
    await world.node("best", cpu="8")
    answers: Answers = {"predicate": [{"match": {"node.Name": "refused"}, "body": {"status": "no", "code": 3}}, {"body": {}}]}
    with extender(answers) as seen:
        async with world.scheduler(policy=str(policy(world, seen.url)), dry_run=True, ask_extenders=True) as scheduler:
            await world.pod("a", cpu="1")

            async def decided() -> list[str]:
                cycle = scheduler.core.last_cycle
                return [] if cycle is None else [bind.node for bind in cycle.record.binds]

            await world.eventually(decided, lambda nodes: nodes == ["best"])
    assert "predicate" in seen.verbs()


async def test_a_pod_that_is_deleted_while_the_extender_thinks_is_not_bound(world: World) -> None:
    await world.node("n1", cpu="8")
    history = await world.watch()
    asked, thought = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        if request.path == "/predicate" and body["task"]["Name"] == "slow":
            asked.set()
            await thought.wait()
        return web.json_response({"nodeScore": {}})

    async with serving(answer) as served, world.scheduler(policy=str(policy(world, served.address))) as scheduler:
        pod = await world.pod("slow", cpu="1")
        async with asyncio.timeout(120):
            await asked.wait()
        await world.client.delete(PODS, "slow", namespace=world.namespace)
        uid = pod["metadata"]["uid"]
        await world.eventually(_nothing, lambda _: scheduler.cache.cluster.task(uid) is None)
        thought.set()
        await world.pod("next", cpu="1")
        await history.until_bound(1)
    assert [task.name for task in history.tasks.values() if task.node] == ["next"]


async def _nothing() -> None:
    return None


async def test_a_scheduler_stops_while_its_extender_hangs(world: World) -> None:
    await world.node("n1", cpu="8")
    with extender({"predicate": [{"delayMs": 600_000}]}) as seen:
        async with world.scheduler(policy=str(policy(world, seen.url))):
            await world.pod("a", cpu="1")
            async with asyncio.timeout(60):
                while "predicate" not in seen.verbs():
                    await asyncio.sleep(0.01)
