"""kube-batch's proportion: weights alone divide the cluster, and a queue's deserved amount only limits reclaim from it.

In rounds, the rest goes by weight to the queues that request more; a queue whose share exceeds its request in every resource keeps
its request and leaves the rest. There are no guarantees, capabilities or admissions, pods are not a resource, and small amounts
count as none: 10 millicores, 10 MiB, a hundredth of a device.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change, EachChange
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.engine.record import QueueFigures
from navarch.model.resources import MEMORY, PODS, FloatArray, IntArray
from navarch.plugins.queues.amounts import Amounts, Vector
from navarch.plugins.queues.ledger import FREED, QueueLedger

_SMALL, _SMALL_MEMORY = 10.0, float(10 << 20)


class KubeBatchProportion(Plugin):
    """Divides the cluster among queues by weight, as kube-batch does"""

    name = "proportion"
    turns_in_one_step = True
    dialect = "kube-batch"

    def open(self) -> None:
        session = self.session
        self.ledger = QueueLedger(session)
        self.small: FloatArray = np.full(len(self.ledger.names), _SMALL)
        self.small[MEMORY] = _SMALL_MEMORY
        queues = sorted(session.queues.values(), key=lambda q: q.number)
        active = np.flatnonzero(self.ledger.has_jobs)
        self.deserved: FloatArray = np.zeros((len(queues), len(self.ledger.names)))
        weight = np.array([queues[i].spec.weight for i in active.tolist()], dtype=np.float64)
        request = self.ledger.request[active].astype(np.float64)
        request[:, PODS] = 0
        self.deserved[active] = divide(_without_pods(session.total), weight, request, self.small)

    def share(self, number: int) -> float:
        held, due = self.ledger.allocated[number], self.deserved[number]
        dims = np.flatnonzero(due > 0)
        return float((held[dims] / due[dims]).max(initial=0.0))

    def queue_figures(self, queue: Queue) -> QueueFigures:
        due = self.deserved[queue.number]
        return self.ledger.figures(queue, Amounts(due, due > 0), self.share(queue.number))

    def queue_order(self, left: Queue, right: Queue) -> int:
        a, b = self.share(left.number), self.share(right.number)
        return int(a > b) - int(a < b)

    def overused(self, queue: Queue) -> Reason | None:
        number = queue.number
        if not self._within(self.deserved[number], self.ledger.allocated[number]):
            return None
        text = f"queue {queue.name} has all that it deserves"
        return Reason("QueueOverused", text, figures={"queue": queue.name, "share": self.share(number)}, undone_by=FREED)

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None:
        """Candidates without which, and without all before them, their queue still has what it deserves."""
        session, held, out = self.session, dict[int, IntArray](), []
        for candidate in candidates:
            job = session.job_of(candidate)
            if job is None:
                continue
            number = job.queue.number
            left = held.setdefault(number, self.ledger.allocated[number].copy())
            left -= session.class_of(candidate).charge
            if self._within(self.deserved[number], left):
                out.append(candidate)
        return out

    def _within(self, left: Vector, right: Vector) -> bool:
        fits = left - right < self.small
        fits[MEMORY + 1 :] |= left[MEMORY + 1 :] <= _SMALL
        fits[PODS] = True
        return bool(fits.all())

    def on_allocate(self, change: Change) -> None:
        self.ledger.allocate((change.job.queue.number,), change)

    def on_deallocate(self, change: Change) -> None:
        self.ledger.deallocate((change.job.queue.number,), change)

    def on_allocate_each(self, change: EachChange) -> None:
        (self.ledger.deallocate if change.undone else self.ledger.allocate)((change.jobs[0].queue.number,), change)


def divide(total: FloatArray, weight: FloatArray, request: FloatArray, small: FloatArray) -> FloatArray:
    """What each queue deserves, (queues, resources).

    >>> asked = np.array([[2.0, 2.0], [50.0, 50.0]])
    >>> divide(np.array([12.0, 12.0]), np.ones(2), asked, np.zeros(2)).tolist()
    [[2.0, 2.0], [10.0, 10.0]]
    """
    deserved = np.zeros_like(request)
    unmet = np.ones(len(weight), dtype=bool)
    left = total.copy()
    while (whole := weight[unmet].sum()) > 0:
        asked, before = request[unmet], deserved[unmet]
        after = before + left * (weight[unmet] / whole)[:, None]
        counts = asked > 0
        counts[:, : MEMORY + 1] = True
        met = ((asked < after) | ~counts).all(axis=1)
        after[met] = np.minimum(after[met], asked[met])
        deserved[unmet] = after
        unmet[np.flatnonzero(unmet)[met]] = False
        left = left - (after - before).sum(axis=0)
        if (left < small).all() or not met.any():
            break
    return deserved


def _without_pods(amounts: IntArray) -> FloatArray:
    out = amounts.astype(np.float64)
    out[PODS] = 0.0
    return out
