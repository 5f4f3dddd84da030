"""What really happened, by the API server's own account, and whether it may have happened.

A recorder watches pods from before the first one exists. Whatever is done to the scheduler meanwhile, at no moment may
a pod have been on two nodes or a node have held more than it has; and in the end every gang is whole or absent.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable

from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.ingest.pod_reader import PodReader
from navarch.kube.client import Client
from navarch.kube.resources import PODS
from navarch.kube.watch.informer import Informer
from navarch.model.resources import parse_amount
from navarch.model.spec import TaskSpec
from navarch.model.status import IS_TERMINAL


class History:
    """Pods now (`tasks`), all that ever were (`seen`), and every rule that was `broken` on the way: a pod `moved` from node to
    node, or a node was `overfull`, which two schedulers that do not know of each other can bring about."""

    def __init__(self, client: Client, namespace: str, capacity: dict[str, dict[str, str]]) -> None:
        self.tasks: dict[str, TaskSpec] = {}
        self.seen: dict[str, str] = {}
        self.node_of: dict[str, str] = {}
        self.moved: list[str] = []
        self.overfull: list[str] = []
        self.evicted: set[str] = set()
        self._capacity = {
            node: {name: parse_amount(name, amount) for name, amount in figures.items()} for node, figures in capacity.items()
        }
        self._used: dict[str, Counter[str]] = {node: Counter() for node in capacity}
        self._reader = PodReader(Settings())
        self._changed = asyncio.Event()
        self._client = client
        self._informer = Informer(client, PODS, Pod, self, namespace=namespace)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._informer.run())
        await self._informer.wait_for_sync()

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._client.close()

    # what the watch tells

    def added(self, new: Pod, /) -> None:
        task = self._reader.read(new)
        assert task is not None
        self.seen[task.uid] = task.key
        self._take(task)

    def updated(self, old: Pod, new: Pod, /) -> None:
        self.added(new)

    def deleted(self, old: Pod, /) -> None:
        task = self.tasks.pop(old.metadata.uid or "", None)
        if task is not None:
            self._count(task, -1)
            self.evicted.add(task.key)
        self._changed.set()

    def _take(self, task: TaskSpec) -> None:
        before = self.tasks.get(task.uid)
        if before is not None:
            self._count(before, -1)
        earlier = self.node_of.get(task.uid)
        if task.node and earlier and earlier != task.node:
            self.moved.append(f"{task.key} was on {earlier} and then on {task.node}")
        if task.node:
            self.node_of[task.uid] = task.node
        self.tasks[task.uid] = task
        self._count(task, 1)
        self._changed.set()

    def _count(self, task: TaskSpec, sign: int) -> None:
        if not task.node or IS_TERMINAL[task.status] or task.node not in self._used:
            return
        used = self._used[task.node]
        for name, amount in task.shape.requests:
            used[name] += sign * amount
            if sign > 0 and used[name] > self._capacity[task.node].get(name, 0):
                self.overfull.append(f"{task.node} holds {used[name]} of {name} with {task.key}")

    # questions

    @property
    def broken(self) -> list[str]:
        return [*self.moved, *self.overfull]

    def too_full(self) -> list[str]:
        """Nodes that hold more than they have, now."""
        return sorted(
            node
            for node, used in self._used.items()
            if any(amount > self._capacity[node].get(name, 0) for name, amount in used.items())
        )

    def standing(self, stem: str = "") -> list[TaskSpec]:
        """Pods that hold a node, in the order in which they were bound."""
        tasks = (self.tasks.get(uid) for uid in self.node_of)
        return [t for t in tasks if t is not None and t.node and not IS_TERMINAL[t.status] and t.name.startswith(stem)]

    def bound(self, stem: str = "") -> list[str]:
        return sorted(task.key for task in self.tasks.values() if task.node and task.name.startswith(stem))

    def waiting(self, stem: str = "") -> list[str]:
        return sorted(task.key for task in self.tasks.values() if not task.node and task.name.startswith(stem))

    async def change(self) -> None:
        """Wait for the next one."""
        self._changed.clear()
        await self._changed.wait()

    async def until(self, holds: Callable[[], bool], what: str, timeout: float = 120.0) -> None:
        """Wait until something holds; it is asked again after every change."""
        try:
            async with asyncio.timeout(timeout):
                while not holds():
                    await self.change()
        except TimeoutError:
            raise AssertionError(
                f"{what}: not within {timeout:g} s; bound {len(self.bound())}, waiting {self.waiting()[:10]}"
            ) from None

    async def until_bound(self, count: int, stem: str = "", timeout: float = 120.0) -> None:
        await self.until(lambda: len(self.bound(stem)) >= count, f"{count} pods {stem}* bound", timeout)

    def check(self, gangs: Iterable[tuple[str, int]] = (), *, lost: bool = True, rivals: bool = False) -> None:
        """Nothing was broken on the way; gangs (stem of their pods' names, minimum) are whole or absent; no pod vanished; none that
        has its node is told that it waits for one.

        With rivals nodes may have been too full for a while, not in the end; pods that were turned away do not count."""
        assert (self.moved if rivals else self.broken) == []
        assert self.too_full() == []
        untold = [t.key for t in self.tasks.values() if t.node and ("PodScheduled", "False") in (c[:2] for c in t.conditions)]
        assert untold == [], f"pods that have their node and are told that they wait: {untold}"
        for stem, minimum in gangs:
            bound = len(self.standing(stem) if rivals else self.bound(stem))
            assert bound == 0 or bound >= minimum, f"gang {stem}: {bound} of {minimum} bound, waiting {self.waiting(stem)}"
        if lost:
            assert self.evicted == set(), f"pods that were not deleted are gone: {sorted(self.evicted)}"
