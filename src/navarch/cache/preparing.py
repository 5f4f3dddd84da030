"""What has to be done before a binding: volumes bound, devices allocated. Most pods need nothing and pass straight through.

A step looks at the cycle that decided (`plan`), assumes what it promised there, carries it out for one bind (`prepare`), and
takes it back if the pod is not bound after all (`undo`). Preparation is the one place where a bind gets a task of its own: it
may wait for minutes for somebody else's controller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from navarch.cache.assumed import AssumedBind
from navarch.cache.cycle import Cycle

log = logging.getLogger(__name__)


class PreparationFailed(Exception):
    """The pod cannot be bound now; the message says why."""


class Step(Protocol):
    def plan(self, cycle: Cycle) -> None:
        """Note, and assume, what this cycle's binds promise."""

    def wants(self, bind: AssumedBind) -> bool: ...

    async def prepare(self, bind: AssumedBind) -> None:
        """Return when the binding may be written; raise PreparationFailed if it may not."""

    async def undo(self, bind: AssumedBind) -> None:
        """Take back what was promised and done for this bind. Must not raise."""

    def done(self, bind: AssumedBind) -> None:
        """The pod is bound: nothing will be taken back."""


class Preparations:
    def __init__(self, steps: Sequence[Step], failed: Callable[[AssumedBind, str], None]) -> None:
        self._steps = steps
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def plan(self, cycle: Cycle) -> None:
        if cycle.record.binds:
            for step in self._steps:
                step.plan(cycle)

    def before(self, bind: AssumedBind, go: Callable[[], None]) -> None:
        """Call `go` now, or when everything is prepared."""
        wanted = [step for step in self._steps if step.wants(bind)]
        if not wanted:
            go()
            return
        self._keep(asyncio.get_running_loop().create_task(self._prepare(wanted, bind, go)))

    def ended(self, bind: AssumedBind, *, bound: bool) -> None:
        """The bind has its outcome."""
        for step in self._steps:
            if step.wants(bind):
                if bound:
                    step.done(bind)
                else:
                    self._keep(asyncio.get_running_loop().create_task(step.undo(bind)))

    async def _prepare(self, steps: Sequence[Step], bind: AssumedBind, go: Callable[[], None]) -> None:
        try:
            for step in steps:
                await step.prepare(bind)
        except PreparationFailed as error:
            log.warning("%s/%s cannot be bound to %s: %s", bind.namespace, bind.name, bind.node, error)
            self._failed(bind, str(error))
            self.ended(bind, bound=False)
            return
        go()

    async def close(self) -> None:
        """Give up what is still being prepared, without taking it back: whoever schedules next goes on from there."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
