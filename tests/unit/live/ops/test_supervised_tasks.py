"""What a long-running task raises: it is started again, told and counted. Time is faked, nothing sleeps."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry, Counter

from navarch.live.ops.supervised_tasks import LASTING, MAX_BACKOFF, SupervisedTasks

pytestmark = pytest.mark.looptime


class World:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.tasks = SupervisedTasks(Counter("failures", "Failures.", ["task"], registry=self.registry))

    def failures(self, name: str) -> float | None:
        return self.registry.get_sample_value("failures_total", {"task": name})


async def test_a_task_that_raises_is_started_again_with_growing_pauses() -> None:
    world, starts = World(), list[float]()

    async def work() -> None:
        starts.append(asyncio.get_running_loop().time())
        if len(starts) <= 8:
            raise KeyError("x")

    await world.tasks.run("resync", work)
    pauses = [b - a for a, b in pairwise(starts)]
    assert len(starts) == 9
    assert all(0.5 * 0.5 * 2**n <= pause <= 0.5 * 2**n for n, pause in enumerate(pauses[:6]))
    assert max(pauses) <= MAX_BACKOFF
    assert world.failures("resync") == 8


async def test_a_task_that_ran_long_enough_starts_again_soon() -> None:
    world, starts = World(), list[float]()

    async def work() -> None:
        starts.append(asyncio.get_running_loop().time())
        if len(starts) == 20:
            return
        await asyncio.sleep(LASTING + 1)
        raise ValueError

    await world.tasks.run("cycles", work)
    assert all(b - a - LASTING <= 1.5 for a, b in pairwise(starts))


async def test_a_task_is_cancelled_and_not_started_again() -> None:
    world, started = World(), asyncio.Event()

    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(world.tasks.run("cycles", work))
    await started.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled() and world.failures("cycles") is None


async def test_a_task_that_raises_because_it_is_cancelled_is_not_started_again() -> None:
    world, starts = World(), list[asyncio.Event]()

    async def work() -> None:
        starts.append(asyncio.Event())
        try:
            await starts[-1].wait()
        finally:
            raise KeyError("x")

    task = asyncio.create_task(world.tasks.run("leading", work))
    await asyncio.sleep(1.0)
    task.cancel()
    await asyncio.sleep(MAX_BACKOFF)
    assert task.cancelled() and len(starts) == 1 and world.failures("leading") == 1


async def test_readiness_tells_while_it_lasts_and_no_more_than_the_kind_of_error() -> None:
    world = World()
    for _ in range(3):
        with world.tasks.contained("default queue"):
            raise KeyError("tenant/secret")
    with world.tasks.contained("usage"):
        pass
    assert world.tasks.notes() == ["default queue failed 3 times in a row: KeyError"]
    await asyncio.sleep(LASTING + MAX_BACKOFF)
    assert world.tasks.notes() == []


async def test_a_traceback_is_logged_once_for_each_place(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    with caplog.at_level(logging.INFO):
        for number in range(5):
            with world.tasks.contained("pod statuses"):
                raise KeyError(number)
        with world.tasks.contained("pod statuses"):
            raise KeyError("elsewhere")
    assert [record.exc_info is not None for record in caplog.records] == [True, True]
    assert world.failures("pod statuses") == 6
