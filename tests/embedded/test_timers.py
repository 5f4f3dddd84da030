"""Timers of the hollow cluster: waits in the cluster's seconds and in ours."""

from __future__ import annotations

import asyncio

import pytest

from navarch.embedded.timers import Timers

pytestmark = pytest.mark.looptime


async def test_another_speed_holds_for_what_is_left_of_a_wait() -> None:
    timers, loop = Timers(), asyncio.get_running_loop()
    fired: dict[str, float] = {}

    def note(name: str) -> None:
        fired[name] = loop.time()

    timers.after("ours", 60, lambda: note("ours"))
    timers.after_real("real", 60, lambda: note("real"))
    await asyncio.sleep(10)
    timers.pass_at(10)
    timers.after("new", 60, lambda: note("new"))
    assert (timers.speed, len(timers)) == (10, 3)
    await asyncio.sleep(60)
    assert fired == {"ours": pytest.approx(15), "new": pytest.approx(16), "real": pytest.approx(60)}


async def test_a_call_that_fails_stops_no_other() -> None:
    def fail() -> None:
        raise KeyError("spec")

    timers, called = Timers(), asyncio.Event()
    timers.after("bad", 1, fail)
    timers.after("good", 2, called.set)
    await called.wait()
    assert len(timers) == 0
