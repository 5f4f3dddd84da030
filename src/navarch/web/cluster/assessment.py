"""What only a session knows: shares of queues, places of waiting jobs, and what is free and of no use.

One session over a snapshot gives all three. It costs more than rows of jobs and nodes do, so it is made less often (`Assessor`): it
runs in a thread beside the event loop, and its pauses are so long that it takes a small part of a core.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np

from navarch.engine.close import queue_figures
from navarch.engine.policy import Policy
from navarch.engine.record import QueueFigures
from navarch.engine.registry import Registry
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.resources import IntArray
from navarch.model.snapshot import Snapshot
from navarch.views.prospects import Prospect, prospects_in
from navarch.views.useless_room import useless_room

PART: Final = 0.005
"""The part of a core that assessments may take."""
LONGEST: Final = 30.0
"""Seconds between two assessments at most, while things change."""
T = TypeVar("T")


def _nothing() -> IntArray:
    return np.zeros((0, 0), dtype=np.int64)


@dataclass(frozen=True)
class Assessment:
    queues: list[QueueFigures] = field(default_factory=list)
    prospects: Mapping[str, Prospect] = field(default_factory=dict)
    resources: tuple[str, ...] = ()
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Name of a node -> its column in `useless`."""
    useless: IntArray = field(default_factory=_nothing)
    """(resources, nodes), in the units of the model."""
    seconds: float = 0.0
    """CPU that it took."""


def opened(snapshot: Snapshot, policy: Policy, registry: Registry, now: float) -> Session:
    """A session that no action has changed."""
    session = Session(snapshot, policy, registry, now)
    registry.make_actions(session)
    return session


def assess(snapshot: Snapshot, policy: Policy, registry: Registry, now: float) -> Assessment:
    started = time.thread_time()
    session = opened(snapshot, policy, registry, now)
    try:
        return Assessment(
            queues=queue_figures(session),
            prospects=prospects_in(session),
            resources=snapshot.resource_names,
            nodes={name: column for column, name in enumerate(session.nodes.names)},
            useless=useless_room(session),
            seconds=time.thread_time() - started,
        )
    finally:
        session.dissolve()


class Assessor:
    """Sessions over one cluster, one at a time: they share what the model remembers between sessions."""

    def __init__(
        self,
        cluster: Cluster,
        flush: Callable[[], None],
        policy: Policy,
        registry: Registry,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`flush` brings the cluster up to date."""
        self.cluster, self.policy, self.registry = cluster, policy, registry
        self._flush = flush
        self._clock = clock
        self._lock = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="assessment")
        self._last: Snapshot | None = None

    async def assess(self) -> Assessment:
        return await self.run(lambda snapshot: assess(snapshot, self.policy, self.registry, self._clock()))

    async def run(self, work: Callable[[Snapshot], T]) -> T:
        """Carry out work over a snapshot in the thread. The snapshot is the work's own until it returns."""
        async with self._lock:
            self._flush()
            snapshot = self.cluster.snapshot(self.policy.semantics.node_order, instead_of=self._last)
            self._last = None  # a session that fails may have left it changed
            found = await asyncio.get_running_loop().run_in_executor(self._thread, work, snapshot)
            self._last = snapshot
            return found

    def close(self, *, wait: bool = True) -> None:
        self._thread.shutdown(wait=wait, cancel_futures=True)
