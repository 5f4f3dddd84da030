"""Work in the event loop of another thread: results, errors and cancellations come back; a silent first loop is noticed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from navarch.live.ops.second_loop import MARGIN, Heartbeat, SecondLoop, run_in


@asynccontextmanager
async def started() -> AsyncIterator[SecondLoop]:
    loop = SecondLoop()
    loop.start()
    try:
        yield loop
    finally:
        await loop.stop()


async def name_of_thread() -> str:
    return threading.current_thread().name


async def test_work_runs_there_and_its_result_comes_back() -> None:
    async with started() as second:
        assert await second.run(name_of_thread) == "second loop"
    assert await second.run(name_of_thread) == "MainThread", "stopped, it is the caller's loop again"


async def test_errors_of_the_work_are_raised_in_the_caller() -> None:
    async def fail() -> None:
        raise KeyError("x")

    async with started() as second:
        with pytest.raises(KeyError):
            await second.run(fail)


async def test_work_there_may_wait_for_work_here() -> None:
    first = asyncio.get_running_loop()
    async with started() as second:
        assert await second.run(lambda: run_in(first, name_of_thread)) == "MainThread"


async def test_the_second_loop_runs_while_the_first_is_busy() -> None:
    went_on = threading.Event()

    async def work() -> None:
        await asyncio.sleep(0)
        went_on.set()

    async with started() as second:
        task = asyncio.create_task(second.run(work))
        await asyncio.sleep(0)
        assert went_on.wait(60.0), "this thread waits without giving its event loop a turn"
        await task


async def test_a_cancellation_is_passed_on_and_the_end_is_waited_for() -> None:
    begun, ended = threading.Event(), list[str]()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append(threading.current_thread().name)

    async with started() as second:
        task = asyncio.create_task(second.run(work))
        await asyncio.to_thread(begun.wait, 60.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled() and ended == ["second loop"]


@pytest.mark.parametrize("error", [None, KeyError("x")])
async def test_a_cancellation_is_not_lost_where_the_work_ends_by_itself_meanwhile(error: Exception | None) -> None:
    """An elector that has just lost its lease returns. A scheduler that is stopped at that moment must not wait for the next one."""
    begun, may_end, ending = threading.Event(), threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        may_end.wait(60.0)
        ending.set()
        if error is not None:
            raise error

    async with started() as second:
        task = asyncio.create_task(second.run(work))
        await asyncio.to_thread(begun.wait, 60.0)
        may_end.set()
        assert ending.wait(60.0), "the work takes no more steps after this one, so it cannot be cancelled"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()


async def test_running_work_is_cancelled_when_the_loop_stops() -> None:
    begun, ended = threading.Event(), list[str]()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    second = SecondLoop()
    second.start()
    task = asyncio.create_task(second.run(work))
    await asyncio.to_thread(begun.wait, 60.0)
    await second.stop()
    await asyncio.gather(task, return_exceptions=True)
    assert ended == ["cancelled"]


async def test_a_loop_is_silent_after_the_limit_of_a_cycle_and_a_margin() -> None:
    now, limit = [100.0], [8.0]
    heartbeat = Heartbeat(lambda: limit[0], lambda: now[0])
    task = asyncio.create_task(heartbeat.run())
    await asyncio.sleep(0)
    now[0] += 8.0 + MARGIN
    assert heartbeat.alive
    now[0] += 1.0
    assert not heartbeat.alive and heartbeat.silence() == 9.0 + MARGIN
    limit[0] = 16.0  # the watchdog doubled it
    assert heartbeat.alive
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
