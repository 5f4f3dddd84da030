"""A binder with a pool without a wire."""

from __future__ import annotations

from tests.worlds.live_parts.cluster_cache import cache, pod, put
from tests.worlds.live_parts.fake_pool import Submitted

from navarch.live.cache.assumed_pods import AssumedBind, AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.binder import Binder, BindHooks
from navarch.live.writers.events import Events
from navarch.model.status import TaskStatus


class Ends:
    """What the hooks heard, and what was asked for."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.told = Submitted()

    def ask(self, bind: AssumedBind, delay: float) -> None:
        self.heard.append(f"ask after {delay:g}")

    def hooks(self) -> BindHooks:
        return BindHooks(
            bound=lambda bind: self.heard.append("bound"),
            failed=lambda bind, why: self.heard.append("failed"),
            dropped=lambda bind: self.heard.append("dropped"),
        )


def scene() -> tuple[Binder, ClusterCache, Submitted, Ends, AssumedBind]:
    assumed = AssumedPods()
    made, _ = cache(assumed)
    put(made, pod("a"))
    submitted, ends = Submitted(), Ends()
    binder = Binder(submitted.pool, made, assumed, Events(ends.told.pool), ends.hooks())
    binder.resync = ends
    bind = assumed.binds["uid-a"] = AssumedBind("uid-a", "default", "a", "n1", "default/pod/a", 0.0)
    made.refresh("uid-a")
    binder.bind(bind)
    return binder, made, submitted, ends, bind


def status(made: ClusterCache) -> TaskStatus:
    task = made.cluster.task("uid-a")
    assert task is not None
    return task.status
