"""The server's own controllers, driven by the store's events: garbage, namespaces, budgets, node taints, old events.

Each notes an event at once (cheap: tables only) and reacts when the loop comes round, so that a write never waits for what it
sets off, and reactions see the latest state. A reaction that fails is logged and does not stop the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Protocol

from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.disruption import Budgets
from navarch.embedded.controllers.garbage import Garbage
from navarch.embedded.controllers.namespaces import Namespaces
from navarch.embedded.controllers.node_taints import NodeTaints
from navarch.embedded.controllers.protection import Protection
from navarch.embedded.storage.record import Event
from navarch.embedded.storage.store import timestamp

log = logging.getLogger(__name__)
EVENT_LIFETIME = 3600.0
SWEEP_SECONDS = 60.0
COMPACT_SECONDS = 300.0
AT_ONCE = 200
"""Reactions in one turn of the loop; requests are served between turns."""


class Keeper(Protocol):
    """One controller."""

    def load(self) -> None:
        """Learn what a restored store holds."""

    def note(self, event: Event) -> bool:
        """Called for each event as it happens; True if `react` is to be called for it."""

    def react(self, event: Event) -> None:
        """Called later, in order."""


class Housekeeping:
    """Runs the keepers on the event loop."""

    def __init__(self, operations: Operations, node_taints: bool = True) -> None:
        self._operations = operations
        self._store = operations.store
        self._keepers: list[Keeper] = [
            Garbage(operations),
            Namespaces(operations),
            Budgets(operations),
            Protection(operations),
        ]
        if node_taints:
            self._keepers.append(NodeTaints(operations))
        self._work: deque[tuple[Keeper, Event]] = deque()
        self._scheduled = False
        self._tasks: list[asyncio.Task[None]] = []
        self._idle = asyncio.Event()
        self._idle.set()

    def start(self) -> None:
        """Load and follow; call it on the loop."""
        for keeper in self._keepers:
            keeper.load()
        self._store.observe(self._note)
        self._tasks = [asyncio.create_task(self._sweep()), asyncio.create_task(self._compact())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._work.clear()

    async def idle(self) -> None:
        """Return when there is nothing left to react to."""
        await self._idle.wait()

    def _note(self, event: Event) -> None:
        for keeper in self._keepers:
            if keeper.note(event):
                self._work.append((keeper, event))
        if self._work and not self._scheduled:
            self._scheduled = True
            self._idle.clear()
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        for _ in range(AT_ONCE):
            if not self._work:
                break
            keeper, event = self._work.popleft()
            try:
                keeper.react(event)
            except Exception:
                # One event that a keeper fails on must not keep the events behind it from being worked on.
                log.exception("%s could not react to %s %r", type(keeper).__name__, event.type, event.record)
        self._scheduled = bool(self._work)
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._turn)
        else:
            self._idle.set()

    async def _sweep(self) -> None:
        """Events live an hour."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            oldest = timestamp(self._store.clock() - EVENT_LIFETIME)
            for record in self._store.list("events"):
                metadata = record.obj["metadata"]
                last = record.obj.get("lastTimestamp") or metadata.get("creationTimestamp") or ""
                if max(last, metadata.get("creationTimestamp") or "") < oldest:
                    self._store.delete("events", record.namespace, record.name)

    async def _compact(self) -> None:
        """Every five minutes the log forgets what is older than that."""
        before = 0
        while True:
            await asyncio.sleep(COMPACT_SECONDS)
            if before:
                self._store.compact(before)
            before = self._store.revision
