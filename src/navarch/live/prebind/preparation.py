"""What has to be done before a binding: volumes bound, devices allocated. Most pods need nothing and pass straight through.

A step looks at the cycle that decided (`plan`), assumes what it promised there, carries it out for one bind (`prepare`), and
takes it back if the pod is not bound after all (`undo`), also where the bind was never begun. Preparation is the one place where
a bind gets a task of its own: it may wait for minutes for somebody else's controller.

A binding cannot be taken back, and what goes wrong goes wrong here: a volume that nobody makes. So the members of a gang that does not
stand yet are bound when all of them are prepared, or none is. Where some of it are bound already (it was begun by a scheduler that
died, or a binding was refused) the others are prepared while the gang's time runs (see `gangs`), which asks whether that gets on.
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
        """Note, and assume, what this cycle's binds promise."""

    def wants(self, uid: str) -> bool: ...

    async def prepare(self, bind: AssumedBind) -> None:
        """Return when the binding may be written; raise PreparationFailed if it may not."""

    async def undo(self, bind: AssumedBind) -> None:
        """Take back what was promised and done for this bind."""

    def done(self, bind: AssumedBind) -> None:
        """The pod is bound: nothing will be taken back."""


class _Gang:
    """Members that one cycle decided to bind, and those of them that are not prepared yet."""

    def __init__(self) -> None:
        self.members: list[tuple[AssumedBind, Callable[[], None]]] = []
        self.preparing: dict[str, asyncio.Task[None]] = {}

    def bind(self) -> None:
        for _, go in self.members:
            go()


class Preparations:
    """`failed(bind, why)` forgets the bind, and by that leads to `ended`. `starts(job)`: it is a gang that does not stand yet."""

    def __init__(
        self, steps: Sequence[Step], failed: Callable[[AssumedBind, str], None], is_starting: Callable[[str], bool] = lambda job: False
    ) -> None:
        self._steps = steps
        self._failed = failed
        self._is_starting = is_starting
        self._tasks: set[asyncio.Task[None]] = set()
        self._undoing: dict[str, set[asyncio.Task[None]]] = {}
        """uid -> what of an earlier bind of the pod is still being taken back."""
        self._begun: set[str] = set()
        self._under_way: dict[str, dict[asyncio.Task[None], tuple[AssumedBind, _Gang | None]]] = {}
        """Job -> what is being prepared for its pods."""
        self._advanced: dict[str, float] = {}
        """Job of which something is being prepared -> when a part of that was last done."""
        self._gangs: dict[str, _Gang] = {}
        """Job -> its members in the cycle that is being committed, where they have to wait for each other."""

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
        # The cycle is committed before the loop runs anything else, or it failed.
        asyncio.get_running_loop().call_soon(self._committed, cycle)

    def _committed(self, cycle: Cycle) -> None:
        """Binds that were planned for and not carried out: what was promised to them would stay promised for ever, and who was to be
        bound with them would wait for ever."""
        gangs, self._gangs = self._gangs, {}
        for gang in gangs.values():
            if not gang.preparing:
                gang.bind()
        for decided in cycle.record.binds:
            if decided.uid not in self._begun:
                namespace, _, name = decided.pod.partition("/")
                self.ended(AssumedBind(decided.uid, namespace, name, decided.node, decided.job, 0.0), bound=False)

    def before(self, bind: AssumedBind, go: Callable[[], None]) -> None:
        """Call `go` now, or when everything is prepared: for this bind, and for the others of its gang."""
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
        """A part of what is being prepared for this bind is done."""
        if bind.job in self._under_way:
            self._advanced[bind.job] = asyncio.get_running_loop().time()

    def advanced_at(self, job: str) -> float | None:
        """When a part of what is being prepared for the job's pods was last done, by the event loop's time; None: nothing is being
        prepared for it."""
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
            if task.cancelled():  # else it was prepared, or had failed, before it heard of this
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
            # Or what is prepared now would be taken back together with what was prepared before.
            await asyncio.wait(self._undoing[bind.uid])
        try:
            for step in steps:
                await step.prepare(bind)
                self.progress(bind)
        except PreparationFailed as error:
            log.warning("%s/%s cannot be bound to %s: %s", bind.namespace, bind.name, bind.node, error)
            await self._give_up(bind, str(error), gang)
        except Exception as error:
            # Whatever it is, the pod must not stay promised to a node with nobody at work on it.
            log.exception("%s/%s cannot be bound to %s", bind.namespace, bind.name, bind.node)
            await self._give_up(bind, f"{type(error).__name__}: {error}", gang)
        else:
            if gang is None:
                go()
            elif gang.preparing.pop(bind.uid, None) is not None and not gang.preparing:
                gang.bind()

    async def _give_up(self, bind: AssumedBind, why: str, gang: _Gang | None) -> None:
        """Nothing of a gang has been bound as long as one member is being prepared: all of them are given up."""
        if gang is None:
            self._failed(bind, why)
            return
        if gang.preparing.pop(bind.uid, None) is None:
            return  # another was quicker to fail
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
