"""What has to happen before a binding: volumes are bound, devices are allocated. Most pods need neither.

A step reads the cycle that decided (`plan`) and assumes what it chose. It carries that out for one bind (`prepare`), and undoes it
if the pod is not bound after all (`undo`), also if the bind never started. Preparation is the one place where a bind has a task of
its own: it may wait for minutes for another controller.

A binding cannot be undone, and most failures happen here, for example a volume that is never created. So the members of a gang that
has not started are bound when all of them are prepared, or none is. If some members are already bound (by a scheduler that crashed,
or because a binding was refused), the others are prepared while the gang's time-out runs (see `half_bound_gangs`), as long as that
advances.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cycle import Cycle

log = logging.getLogger(__name__)


class PreparationFailed(Exception):
    """The pod cannot be bound now; the message says why."""


class Step(Protocol):
    def plan(self, cycle: Cycle) -> None:
        """Remember and assume what the binds of this cycle need."""

    def wants(self, uid: str) -> bool: ...

    async def prepare(self, bind: AssumedBind) -> None:
        """Return when the binding may be written; raise PreparationFailed if it may not."""

    async def undo(self, bind: AssumedBind) -> None:
        """Undo what was assumed and done for this bind."""

    def done(self, bind: AssumedBind) -> None:
        """The pod is bound: nothing will be undone."""


class _Gang:
    """Members that one cycle decided to bind, and those that are not prepared yet."""

    def __init__(self) -> None:
        self.members: list[tuple[AssumedBind, Callable[[], None]]] = []
        self.preparing: dict[str, asyncio.Task[None]] = {}

    def bind(self) -> None:
        for _, go in self.members:
            go()


class Preparations:
    """`failed(bind, why)` ends the bind, which leads to `ended`. `is_starting(job)`: whether it is a gang that has not started."""

    def __init__(
        self, steps: Sequence[Step], failed: Callable[[AssumedBind, str], None], is_starting: Callable[[str], bool] = lambda job: False
    ) -> None:
        self._steps = steps
        self._failed = failed
        self._is_starting = is_starting
        self._tasks: set[asyncio.Task[None]] = set()
        self._undoing: dict[str, set[asyncio.Task[None]]] = {}
        """uid -> what is still being undone for an earlier bind of the pod."""
        self._begun: set[str] = set()
        self._under_way: dict[str, dict[asyncio.Task[None], tuple[AssumedBind, _Gang | None]]] = {}
        """Job -> what is being prepared for its pods."""
        self._advanced: dict[str, float] = {}
        """Job -> when its preparation last advanced."""
        self._gangs: dict[str, _Gang] = {}
        """Job -> its members in the cycle that is being committed, if they have to wait for each other."""

    def __len__(self) -> int:
        return len(self._tasks)

    def plan(self, cycle: Cycle) -> None:
        if not cycle.record.binds:
            return
        self._begun.clear()
        for step in self._steps:
            step.plan(cycle)
        waiting = {decided.job for decided in cycle.record.binds if any(step.wants(decided.uid) for step in self._steps)}
        self._gangs = {job: _Gang() for job in waiting if self._is_starting(job)}
        # The cycle is committed before the event loop runs anything else, or it failed.
        asyncio.get_running_loop().call_soon(self._committed, cycle)

    def _committed(self, cycle: Cycle) -> None:
        """Some binds may have been planned and not carried out. What was assumed for them is undone, and gang members that would wait
        for them are bound."""
        gangs, self._gangs = self._gangs, {}
        for gang in gangs.values():
            if not gang.preparing:
                gang.bind()
        for decided in cycle.record.binds:
            if decided.uid not in self._begun:
                namespace, _, name = decided.pod.partition("/")
                self.ended(AssumedBind(decided.uid, namespace, name, decided.node, decided.job, 0.0), bound=False)

    def when_prepared(self, bind: AssumedBind, go: Callable[[], None]) -> None:
        """Call `go` now, or when this bind and the others of its gang are prepared."""
        self._begun.add(bind.uid)
        wanted = [step for step in self._steps if step.wants(bind.uid)]
        gang = self._gangs.get(bind.job)
        if gang is not None:
            gang.members.append((bind, go))
        elif not wanted:
            go()
        if wanted:
            task = asyncio.get_running_loop().create_task(self._prepare(wanted, bind, go, gang))
            if gang is not None:
                gang.preparing[bind.uid] = task
            self._under_way.setdefault(bind.job, {})[task] = bind, gang
            task.add_done_callback(partial(self._prepared, bind.job))
            self._keep(task)

    def _prepared(self, job: str, task: asyncio.Task[None]) -> None:
        works = self._under_way[job]
        del works[task]
        if not works:
            del self._under_way[job]
            self._advanced.pop(job, None)

    def progress(self, bind: AssumedBind) -> None:
        """The preparation for this bind advanced."""
        if bind.job in self._under_way:
            self._advanced[bind.job] = asyncio.get_running_loop().time()

    def advanced_at(self, job: str) -> float | None:
        """When the preparation for the job last advanced, on the event loop's clock; None: nothing is being prepared for it."""
        return self._advanced.get(job, float("-inf")) if job in self._under_way else None

    def give_up(self, job: str, why: str) -> None:
        """Prepare nothing more for the pods of this job that are not bound."""
        works = self._under_way.get(job)
        if works:
            self._keep(asyncio.get_running_loop().create_task(self._abandon(dict(works), why)))

    async def _abandon(self, works: dict[asyncio.Task[None], tuple[AssumedBind, _Gang | None]], why: str) -> None:
        for task in works:
            task.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        given_up: dict[str, AssumedBind] = {}
        for task, (bind, gang) in works.items():
            if task.cancelled():  # otherwise it ended before it was cancelled
                members = [bind] if gang is None else [member for member, _ in gang.members]
                given_up |= {member.uid: member for member in members}
        for bind in given_up.values():
            self._failed(bind, why)

    def ended(self, bind: AssumedBind, *, bound: bool) -> None:
        """The bind has its outcome."""
        for step in self._steps:
            if step.wants(bind.uid):
                if bound:
                    step.done(bind)
                else:
                    task = asyncio.get_running_loop().create_task(self._undo(step, bind))
                    self._undoing.setdefault(bind.uid, set()).add(task)
                    task.add_done_callback(partial(self._undone, bind.uid))
                    self._keep(task)

    async def _prepare(self, steps: Sequence[Step], bind: AssumedBind, go: Callable[[], None], gang: _Gang | None) -> None:
        if bind.uid in self._undoing:
            # Otherwise what is prepared now would be undone together with the earlier preparation.
            await asyncio.wait(self._undoing[bind.uid])
        try:
            for step in steps:
                await step.prepare(bind)
                self.progress(bind)
        except PreparationFailed as error:
            fields = {"pod": f"{bind.namespace}/{bind.name}", "node": bind.node, "job": bind.job, "reason": "PreparationFailed"}
            log.warning("%s/%s cannot be bound to %s: %s", bind.namespace, bind.name, bind.node, error, extra=fields)
            await self._give_up(bind, str(error), gang)
        except Exception as error:
            # Whatever the error is, the pod must not stay assumed while nothing works on it.
            log.exception("%s/%s cannot be bound to %s", bind.namespace, bind.name, bind.node)
            await self._give_up(bind, f"{type(error).__name__}: {error}", gang)
        else:
            if gang is None:
                go()
            elif gang.preparing.pop(bind.uid, None) is not None and not gang.preparing:
                gang.bind()

    async def _give_up(self, bind: AssumedBind, why: str, gang: _Gang | None) -> None:
        """While one member is being prepared, no member is bound: all of them fail."""
        if gang is None:
            self._failed(bind, why)
            return
        if gang.preparing.pop(bind.uid, None) is None:
            return  # another member failed first
        others, gang.preparing = list(gang.preparing.values()), {}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for member, _ in gang.members:
            self._failed(member, why if member is bind else f"{bind.name} of the same gang cannot be bound: {why}")

    async def _undo(self, step: Step, bind: AssumedBind) -> None:
        try:
            await step.undo(bind)
        except Exception:
            # No task awaits this. The error is logged here, and the other steps are undone all the same.
            log.exception("%s/%s is not bound to %s; what was prepared for it was not undone", bind.namespace, bind.name, bind.node)

    def _undone(self, uid: str, task: asyncio.Task[None]) -> None:
        self._undoing[uid].discard(task)
        if not self._undoing[uid]:
            del self._undoing[uid]

    async def close(self) -> None:
        """Stop preparing without undoing anything: the next scheduler continues from there."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
