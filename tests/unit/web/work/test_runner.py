"""A working process that fails, is ended or answers costs only its own request."""

from __future__ import annotations

import asyncio
import sys

import pytest

from navarch.web.errors import RequestError
from navarch.web.work.limits import WorkLimits
from navarch.web.work.requests import OpenRecording
from navarch.web.work.runner import WorkRunner

WORK = OpenRecording("x")


def runner(program: str, **limits: int) -> WorkRunner:
    return WorkRunner(WorkLimits(**limits), (sys.executable, "-S", "-c", program))


async def test_a_process_over_its_cpu_seconds_is_told() -> None:
    with pytest.raises(RequestError, match="more than 60 CPU seconds") as raised:
        await runner("import os, signal; os.kill(os.getpid(), signal.SIGXCPU)").run("jane", WORK)
    assert raised.value.status == 503


async def test_a_process_that_fails_is_told_by_its_last_line() -> None:
    with pytest.raises(RequestError, match="ValueError: what") as raised:
        await runner("raise ValueError('what')").run("jane", WORK)
    assert raised.value.status == 500


async def test_an_error_of_the_work_has_its_status() -> None:
    with pytest.raises(RequestError, match="no such thing") as raised:
        await runner("""print('{"error": "no such thing", "status": 404}')""").run("jane", WORK)
    assert (raised.value.status, raised.value.code) == (404, "NotFound")


async def test_the_process_that_reads_recordings_refuses_what_is_none() -> None:
    with pytest.raises(RequestError, match="expected a recording") as raised:
        await WorkRunner().run("jane", OpenRecording("/dev/null"))
    assert raised.value.status == 400


async def test_no_more_than_the_limit_wait_at_once() -> None:
    slow = runner("import sys; sys.stdin.read(); print('{\"result\": {}}')", waiting=1)
    first = asyncio.create_task(slow.run("jane", WORK))
    await asyncio.sleep(0)
    with pytest.raises(RequestError) as raised:
        await slow.run("joe", WORK)
    assert raised.value.status == 429
    assert await first == {}
    assert await slow.run("joe", WORK) == {}
