"""DRF, dominant resource fairness: the job with the smallest dominant share goes first.

A job may evict tasks of jobs that would still hold at least as large a share as its own. With `enableHierarchy` queues are ordered
by shares in a tree of queues, and a queue may reclaim from one that would still be ahead of it (`share_tree`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey
from navarch.engine.points.protocols import Change, EachChange, QueueOrder, QueuesOwed, Reclaimable
from navarch.engine.queue import Queue
from navarch.engine.victims.owed import QueueShares
from navarch.model.resources import PODS, IntArray
from navarch.plugins.drf.share_tree import ShareTree
from navarch.plugins.queues.amounts import CLOSE, largest_part
from navarch.plugins.queues.ledger import queue_of_job

CLOSE_SHARE = 1e-6
"""Shares that differ by less count as equal when it comes to evictions."""


_KEPT = 1 << 14
"""Amounts whose share is kept."""


class Drf(Plugin):
    """Orders jobs by their dominant share of the cluster"""

    name = "drf"
    turns_in_one_step = True
    pods_count: ClassVar[bool] = True
    """Whether pods are a resource like any other, which many small pods can dominate."""

    def open(self) -> None:
        session = self.session
        jobs = session.snapshot.jobs
        dims = np.flatnonzero(session.total >= CLOSE)
        self.dims = dims if self.pods_count else dims[dims != PODS]
        waiting = np.flatnonzero(jobs.marks.waiting)
        parts = jobs.allocated[self.dims[:, None], waiting] / session.total[self.dims, None]
        self._shares: dict[int, float] = dict(zip(waiting.tolist(), parts.max(axis=0, initial=0.0).tolist()))
        """Job row -> its dominant share: of those that wait at first, of others when asked for."""
        self._held: dict[int, IntArray] = {}
        self._share_of: dict[bytes, float] = {}
        """Amounts -> their dominant share. Jobs that are alike hold the same amounts."""
        self.tree: ShareTree | None = None
        if self.option.is_enabled("hierarchy"):
            self.tree = ShareTree(session, queue_of_job(session))
        else:
            session.stop_asking(self, QueueOrder, Reclaimable, QueuesOwed)

    def held(self, job: Job) -> IntArray:
        """What the job has and is promised."""
        found = self._held.get(job.row)
        if found is None:
            found = self._held[job.row] = self.session.snapshot.jobs.allocated[:, job.row].copy()
        return found

    def share(self, held: IntArray) -> float:
        amounts = held.tobytes()
        found = self._share_of.get(amounts)
        if found is None:
            if len(self._share_of) >= _KEPT:
                self._share_of.clear()
            found = self._share_of[amounts] = largest_part(held, self.session.total, self.dims)
        return found

    def job_order(self, job: Job) -> OrderKey:
        found = self._shares.get(job.row)
        if found is None:
            found = self._shares[job.row] = self.share(self.held(job))
        return found

    def queue_order(self, left: Queue, right: Queue) -> int:
        assert self.tree is not None
        difference = self.tree.compare(left, right)
        return int(difference > 0) - int(difference < 0)

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        session = self.session
        job = session.job_of(preemptor)
        if job is None:
            return None
        mine = self.share(self.held(job) + session.class_of(preemptor).charge)
        left: dict[int, IntArray] = {}
        out = []
        for candidate in candidates:
            other = session.job_of(candidate)
            if other is None:
                continue
            held = left.get(other.row)
            if held is None:
                held = left[other.row] = self.held(other).copy()
            held -= session.class_of(candidate).charge
            theirs = self.share(held)
            if mine < theirs or abs(mine - theirs) <= CLOSE_SHARE:
                out.append(candidate)
        return out

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None:
        """Candidates whose queue would, without them, still stand behind the reclaimer's queue with its task."""
        session, tree = self.session, self.tree
        job = session.job_of(reclaimer)
        if job is None or tree is None:
            return None
        request = session.class_of(reclaimer).charge
        tree.shift(job.queue, job.row, request)
        out = []
        for candidate in candidates:
            other = session.job_of(candidate)
            if other is None:
                continue
            freed = session.class_of(candidate).charge
            tree.shift(other.queue, other.row, -freed)
            if tree.compare(job.queue, other.queue) < 0:
                out.append(candidate)
            tree.shift(other.queue, other.row, freed)
        tree.shift(job.queue, job.row, -request)
        return out

    def queues_owed(self) -> QueueShares:
        assert self.tree is not None
        return self.tree.owed()

    def on_allocate(self, change: Change) -> None:
        self._move(change.job, change.total)

    def on_deallocate(self, change: Change) -> None:
        self._move(change.job, -change.total)

    def on_allocate_each(self, change: EachChange) -> None:
        if self.tree is not None or not len(self.dims):
            for one in change.changes():
                (self.on_deallocate if change.undone else self.on_allocate)(one)
            return
        rows = [job.row for job in change.jobs]
        for job, task in zip(change.jobs, change.classes):
            held = self.held(job)
            held += -task.charge if change.undone else task.charge
        held = np.array([self._held[row] for row in rows])
        shares: list[float] = (held[:, self.dims] / self.session.total[self.dims]).max(axis=1).tolist()
        self._shares.update(zip(rows, shares))

    def _move(self, job: Job, change: IntArray) -> None:
        held = self.held(job)
        held += change
        self._shares.pop(job.row, None)
        if self.tree is not None:
            self.tree.shift(job.queue, job.row, change)


class KubeBatchDrf(Drf):
    """Orders jobs by their dominant share of the cluster, pods aside"""

    dialect = "kube-batch"
    pods_count = False
