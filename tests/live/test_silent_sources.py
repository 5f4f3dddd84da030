"""Servers of statistics that take connections and never answer: the leader decides all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace
from tests.worlds.live.cluster import IMPATIENT, OPTIONS, World

from navarch.live.scheduler import Scheduler

pytestmark = pytest.mark.live


class SilentServer:
    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(writer)
        self.asked.set()
        try:
            while await reader.read(1024):
                pass
        except ConnectionError:
            pass
        finally:
            self.open.discard(writer)
            writer.transport.abort()


@pytest.fixture
async def silent() -> AsyncIterator[SilentServer]:
    made = SilentServer()
    async with await asyncio.start_server(made.hear, "127.0.0.1", 0) as server:
        made.port = server.sockets[0].getsockname()[1]
        yield made
        for writer in list(made.open):
            writer.transport.abort()


def policy(folder: Path, silent: SilentServer) -> str:
    address = f"http://127.0.0.1:{silent.port}"
    path = folder / "policy.yaml"
    usage = {"clientType": "prometheus", "connectionString": address, "usageParams": {"waitTimeout": "60s"}}
    path.write_text(yaml.safe_dump({"compat": "kai", "usageDBConfig": usage}), encoding="utf-8")
    return str(path)


async def test_a_new_leader_decides_at_once_and_says_what_is_missing(world: World, silent: SilentServer) -> None:
    async with world.scheduler(policy=policy(world.folder, silent)) as scheduler:
        await world.eventually(lambda: asyncio.sleep(0, scheduler.core.last_cycle), bool, timeout=20)
        assert scheduler.usage.problem().startswith("usage over time is not known yet")


async def test_a_policy_change_does_not_stop_the_checks_of_gangs(world: World, silent: SilentServer) -> None:
    path = world.folder / "policy.yaml"
    path.write_text(yaml.safe_dump({"compat": "kai"}), encoding="utf-8")
    async with world.scheduler(policy=str(path)) as scheduler:
        await world.eventually(lambda: asyncio.sleep(0, scheduler.core.last_cycle), bool)
        policy(world.folder, silent)
        await asyncio.wait_for(silent.asked.wait(), 60)
        checked = asyncio.Event()
        scheduler.core.gangs.check = lambda now: checked.set()  # type: ignore[method-assign]
        await asyncio.wait_for(checked.wait(), 20)


async def test_a_lease_that_is_lost_before_the_first_answer_leaves_nothing_that_asks(world: World, silent: SilentServer) -> None:
    scheduler = Scheduler(world.endpoint(), replace(OPTIONS, policy=policy(world.folder, silent)), patience=IMPATIENT)
    watching = asyncio.create_task(scheduler.informers.run())
    leading = asyncio.create_task(scheduler.lead())
    await asyncio.wait_for(silent.asked.wait(), 60)
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
    assert not [task for task in asyncio.all_tasks() if task.get_name() in ("usage feed", "load of nodes")]
    await world.eventually(lambda: asyncio.sleep(0, len(silent.open)), lambda count: count == 0)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await scheduler.steps.close()
    await scheduler.pool.close()
    await scheduler.client.close()
