"""What has to be done before a binding: volumes bound, devices allocated. Most pods need nothing and pass straight through.

A step looks at the cycle that decided (`plan`), assumes what it promised there, carries it out for one bind (`prepare`), and
takes it back if the pod is not bound after all (`undo`), also where the bind was never begun. Preparation is the one place where
a bind gets a task of its own: it may wait for minutes for somebody else's controller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
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
        """Take back what was promised and done for this bind."""

    def done(self, bind: AssumedBind) -> None:
        """The pod is bound: nothing will be taken back."""


class Preparations:
    """`failed(bind, why)` forgets the bind, and by that leads to `ended`."""

    def __init__(self, steps: Sequence[Step], failed: Callable[[AssumedBind, str], None]) -> None:
        self._steps = steps
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()
        self._undoing: dict[str, set[asyncio.Task[None]]] = {}
        """uid -> what of an earlier bind of the pod is still being taken back."""
        self._begun: set[str] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def plan(self, cycle: Cycle) -> None:
        if not cycle.record.binds:
            return
        self._begun.clear()
        for step in self._steps:
            step.plan(cycle)
        # The cycle is committed before the loop runs anything else, or it failed.
        asyncio.get_running_loop().call_soon(self._take_back_unused, cycle)

    def _take_back_unused(self, cycle: Cycle) -> None:
        """Binds that were planned for and not carried out: what was promised to them would stay promised for ever."""
        for decided in cycle.record.binds:
            if decided.uid not in self._begun:
                namespace, _, name = decided.pod.partition("/")
                self.ended(AssumedBind(decided.uid, namespace, name, decided.node, decided.job, 0.0), bound=False)

    def before(self, bind: AssumedBind, go: Callable[[], None]) -> None:
        """Call `go` now, or when everything is prepared."""
        self._begun.add(bind.uid)
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
                    task = asyncio.get_running_loop().create_task(self._undo(step, bind))
                    self._undoing.setdefault(bind.uid, set()).add(task)
                    task.add_done_callback(partial(self._undone, bind.uid))
                    self._keep(task)

    async def _prepare(self, steps: Sequence[Step], bind: AssumedBind, go: Callable[[], None]) -> None:
        if bind.uid in self._undoing:
            # Or what is prepared now would be taken back together with what was prepared before.
            await asyncio.wait(self._undoing[bind.uid])
        try:
            for step in steps:
                await step.prepare(bind)
        except PreparationFailed as error:
            log.warning("%s/%s cannot be bound to %s: %s", bind.namespace, bind.name, bind.node, error)
            self._failed(bind, str(error))
        except Exception as error:
            # Whatever it is, the pod must not stay promised to a node with nobody at work on it.
            log.exception("%s/%s cannot be bound to %s", bind.namespace, bind.name, bind.node)
            self._failed(bind, f"{type(error).__name__}: {error}")
        else:
            go()

    async def _undo(self, step: Step, bind: AssumedBind) -> None:
        try:
            await step.undo(bind)
        except Exception:
            # Nobody awaits this: unheard, the error would be told at exit, and the other steps' undoing must go on all the same.
            log.exception("%s/%s is not bound to %s; what was prepared for it stays", bind.namespace, bind.name, bind.node)

    def _undone(self, uid: str, task: asyncio.Task[None]) -> None:
        self._undoing[uid].discard(task)
        if not self._undoing[uid]:
            del self._undoing[uid]

    async def close(self) -> None:
        """Give up what is still being prepared, without taking it back: whoever schedules next goes on from there."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
