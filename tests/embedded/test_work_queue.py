"""Work by key: once for many changes, again when it failed, and seldom where it costs much. Time is virtual, and so is the cost."""

from __future__ import annotations

import asyncio

import pytest

from navarch.embedded.controllers.work_queue import FIRST_RETRY, REST, WorkQueue
from navarch.embedded.timers import Timers

pytestmark = pytest.mark.looptime


class Worker:
    """Notes when it worked on what. `costs` are the processor's seconds by key; `failures` is how often a key fails."""

    def __init__(self) -> None:
        self.costs: dict[str, float] = {}
        self.failures: dict[str, int] = {}
        self.done: list[tuple[str, float]] = []
        self.spent = 0.0
        self.timers = Timers()
        self.timers.spent = lambda: self.spent
        self.queue: WorkQueue[str] = WorkQueue("test", self.work, self.timers)

    def work(self, key: str) -> None:
        self.done.append((key, round(asyncio.get_running_loop().time(), 2)))
        self.spent += self.costs.get(key, 0.0)
        if self.failures.get(key, 0):
            self.failures[key] -= 1
            raise KeyError(key)


async def test_many_changes_of_one_key_are_one_look_at_it() -> None:
    worker = Worker()
    for key in ("a", "b", "a", "a"):
        worker.queue.add(key)
    await asyncio.sleep(1)
    assert worker.done == [("a", 0.0), ("b", 0.0)]


async def test_a_key_whose_work_takes_long_rests_and_holds_up_no_other() -> None:
    worker = Worker()
    worker.costs["dear"] = 0.5
    for _ in range(3):
        for key in ("dear", "cheap"):
            worker.queue.add(key)
        await asyncio.sleep(1)
    await asyncio.sleep(1000)
    assert [at for key, at in worker.done if key == "cheap"] == [0.0, 1.0, 2.0]
    first, second = [at for key, at in worker.done if key == "dear"]
    assert second - first >= 0.5 * REST


async def test_failed_work_is_retried_with_growing_delays() -> None:
    worker = Worker()
    worker.failures["a"] = 3
    worker.queue.add("a")
    await asyncio.sleep(10)
    assert [at for _, at in worker.done] == pytest.approx([0.0, FIRST_RETRY, 3 * FIRST_RETRY, 7 * FIRST_RETRY])
    assert worker.queue.is_idle and len(worker.timers) == 0
