"""A binder and a live core in which one pod is being bound, without a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from tests.worlds.live_parts.cluster_cache import SETTINGS, pod, put
from tests.worlds.live_parts.fake_pool import Submitted

from navarch.kube.client import Client
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.core import LiveCore
from navarch.live.instructions import BindResult, EndBind, Instruction
from navarch.live.writers.bind_requests import BindRequests
from navarch.live.writers.binder import Binder, OutcomeLookup
from navarch.model.status import TaskStatus


class Ends:
    """How binds ended, and what was asked for."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.announced: list[str] = []

    def ask(self, bind: AssumedBind, delay: float) -> None:
        self.heard.append(f"ask after {delay:g}")

    def emit(self, instruction: Instruction) -> None:
        if isinstance(instruction, EndBind):
            self.heard.append("bound" if instruction.result is BindResult.BOUND else instruction.result.value)
            if instruction.announce:
                self.announced.append(instruction.bind.name)


class Scene:
    """A binder and a core in which the pod `a` is being bound. `served`: KAI's BindRequests are used, and whether they are served."""

    def __init__(self, resync: Callable[[LiveCore], OutcomeLookup] | None = None, served: bool | None = None) -> None:
        self.ends = Ends()
        self.core = LiveCore(SETTINGS, self.ends.emit)
        self.cache = self.core.cache
        self.submitted = Submitted()
        requests = None
        if served is not None:
            requests = BindRequests(cast(Client, None), self.cache, lambda: served, enabled=True)
        self.binder = Binder(self.submitted.pool, self.core, resync(self.core) if resync else self.ends, requests=requests)
        put(self.cache, pod("a"))
        self.bind = self.assume("a")
        self.binder.bind(self.bind)

    def assume(self, name: str, job: str = "") -> AssumedBind:
        bind = AssumedBind(f"uid-{name}", "default", name, "n1", job or f"default/pod/{name}", 0.0)
        self.core.assumed.binds[bind.uid] = bind
        self.cache.refresh(bind.uid)
        return bind


def scene() -> tuple[LiveCore, ClusterCache, Submitted, Ends, AssumedBind]:
    made = Scene()
    return made.core, made.cache, made.submitted, made.ends, made.bind


def status(made: ClusterCache) -> TaskStatus:
    task = made.cluster.task("uid-a")
    assert task is not None
    return task.status
