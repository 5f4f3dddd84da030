"""Keeps the long-running tasks of the scheduler running: what one of them raises ends neither the process nor another task.

    supervised = SupervisedTasks(metrics.task_failures)
    asyncio.create_task(supervised.run("resync", resync.run))    # started again with back-off whenever it raises
    with supervised.contained("default queue"):                  # one step of a periodic task; the steps after it run all the same
        check_default_queue()

Every failure is counted. The traceback is logged once for each place that fails. /readyz tells which tasks fail at the moment.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb

from msgspec import Struct
from prometheus_client import Counter

from navarch.kube.backoff import Backoff
from navarch.kube.supervision import Work

log = logging.getLogger(__name__)

LASTING = 30.0
"""Seconds without a failure after which a task counts as healthy, and its next restart as the first."""
INITIAL_BACKOFF, MAX_BACKOFF = 0.5, 30.0
REMEMBERED = 256
"""Failures whose traceback is not logged again. The oldest is forgotten first."""


class _Failing(Struct):
    failures: int
    """In a row."""
    error: str
    last: float


class SupervisedTasks:
    """`counter` has the label `task`. Names of tasks are fixed: they are labels."""

    def __init__(self, counter: Counter, rng: random.Random | None = None) -> None:
        self._counter = counter
        self._rng = rng
        self._failing: dict[str, _Failing] = {}
        self._logged: dict[tuple[str, str], None] = {}

    async def run(self, name: str, work: Work) -> None:
        """Run `work()` until it returns or is cancelled. When it raises, start it again, unless it raised because it was cancelled."""
        backoff = Backoff(first=INITIAL_BACKOFF, cap=MAX_BACKOFF, rng=self._rng)
        while True:
            started = _now()
            try:
                await work()
                return
            except Exception as error:
                # A task that ends takes with it what only it does: watching, leading, renewing statuses.
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    self._report(name, error, "it was being stopped")
                    raise asyncio.CancelledError from error
                if _now() - started >= LASTING:
                    backoff.reset()
                wait = backoff.next()
                self._report(name, error, f"it starts again in {wait:.1f} s")
            await asyncio.sleep(wait)

    @contextmanager
    def contained(self, name: str) -> Iterator[None]:
        """What the body raises is reported and goes no further."""
        try:
            yield
        except Exception as error:
            # The steps after this one have nothing to do with it.
            self._report(name, error, "it is tried again")

    def notes(self) -> list[str]:
        """For /readyz, which everyone may read: the kind of error, without names of objects."""
        now = _now()
        self._failing = {name: each for name, each in self._failing.items() if now - each.last < LASTING + MAX_BACKOFF}
        return [
            f"{name} failed {each.failures} time{'s' if each.failures > 1 else ''} in a row: {each.error}"
            for name, each in sorted(self._failing.items())
        ]

    def _report(self, name: str, error: Exception, then: str) -> None:
        now, before = _now(), self._failing.get(name)
        failures = before.failures + 1 if before is not None and now - before.last < LASTING + MAX_BACKOFF else 1
        self._failing[name] = _Failing(failures, type(error).__name__, now)
        self._counter.labels(name).inc()
        known = name, _place(error)
        if known in self._logged:
            log.debug("%s failed again: %s: %s; %s", name, type(error).__name__, error, then)
            return
        self._logged[known] = None
        if len(self._logged) > REMEMBERED:
            del self._logged[next(iter(self._logged))]
        log.error("%s failed; %s", name, then, exc_info=error)


def _place(error: Exception) -> str:
    """The kind of error and the line that raised it. The message may name another object each time."""
    frames = list(walk_tb(error.__traceback__))
    where = f"{frames[-1][0].f_code.co_filename}:{frames[-1][1]}" if frames else ""
    return f"{type(error).__name__} at {where}"


def _now() -> float:
    return asyncio.get_running_loop().time()
