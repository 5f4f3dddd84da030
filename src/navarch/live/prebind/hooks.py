"""The bind hooks of plugins as a step of preparation (`engine/points/bind_hooks.py`).

Hooks are called in policy order, one after the other for a pod, with a time-out each. What a hook raises costs the pod its place and
nothing else. `undo` is called in the reverse order for every hook whose `pre_bind` had begun.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any

from navarch.engine.arguments import Arguments
from navarch.engine.points.bind_hooks import BindHooks, Placement, Refused
from navarch.engine.policy import Policy
from navarch.engine.record import Bind
from navarch.engine.registry import Registry
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cycle import Cycle
from navarch.live.prebind.preparation import PreparationFailed
from navarch.model.cluster import Cluster

log = logging.getLogger(__name__)

CLOSING = 5.0
"""Seconds that a scheduler which ends waits for calls of `post_bind`."""


class _Hook:
    """The live side of one plugin of the policy."""

    def __init__(self, name: str, hooks: BindHooks) -> None:
        self.name = name
        self.hooks = hooks
        self.slots = asyncio.Semaphore(max(1, type(hooks).at_once))


class _Prepared:
    """A pod with the hooks that want it, and those whose `pre_bind` has begun."""

    def __init__(self, placement: Placement, hooks: list[_Hook]) -> None:
        self.placement = placement
        self.hooks = hooks
        self.begun: list[_Hook] = []
        self.earlier: list[_Prepared] = []
        """Earlier decisions about the same pod that are still to be undone."""


class HookFailed(Exception):
    """What went wrong in a hook, in a sentence."""


class Hooks:
    """A `Step` of `Preparations`. `cluster` gives the cluster of the cache, `registry` the plugins that are installed. `note_job` gets
    the key of each job that a hook begins to work on, and an empty text when the hook waits or ends."""

    def __init__(
        self,
        client: Any,
        cluster: Callable[[], Cluster],
        registry: Callable[[], Registry],
        note_job: Callable[[str], None] | None = None,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._registry = registry
        self._note_job = note_job
        self._policy: Policy | None = None
        self._hooks: list[_Hook] = []
        self._pods: dict[str, _Prepared] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # a step of preparation

    def plan(self, cycle: Cycle) -> None:
        hooks = self._of(cycle.policy)
        if not hooks:
            return
        gangs: dict[str, dict[str, str]] = {}
        for bind in cycle.record.binds:
            gangs.setdefault(bind.job, {})[bind.pod] = bind.node
        for bind in cycle.record.binds:
            placement = self._placement(bind, gangs[bind.job])
            wanting = [hook for hook in hooks if placement is not None and self._wants(hook, placement)]
            if placement is not None and wanting:
                prepared, known = _Prepared(placement, wanting), self._pods.get(bind.uid)
                if known is not None:
                    prepared.earlier = [*known.earlier, known]
                self._pods[bind.uid] = prepared

    def wants(self, uid: str) -> bool:
        return uid in self._pods

    async def prepare(self, bind: AssumedBind) -> None:
        prepared = self._pods.get(bind.uid)
        if prepared is None:
            raise PreparationFailed("its hooks were taken back")
        for hook in prepared.hooks:
            async with hook.slots:
                prepared.begun.append(hook)
                try:
                    call = hook.hooks.pre_bind(prepared.placement)
                    await _call(hook, "pre_bind", self._noted(call, prepared.placement))
                except HookFailed as failed:
                    raise PreparationFailed(str(failed)) from None

    async def undo(self, bind: AssumedBind) -> None:
        """Of several decisions about a pod, the oldest is undone first."""
        prepared = self._pods.get(bind.uid)
        if prepared is None:
            return
        if prepared.earlier:
            prepared = prepared.earlier.pop(0)
        else:
            del self._pods[bind.uid]
        for hook in reversed(prepared.begun):
            await self._tell(hook, "undo", hook.hooks.undo(prepared.placement), prepared.placement)

    def done(self, bind: AssumedBind) -> None:
        prepared = self._pods.pop(bind.uid, None)
        if prepared is not None:
            task = asyncio.get_running_loop().create_task(self._post_bind(prepared))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _post_bind(self, prepared: _Prepared) -> None:
        for hook in prepared.hooks:
            await self._tell(hook, "post_bind", hook.hooks.post_bind(prepared.placement), prepared.placement)

    async def _tell(self, hook: _Hook, method: str, call: Awaitable[None], placement: Placement) -> None:
        """A call whose failure changes nothing."""
        try:
            await _call(hook, method, self._noted(call, placement))
        except HookFailed as failed:
            log.warning("%s on %s: %s", placement.pod, placement.node, failed)

    def _wants(self, hook: _Hook, placement: Placement) -> bool:
        if self._note_job is None:
            return _wants(hook, placement)
        self._note_job(placement.job)
        try:
            return _wants(hook, placement)
        finally:
            self._note_job("")

    def _noted(self, call: Awaitable[None], placement: Placement) -> Awaitable[None]:
        return call if self._note_job is None else _Noted(call, placement.job, self._note_job)

    async def close(self) -> None:
        """Wait a little for what is told, then end the hooks."""
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSING)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._end(self._hooks)
        self._hooks, self._policy = [], None

    # the hooks of a policy

    def _of(self, policy: Policy) -> list[_Hook]:
        """The hooks of the plugins that the policy names. Made again when another policy is loaded."""
        if policy is not self._policy:
            old, self._hooks, self._policy = self._hooks, self._made(policy), policy
            if old:
                task = asyncio.get_running_loop().create_task(self._end(old))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        return self._hooks

    def _made(self, policy: Policy) -> list[_Hook]:
        found: list[_Hook] = []
        for option in policy.plugins:
            kind = self._registry().plugin(option.name, policy.dialect)
            if kind is None or kind.live is None:
                continue
            try:
                hooks = kind.live(Arguments(kind.arguments, option.arguments), self._client)
            except Exception as error:
                # Pods of other policies and the other hooks go on. Pods that need this one are refused with its error.
                log.exception("plugin %s: its hooks cannot be made", option.name)
                hooks = _Unusable(f"{type(error).__name__}: {error}")
            found.append(_Hook(option.name, hooks))
        return found

    async def _end(self, hooks: list[_Hook]) -> None:
        for hook in hooks:
            try:
                await _call(hook, "close", hook.hooks.close())
            except HookFailed as failed:
                log.warning("%s", failed)

    def _placement(self, bind: Bind, gang: dict[str, str]) -> Placement | None:
        task = self._cluster().task(bind.uid)
        if task is None:
            return None
        requests = dict(task.shape.requests)
        return Placement(
            task.namespace, task.name, task.uid, bind.node, bind.job, dict(task.labels), dict(task.annotations), requests, gang
        )


class _Noted(Awaitable[None]):
    """A call of a hook that notes its job whenever the hook runs. While the hook waits, others run."""

    def __init__(self, call: Awaitable[None], job: str, note_job: Callable[[str], None]) -> None:
        self._call, self._job, self._note_job = call, job, note_job

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._call.__await__()
        step: Callable[[], Any] = partial(steps.send, None)
        while True:
            self._note_job(self._job)
            try:
                waits_for = step()
            except StopIteration:
                return
            finally:
                self._note_job("")
            try:
                step = partial(steps.send, (yield waits_for))
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                step = partial(steps.throw, error)  # a time-out or a cancellation is for the hook to see


class _Unusable(BindHooks):
    """Stands for hooks that could not be made: their pods are not bound, because it is not known whether they may be."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def pre_bind(self, placement: Placement) -> None:
        raise Refused(f"its hooks cannot be made: {self._why}")


def _wants(hook: _Hook, placement: Placement) -> bool:
    """A hook whose `wants` raises is called, and may fail then."""
    try:
        return bool(hook.hooks.wants(placement))
    except Exception:
        # The binding goes on, and the hook decides when it is called.
        log.exception("plugin %s: wants failed on %s", hook.name, placement.pod)
        return True


async def _call(hook: _Hook, method: str, call: Awaitable[None]) -> None:
    """Await a hook. Raises HookFailed; a cancellation from outside goes through."""
    limit = type(hook.hooks).timeout
    try:
        async with asyncio.timeout(limit):
            await call
    except TimeoutError:
        raise HookFailed(f"plugin {hook.name}: {method} took longer than {limit:g} s") from None
    except Refused as refused:
        raise HookFailed(f"plugin {hook.name} refuses: {refused}") from None
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        raise HookFailed(f"plugin {hook.name}: {method} was cancelled") from None
    except (Exception, SystemExit) as error:  # a hook that calls sys.exit is no reason to end the process
        log.debug("plugin %s: %s failed", hook.name, method, exc_info=True)
        raise HookFailed(f"plugin {hook.name}: {method} failed: {type(error).__name__}: {error}") from None
