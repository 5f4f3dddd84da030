"""When cycles run: the event loop's time is faked, nothing sleeps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from navarch.live.cycle_loop import CycleLoop
from navarch.live.queue.scheduling_queue import SchedulingQueue

pytestmark = pytest.mark.looptime


@contextlib.asynccontextmanager
async def running(loop: CycleLoop) -> AsyncIterator[None]:
    task = asyncio.create_task(loop.run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def recorded(queue: SchedulingQueue | None = None, period: float = 1.0, settle: float = 0.004) -> tuple[CycleLoop, list[float]]:
    times: list[float] = []

    def cycle() -> None:
        times.append(round(asyncio.get_running_loop().time(), 3))

    loop = CycleLoop(SchedulingQueue() if queue is None else queue, cycle, period=period, settle=settle)
    return loop, times


async def test_without_changes_a_cycle_runs_once_in_a_period() -> None:
    loop, times = recorded()
    async with running(loop):
        await asyncio.sleep(3.5)
    assert times == [1.004, 2.008, 3.012]


async def test_a_change_starts_a_cycle_after_the_settling_time_and_many_changes_start_one() -> None:
    loop, times = recorded()
    async with running(loop):
        await asyncio.sleep(0.2)
        loop.trigger()
        await asyncio.sleep(0.002)
        loop.trigger()
        await asyncio.sleep(0.1)
    assert times == [0.204]


async def test_the_end_of_a_wait_starts_a_cycle_before_the_period_does() -> None:
    queue = SchedulingQueue()
    queue.set_backoff(0.25, 10.0)
    loop, times = recorded(queue)
    queue.add_unschedulable("default/a", (), 1, now=0.0)
    async with running(loop):
        await asyncio.sleep(0.5)
    assert times == [0.254]


async def test_after_a_long_cycle_comes_a_pause_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[float] = []
    ends: list[float] = []

    clock = asyncio.get_running_loop().time
    offset = 0.0

    def cycle() -> None:
        nonlocal offset
        starts.append(clock() + offset)
        offset += 0.3
        ends.append(clock() + offset)

    loop = CycleLoop(SchedulingQueue(), cycle)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock() + offset)
    async with running(loop):
        for _ in range(60):
            loop.trigger()
            await asyncio.sleep(0.02)
    pauses = [start - end for start, end in zip(starts[1:], ends)]
    assert len(pauses) >= 2
    assert all(pause >= 0.29 for pause in pauses)


async def test_a_change_long_after_a_long_cycle_waits_for_the_settling_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = asyncio.get_running_loop().time
    starts: list[float] = []
    offset = 0.0

    def cycle() -> None:
        nonlocal offset
        starts.append(round(clock(), 3))
        offset += 0.3

    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock() + offset)
    loop = CycleLoop(SchedulingQueue(), cycle, settle=0.004)
    async with running(loop):
        for _ in range(2):
            loop.trigger()
            await asyncio.sleep(0.8)
    assert starts == [0.004, 0.504]
