"""The order in which BindRequests for one node are written: a request that opens a shared GPU has the node for itself.

KAI's binder reserves a GPU that pods begin to share by a pod of its own, and marks the sharing pod when that one runs. At the start of
every request it removes reservations on the node that no marked pod uses. Up to KAI 0.12 a request that comes in between takes the
reservation of the one before for unused; the binder then deletes the pod that shares the GPU without a reservation, while it runs
("Found pod without reservation, deleting"). So a request that opens a GPU is written when no other request for its node is under way,
and the next one when the watch shows its pod bound, or the request given up and removed.

What is under way is read from the cluster: pods whose request the watch shows, and pods whose request may have been sent. Requests of
other schedulers, and of this one before a restart, are among them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import numpy as np

from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.model.spec import TaskSpec
from navarch.model.status import TaskStatus

Go = Callable[[], object]


class RequestTurns:
    """`clock`: the event loop's unless given."""

    def __init__(self, cache: ClusterCache, clock: Callable[[], float] | None = None) -> None:
        self._cache = cache
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._waiting: dict[str, deque[tuple[AssumedBind, Go]]] = {}
        """Node -> binds that wait for their turn, first come first."""
        self._advanced: dict[str, float] = {}
        """Node with binds that wait -> when the last turn began, or the first of them came."""

    def ask(self, bind: AssumedBind, go: Go) -> None:
        """Call `go` when the request may be written: now, or in a later `look`."""
        self._waiting.setdefault(bind.node, deque()).append((bind, go))
        self._look(bind.node)
        if bind.node in self._waiting:
            self._advanced.setdefault(bind.node, self._clock())

    def look(self) -> None:
        """Let those go on whose turn has come."""
        for node in list(self._waiting):
            self._look(node)

    def advanced_at(self, job: str) -> float | None:
        """If a pod of this job waits for its turn: when a turn on its node last began."""
        nodes = [node for node, waiting in self._waiting.items() if any(bind.job == job for bind, _ in waiting)]
        return max((self._advanced[node] for node in nodes), default=None)

    def give_up(self, job: str) -> list[AssumedBind]:
        """Let no pod of this job wait any more; returns the binds that will not go on."""
        given_up = [bind for waiting in self._waiting.values() for bind, _ in waiting if bind.job == job]
        for node, waiting in self._waiting.items():
            self._waiting[node] = deque((bind, go) for bind, go in waiting if bind.job != job)
        return given_up

    def _look(self, node: str) -> None:
        waiting = self._waiting[node]
        while waiting and self._is_next(*waiting[0]):
            bind, go = waiting.popleft()
            bind.released = True
            self._advanced[node] = self._clock()
            go()
        if not waiting:
            del self._waiting[node]
            self._advanced.pop(node, None)

    def _is_next(self, bind: AssumedBind, go: Go) -> bool:
        """Cost: two comparisons over all tasks."""
        task = self._cache.cluster.task(bind.uid)
        if task is None or self._cache.assumed.binds.get(bind.uid) is not bind:
            return True  # the bind is over: nothing will be written
        there = self._on(bind.node)
        under_way = [each for each in there if self._is_under_way(each)]
        opened = {group for each in there if self._is_bound(each) and is_fraction(each) for group in each.gpu_groups}
        if _opens(task, opened):
            return not under_way
        return not any(_opens(each, opened) for each in under_way)

    def _on(self, node: str) -> list[TaskSpec]:
        cluster = self._cache.cluster
        row = cluster.nodes.rows.of.get(node)
        rows = [] if row is None else np.flatnonzero(cluster.tasks.node[: cluster.tasks.rows.top] == row).tolist()
        return [spec for each in rows if (spec := cluster.tasks.specs[each]) is not None]

    def _is_under_way(self, task: TaskSpec) -> bool:
        """Whether a request for the pod is shown, or may have been sent. A bind that waits here or needs no request is not."""
        bind = self._cache.assumed.binds.get(task.uid)
        return task.status == TaskStatus.BINDING if bind is None else bind.released

    def _is_bound(self, task: TaskSpec) -> bool:
        return task.status != TaskStatus.BINDING and task.uid not in self._cache.assumed.binds


def _opens(task: TaskSpec, opened: set[str]) -> bool:
    """Whether the pod shares a GPU that no bound pod shares. A reservation alone does not count: its pod may be on the way."""
    return is_fraction(task) and not opened.issuperset(task.gpu_groups)


def is_fraction(task: TaskSpec) -> bool:
    """Whether the pod shares GPUs, which needs more than a binding."""
    devices = task.shape.devices
    return devices is not None and bool(devices.fraction or devices.memory)
