"""Proportion: divides the cluster among queues by weight; what a queue does not request goes to the others.

Each queue with jobs deserves a part. In rounds, the rest of the cluster is divided by weight among the queues that request more,
within the limit of each (its capability, and the guarantees of others) and its requests, and never below its own guarantee.

    12 cpu, weights 1:1, asked 2 and 20  ->  round one gives 2 and 6, round two 2 and 10

A queue may grow up to its deserved amount and loses what it holds above it. The queue with the smallest fraction of its deserved
amount is served first. What the queues together leave idle is then offered in the same order beyond their shares, up to their
capabilities (`Semantics.leftover_is_offered`). Pods that no node could ever hold do not count as requests
(`impossible_demand_counts`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change, EachChange, HardLimit, Vote
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.engine.record import QueueFigures
from navarch.engine.victims.owed import QueueShares
from navarch.model.resources import UNLIMITED, FloatArray, IntArray
from navarch.plugins.queues.amounts import CLOSE, Amounts, fits, largest_part
from navarch.plugins.queues.division import divide
from navarch.plugins.queues.ledger import FREED, SHARE, QueueLedger, closed, hard_limits, real_capabilities
from navarch.plugins.queues.unread_bounds import unread_shares, unread_tree


class Proportion(Plugin):
    """Divides the cluster among queues by weight"""

    name = "proportion"
    turns_in_one_step = True

    def open(self) -> None:
        session = self.session
        self.ledger = QueueLedger(session)
        self.queues = sorted(session.queues.values(), key=lambda q: q.number)
        self.limits = real_capabilities(session.snapshot.resource_names, session.total, self.queues)
        self._share: list[float | None] = [None] * len(self.queues)
        session.record.warnings += [*unread_shares(self.queues, self.name), *unread_tree(self.queues, self.name)]

    def after_open(self) -> None:
        """What is asked for in vain is known only when the node functions are."""
        request = self.ledger.attainable_request()
        self.deserved = self._deserved(request)
        self.may_hold: IntArray = np.floor(np.minimum(self.deserved, UNLIMITED)).astype(np.int64)
        """Deserved in whole units: for integers, within this is within deserved."""
        self.most: IntArray = hard_limits(self.ledger.names, self.session.total, self.queues)
        """What each queue may hold of what the others leave over."""
        self.ledger.set_limits(self.queues, self.most)

    def _deserved(self, request: IntArray) -> FloatArray:
        active = np.flatnonzero(self.ledger.has_jobs)
        out = np.zeros((len(self.queues), len(self.ledger.names)))
        queues = [self.queues[i] for i in active.tolist()]
        guarantee = [Amounts.of(self.ledger.names, q.spec.guarantee).values for q in queues]
        if queues:
            out[active] = divide(
                self.session.total,
                np.array([q.spec.weight for q in queues], dtype=np.float64),
                np.array([np.where(self.limits[q.number].given, self.limits[q.number].values, np.inf) for q in queues]),
                request[active].astype(np.float64),
                np.array(guarantee, dtype=np.float64),
            )
        return _without_noise(out)

    def share(self, number: int) -> float:
        found = self._share[number]
        if found is None:
            found = largest_part(self.ledger.allocated[number], self.deserved[number], np.flatnonzero(self.deserved[number] >= CLOSE))
            self._share[number] = found
        return found

    def queue_figures(self, queue: Queue) -> QueueFigures:
        due = self.deserved[queue.number]
        return self.ledger.figures(queue, Amounts(due, due > 0), self.share(queue.number))

    def hard_limits(self, job: Job) -> Sequence[HardLimit]:
        return self.ledger.hard_limits((job.queue.number,))

    # order and limits

    def queue_order(self, left: Queue, right: Queue) -> int:
        if left.spec.priority != right.spec.priority:
            return right.spec.priority - left.spec.priority
        a, b = self.share(left.number), self.share(right.number)
        return int(a > b) - int(a < b)

    def overused(self, queue: Queue) -> Reason | None:
        number = queue.number
        if self.session.beyond_shares or not fits(self.deserved[number], self.ledger.allocated[number]):
            return None
        text = f"queue {queue.name} has all that it deserves"
        return Reason("QueueOverused", text, figures={"queue": queue.name, "share": self.share(number)}, undone_by=FREED)

    def allocatable(self, queue: Queue, task: TaskClass, count: int) -> int | Reason:
        shut = closed(self.session, queue)
        if shut is not None:
            return shut
        beyond = self.session.beyond_shares
        room = self.ledger.room(queue.number, task, (self.most if beyond else self.may_hold)[queue.number], count)
        if room > 0:
            return room
        if beyond:
            return self.ledger.over_limit(queue, task, self.most[queue.number], limit_is="capability")
        return self.ledger.over_limit(queue, task, self.deserved[queue.number], limit_is=SHARE)

    def preemptive(self, queue: Queue, task: TaskClass) -> Reason | None:
        answer = self.allocatable(queue, task, 1)
        return answer if isinstance(answer, Reason) else None

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None:
        """Of each queue as many candidates as leave it with no more than it deserves, or just below."""
        session, held, out = self.session, dict[int, IntArray](), []
        for candidate in candidates:
            job = session.job_of(candidate)
            if job is None:
                continue
            number = job.queue.number
            allocated = held.get(number)
            if allocated is None:
                allocated = held[number] = self.ledger.allocated[number].copy()
            if not fits(allocated, self.deserved[number]):
                allocated -= session.class_of(candidate).charge
                out.append(candidate)
        return out

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None:
        """A queue above its share gives up what its jobs can spare, task by task, and a gang whole; never once it is at or
        below its share in what the victim holds."""
        session = self.session
        if not reclaim:
            return None
        held: dict[int, tuple[list[int], list[float]]] = {}
        """Queue -> what it holds and what it deserves, as plain numbers: a few are read for each of very many candidates."""
        spare: dict[int, int] = {}
        ended: dict[int, bool] = {}
        out = []
        for candidate in candidates:
            other = session.job_of(candidate)
            if other is None:
                continue
            number, row, asked = other.queue.number, other.row, self.ledger.amounts_asked(session.class_of(candidate))
            if number not in held:
                held[number] = self.ledger.allocated[number].tolist(), self.deserved[number].tolist()
            allocated, deserved = held[number]
            if row not in spare:
                spare[row] = other.ready_count - other.min_member
            above = any(allocated[dim] > deserved[dim] for dim, _ in asked)
            if spare[row] > 0:
                spare[row] -= 1
            else:
                above = ended.setdefault(row, above)  # the rest of the gang goes with its first, or stays
            if above:
                for dim, amount in asked:
                    allocated[dim] -= amount
                out.append(candidate)
        return out

    def queues_owed(self) -> QueueShares:
        lines = [(queue.number,) if self.ledger.has_jobs[queue.number] else () for queue in self.queues]
        return QueueShares(self.may_hold, lines)

    # admission

    def job_enqueueable(self, job: Job) -> Vote | Reason:
        shut = closed(self.session, job.queue)
        if shut is not None:
            return shut
        if job.spec.min_resources is None:
            return Vote.PERMIT
        return self.ledger.enqueueable(job.queue, job, self.limits[job.queue.number].values) or Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        self.ledger.admit((job.queue.number,), job)

    # events

    def on_allocate(self, change: Change) -> None:
        number = change.job.queue.number
        self.ledger.allocate((number,), change)
        self._share[number] = None

    def on_deallocate(self, change: Change) -> None:
        number = change.job.queue.number
        self.ledger.deallocate((number,), change)
        self._share[number] = None

    def on_allocate_each(self, change: EachChange) -> None:
        number = change.jobs[0].queue.number
        (self.ledger.deallocate if change.undone else self.ledger.allocate)((number,), change)
        self._share[number] = None


def _without_noise(amounts: FloatArray) -> FloatArray:
    """Round up a part that misses a whole unit only by floating-point error."""
    whole = np.rint(amounts)
    return np.where(np.abs(amounts - whole) <= 1e-9 * np.maximum(whole, 1.0), whole, amounts)
