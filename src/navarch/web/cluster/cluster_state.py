"""What pages show of the cluster, kept up to date change by change, with a version for each step.

Rows of jobs and nodes follow each change within a second. Shares of queues, places of jobs and useless room come from assessments,
which are made less often (`assessment`). All viewers share one computation.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.views.published_state import UsagePage
from navarch.views.queue_history import STEP_SECONDS, QueueHistory
from navarch.web.cluster.assessment import LONGEST, PART, Assessment, Assessor
from navarch.web.cluster.watched_cluster import WatchedCluster
from navarch.web.stream.change_log import Changed, ChangeLog
from navarch.web.tables.jobs import JobTable, Starts
from navarch.web.tables.nodes import NodeTable
from navarch.web.tables.overview import ClusterTotals
from navarch.web.tables.queues import QueueTable

log = logging.getLogger(__name__)

STEP: Final = 1.0
LOOKS: Final = 5
"""Looks for changes in the time of one step."""


class ClusterState:
    def __init__(
        self,
        watched: WatchedCluster,
        policy: Policy,
        registry: Registry,
        served: frozenset[str] | None,
        clock: Callable[[], float] = time.time,
        step: float = STEP,
    ) -> None:
        """`step`: seconds between two versions at least."""
        self.registry, self.clock = registry, clock
        self._step = step
        self.log = ChangeLog()
        self.queue_history = QueueHistory()
        self._next = asyncio.Event()
        """Set when the next version begins, and replaced."""
        self._begin(watched, policy, served)

    def _begin(self, watched: WatchedCluster, policy: Policy, served: frozenset[str] | None) -> None:
        self.watched, self.policy = watched, policy
        self.assessor = Assessor(watched.cluster, watched.flush, policy, self.registry, self.clock)
        self.assessment = Assessment()
        self.jobs = JobTable(watched.cluster, policy.semantics, watched.find_pod, served)
        self.nodes = NodeTable(watched.cluster, watched.changes.shared)
        self.queues = QueueTable(watched.cluster)
        self.totals = ClusterTotals(watched.cluster)
        self.ready = False
        """Whether all objects have been read and assessed once."""
        self._unassessed = True
        self._moved: set[str] = set()
        """Jobs whose place changed and whose rows have not been made again."""
        self._useless_nodes: set[str] = set()
        self._queues_due = True

    def use_policy(self, policy: Policy) -> None:
        """Another policy that reads objects in the same way: what sessions and phases say is computed again."""
        self.policy = self.assessor.policy = policy
        self.jobs.semantics = policy.semantics
        self.watched.changes.jobs |= self.cluster.jobs.rows.of.keys()
        self._unassessed = True

    def set_starts(self, found: Starts) -> None:
        self._moved |= self.jobs.set_starts(found)

    def add_usage(self, page: UsagePage) -> None:
        """What the leader knows of the time before the dashboard was started."""
        if page.seconds == STEP_SECONDS:
            self.queue_history.fill(page.end, {(each.queue, each.resource): each.held for each in page.rows})

    def begin_again(self, watched: WatchedCluster, policy: Policy, served: frozenset[str] | None) -> None:
        """Another cluster object, which `run` fills. Viewers load everything again."""
        self.assessor.close(wait=False)
        gc.unfreeze()
        self._begin(watched, policy, served)
        self.log.forget()
        self._wake()

    @property
    def cluster(self) -> Cluster:
        return self.watched.cluster

    async def run(self, synced: Callable[[], Awaitable[None]]) -> None:
        """Follow the cluster until cancelled. `synced` is awaited first."""
        await synced()
        self.assessment = await self.assessor.assess()
        self.jobs.set_prospects(self.assessment.prospects)
        self.watched.changes.jobs |= self.cluster.jobs.rows.of.keys()
        self._unassessed = False
        self.step()
        self.watched.collecting = True
        _settle_memory()
        self.ready = True
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(), name="rows")
            tasks.create_task(self._assess(), name="assessments")

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._step / LOOKS)
            if self.watched.changed or self._moved or self._useless_nodes or self._queues_due:
                self.step()
                await asyncio.sleep(self._step * (1 - 1 / LOOKS))

    def step(self) -> None:
        """Make the changed rows again and wake all viewers."""
        self.watched.flush()
        keys, names, queues = self.watched.changes.taken()
        if keys or names or queues:
            self._unassessed = True
        moved, self._moved = self._moved, set()
        useless, self._useless_nodes = self._useless_nodes, set()
        changed, removed = self.jobs.update(keys | moved)
        changed_queues: list[str] = []
        if queues or self._queues_due:
            self._queues_due = False
            found, gone = self.queues.update(self.assessment)
            self.queue_history.add(self.clock(), {name: row["numbers"]["allocated"] for name, row in self.queues.rows.items()})
            changed_queues = found + gone
        entry = Changed(frozenset(changed + removed), frozenset(changed_queues), frozenset(names | useless))
        if len(entry) or not self.log.number:
            self.add(entry)

    def add(self, entry: Changed) -> None:
        """Begin a new version and wake all viewers."""
        self.log.add(entry)
        self._wake()

    def _wake(self) -> None:
        self._next.set()
        self._next = asyncio.Event()

    async def after(self, number: int) -> None:
        """Wait for a version after this one."""
        while self.log.number <= number:
            await self._next.wait()

    async def _assess(self) -> None:
        while True:
            pause = min(LONGEST, max(2 * self._step, self.assessment.seconds / PART))
            await asyncio.sleep(pause)
            if not self._unassessed and not self.watched.changed:
                continue
            self._unassessed = False
            before = self.assessment
            try:
                self.assessment = found = await self.assessor.assess()
            except Exception:
                # Figures stay as they were. The next change tries again.
                log.exception("shares and places could not be computed")
                continue
            self._moved |= self.jobs.set_prospects(found.prospects)
            self._useless_nodes |= _other_useless(before, found)
            self._queues_due = True

    def close(self) -> None:
        self.assessor.close()


def _settle_memory() -> None:
    """What was read first stays for long: the garbage collector need not look through it again. What reading took is given back."""
    gc.collect()
    gc.freeze()
    with contextlib.suppress(OSError, AttributeError):  # another libc than glibc
        ctypes.CDLL(None).malloc_trim(0)


def _other_useless(before: Assessment, now: Assessment) -> set[str]:
    """Nodes with other useless room than before."""
    if before.resources != now.resources or before.nodes.keys() != now.nodes.keys() or before.useless.shape != now.useless.shape:
        return set(now.nodes) if now.useless.any() or before.useless.any() else set()
    columns = [before.nodes[name] for name in now.nodes]
    differs = (before.useless[:, columns] != now.useless).any(axis=0).tolist()
    return {name for name, other in zip(now.nodes, differs) if other}
