"""Runs tasks in processes of their own, one at a time, within the limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from navarch.web.errors import RequestError
from navarch.web.work.limits import WorkLedger, WorkLimits
from navarch.web.work.requests import Answer, Task, Work

WAIT_FACTOR: Final = 4.0
"""A process is ended after so many times its CPU seconds."""
PROCESS: Final = (sys.executable, "-m", "navarch.web.work.process")
_CODES: Final = {400: "Invalid", 404: "NotFound", 503: "Unavailable"}


class WorkRunner:
    """`command`: starts a process that reads a task and writes the answer."""

    def __init__(self, limits: WorkLimits | None = None, command: Sequence[str] = PROCESS) -> None:
        self.limits, self._command = limits or WorkLimits(), command
        self._ledger = WorkLedger(self.limits, time.monotonic)
        self._one = asyncio.Lock()
        self.cpu_seconds = 0.0
        """That tasks have taken."""

    async def run(self, user: str, work: Work) -> dict[str, Any]:
        """The result. RequestError: it was refused, or it failed."""
        self._ledger.begin(user)
        spent = 0.0
        try:
            async with self._one:
                before = _children_cpu()
                try:
                    answer = await self._process(Task(work, self.limits.cpu_seconds, self.limits.memory))
                finally:
                    spent = _children_cpu() - before
        finally:
            self._ledger.end(spent)
            self.cpu_seconds += spent
        if answer.result is None:
            raise RequestError(answer.status, _CODES.get(answer.status, "Failed"), answer.error)
        return answer.result

    async def _process(self, task: Task) -> Answer:
        pipe = asyncio.subprocess.PIPE
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        process = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        try:
            async with asyncio.timeout(WAIT_FACTOR * task.cpu_seconds):
                out, said = await process.communicate(msgspec.json.encode(task, enc_hook=str))
        except TimeoutError:
            raise RequestError(503, "Unavailable", "it took too long and was ended") from None
        finally:
            if process.returncode is None:  # the viewer went away, or the time is over
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode != 0:
            if process.returncode is not None and process.returncode < 0:
                raise RequestError(503, "Unavailable", f"it took more than {task.cpu_seconds} CPU seconds and was ended")
            lines = said.decode(errors="replace").strip().splitlines()
            raise RequestError(500, "InternalError", f"the working process failed: {lines[-1] if lines else process.returncode}")
        return msgspec.json.decode(out, type=Answer)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
