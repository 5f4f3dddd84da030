"""Rounds: which waiting jobs a cycle tries, where one cycle cannot try all of them.

A cycle may take a bounded number of steps (`engine/steps.py`). It is given as many jobs as that may allow for. If it is cut all the
same, the next one is given half as many, down to one. A cycle over one job has no bound: it would be cut at the same place each time,
and the other jobs would wait for ever. A job counts as tried when it was given to a cycle that was not cut. Until every waiting job is
tried, those that are tried go behind those that are not, however often events bring them back: that is a round.

Jobs with nominated pods are in every cycle: room was made for them, and a cycle without them would give it to others.

The queues take turns, and in a queue the namespaces with jobs of one priority: the first jobs of all come before the second ones, so
a crowd waits behind itself. A job of higher priority comes first in its queue. Inside a namespace the order is priority, age, arrival.
Under a policy that keeps the order of queues, or promises room to their first jobs, namespaces take no turns. One that keeps the order
has no rounds: the jobs of a queue go in order. One that promises room has the first job of each queue in every cycle, and rounds for
the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from navarch.model.snapshot import Snapshot
from navarch.model.status import TaskStatus

Rows = np.ndarray[Any, np.dtype[np.intp]]
STEPS = 20_000
"""What a live cycle may take: some tenths of a second (bench/crowds)."""
LIMIT = 256.0
"""How much a cycle is given at first. A job counts one, or `LIKE` where a job before it in its queue has the same shape."""
LIKE = 0.1
"""A job or pod like one before it is placed or refused with it."""


class Rounds:
    def __init__(self, limit: float = LIMIT) -> None:
        self._most = self._limit = limit
        """What a cycle is given at most, and at the moment."""
        self._tried: set[str] = set()
        """Jobs that a cycle of this round has tried to the end."""
        self._given: list[str] = []
        self._complete = True
        """The cycle under way was given every waiting job."""
        self.more = False
        """It left out jobs for which another cycle may do more: untried ones, or those behind other jobs than before."""

    @property
    def steps(self) -> int | None:
        """How many steps the cycle under way may take; None: any number."""
        return STEPS if self._limit > 1 else None

    def leave_out(self, snapshot: Snapshot, *, in_order: bool = False, promises: bool = False) -> list[int]:
        """Rows of the waiting jobs that the cycle is not given. `in_order`: the policy keeps the order of its queues. `promises`: it
        promises room to their first jobs."""
        jobs, self.more = snapshot.jobs, False
        waiting = np.flatnonzero(jobs.marks.waiting & jobs.taking_part)
        self._complete = float(jobs.counts[waiting, TaskStatus.PENDING].sum()) <= self._limit
        if self._complete:
            self._given = [] if self._limit == self._most else [jobs.keys[row] for row in waiting.tolist()]
            return []
        order, cost, tried = self._in_turns(snapshot, waiting, in_order=in_order, promises=promises)
        count = max(1, int(np.searchsorted(np.cumsum(cost), self._limit, side="right")))
        self._complete = count >= len(order)
        before, self._given = self._given, [jobs.keys[row] for row in order[:count].tolist()]
        self.more = not self._complete and (self._given != before if in_order else not tried[count:].all())
        later: list[int] = order[count:].tolist()
        return later

    def end(self, *, cut: bool) -> None:
        """The cycle is over."""
        if cut:
            self._limit = max(min(self._limit, float(len(self._given) or self._most)) / 2, 1.0)
            return
        self._limit = min(self._limit * 2, self._most)
        if self._complete:
            self._tried.clear()
        else:
            self._tried.update(self._given)

    def _in_turns(self, snapshot: Snapshot, waiting: Rows, *, in_order: bool, promises: bool) -> tuple[Rows, Any, Any]:
        """The jobs in the order in which they are given, what each costs, and whether it was tried in this round. About ten
        milliseconds for 50,000 jobs."""
        tasks, jobs = snapshot.tasks, snapshot.jobs
        takes_part = np.zeros(len(jobs.specs) + 1, dtype=bool)  # the last answers for tasks without a job
        takes_part[waiting] = True
        pending = np.flatnonzero(tasks.alive & (tasks.status == TaskStatus.PENDING) & takes_part[tasks.job])
        pending = pending[np.lexsort((pending, tasks.created[pending], -tasks.priority[pending]))]
        rows, at, pods = np.unique(tasks.job[pending], return_index=True, return_counts=True)
        first = pending[at]
        nominated = np.isin(rows, tasks.job[pending[tasks.nominated[pending]]])
        queue = jobs.queue[rows].astype(np.int64)
        priority = np.maximum(tasks.priority[first], jobs.priority[rows])
        tried = np.zeros(len(rows), dtype=bool)
        if self._tried and not in_order:
            self._tried.intersection_update(keys := [jobs.keys[row] for row in rows.tolist()])
            tried = np.array([key in self._tried for key in keys], dtype=bool)
            if tried.all():
                self._tried.clear()
        always = nominated
        if promises:
            best = np.lexsort((first, tasks.created[first], -priority, queue))
            always = nominated.copy()
            always[best[np.unique(queue[best], return_index=True)[1]]] = True
        behind = tried & ~always
        namespace = np.zeros(len(rows), dtype=np.int64) if in_order or promises else _namespaces(snapshot)[tasks.labels[first]]
        age = np.lexsort((first, tasks.created[first]))
        turn = _places(age, namespace, priority, behind, queue)
        inside = age[np.lexsort((turn[age], -priority[age], behind[age]))]
        order = np.lexsort((tasks.created[first], queue, _places(inside, queue), behind, ~nominated))
        kind = queue[order] * len(snapshot.shapes) + tasks.shape[first][order]
        new = np.zeros(len(order), dtype=bool)
        new[np.unique(kind, return_index=True)[1]] = True
        cost = np.where(nominated[order], 0.0, np.where(new, 1.0, LIKE) + LIKE * (pods[order] - 1))
        return rows[order].astype(np.intp), cost, tried[order]


def _places(order: Rows, *kinds: Any) -> Any:
    """Of each in this order: how many of its kind come before it. Those are of one kind that agree in all of `kinds`."""
    sorted_ = order[np.lexsort([kind[order] for kind in kinds])]
    starts = np.zeros(len(order), dtype=np.intp)
    for kind in kinds:
        changes = np.flatnonzero(kind[sorted_[1:]] != kind[sorted_[:-1]]) + 1
        starts[changes] = changes
    places = np.empty(len(order), dtype=np.intp)
    places[sorted_] = np.arange(len(order)) - np.maximum.accumulate(starts)
    return places


def _namespaces(snapshot: Snapshot) -> Any:
    """By identity (namespace and labels): the number of its namespace."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(namespace, len(numbers)) for namespace, _ in snapshot.identities], dtype=np.int64)
