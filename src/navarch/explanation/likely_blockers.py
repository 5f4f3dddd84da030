"""A first guess at the blocking set, for clusters where thousands of jobs run.

The guess only looks at room: pods of the job go where they fit, and where none fits, the fewest jobs of one node make room for the
next. A trial then says whether it is right. Without a guess the search would begin with all running jobs, which takes
many trials that each remove half of the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.explanation.subject import Unit
from navarch.model.resources import BoolArray, IntArray
from navarch.model.status import TaskStatus

_NODES = 64
"""Nodes that are looked at closely for one pod: those that lack least."""


def likely_blockers(session: Session, job: Job, units: Mapping[str, Unit]) -> list[list[Unit]]:
    """Sets of jobs whose pods leave enough room for the job: of its own queue, which lowers what that holds as well, and of any."""
    queue_of = {spec.key: spec.queue for spec in session.snapshot.jobs.specs if spec is not None}
    own = {name: unit for name, unit in units.items() if any(queue_of.get(key) == job.queue.name for key in unit.keys)}
    found = [_RoomSearch(session, job, some).made() for some in (own, units)]
    return [each for number, each in enumerate(found) if each and each not in found[:number]]


class _RoomSearch:
    def __init__(self, session: Session, job: Job, units: Mapping[str, Unit]) -> None:
        self.session, self.job = session, job
        self.free: IntArray = session.nodes.idle.copy()
        self.chosen: dict[str, Unit] = {}
        self._unit_of = {task.uid: unit for unit in units.values() for task in unit.tasks}
        """uid of a pod -> its unit."""
        rows = np.flatnonzero(session.snapshot.tasks.alive & (session.node >= 0))
        self._order = rows[np.argsort(session.node[rows], kind="stable")]
        self._starts = np.searchsorted(session.node[self._order], np.arange(len(session.nodes) + 1))

    def made(self) -> list[Unit]:
        pending = self.session.sorted_tasks(self.job.tasks_in(TaskStatus.PENDING))
        for task in pending[: max(1, self.job.min_member - self.job.ready_count)]:
            kind = self.session.class_of(task)
            view = self.session.view(kind)
            open_to: BoolArray = view.feasible() | ~view.unresolvable()
            if not self._place(kind.request, open_to):
                return []
        return list(self.chosen.values())

    def _place(self, request: IntArray, open_to: BoolArray) -> bool:
        dims = np.flatnonzero(request)
        need = request[dims, None]
        fits = open_to & np.all(self.free[dims] >= need, axis=0)
        if not fits.any():
            enough = open_to & np.all(self.session.nodes.allocatable[dims] >= need, axis=0)
            lacking = np.maximum(need - self.free[dims], 0) / need
            near = np.argsort(np.where(enough, lacking.sum(axis=0), np.inf), kind="stable")[:_NODES]
            sets = [self._make_room(int(node), request) for node in near.tolist() if enough[node]]
            best = min((each for each in sets if each), key=len, default=None)
            if best is None:
                return False
            for unit in best:
                self._take(unit)
            fits = open_to & np.all(self.free[dims] >= need, axis=0)
            if not fits.any():
                return False
        self.free[:, int(np.argmax(fits))] -= request
        return True

    def _make_room(self, node: int, request: IntArray) -> Sequence[Unit]:
        """The fewest units whose pods on one node leave room there, those that free most first."""
        session, freed = self.session, dict[str, tuple[Unit, IntArray]]()
        for row in self._order[self._starts[node] : self._starts[node + 1]].tolist():
            unit = self._unit_of.get(session.task(row).uid)
            if unit is None or unit.name in self.chosen or self.job.key in unit.keys:
                continue
            amount = session.snapshot.shape_request[:, session.shape[row]]
            before = freed.get(unit.name)
            freed[unit.name] = (unit, amount.copy() if before is None else before[1] + amount)
        lacking = np.maximum(request - self.free[:, node], 0)
        found: list[Unit] = []
        while lacking.any():
            useful = [
                (float((np.minimum(amount, lacking) / np.maximum(lacking, 1)).sum()), name) for name, (_, amount) in freed.items()
            ]
            worth, name = max(useful, default=(0.0, ""))
            if worth <= 0:
                return ()
            unit, amount = freed.pop(name)
            lacking = np.maximum(lacking - amount, 0)
            found.append(unit)
        return found

    def _take(self, unit: Unit) -> None:
        """All pods of the unit leave, wherever they are."""
        self.chosen[unit.name] = unit
        rows = self.session.snapshot.nodes.row
        for task in unit.tasks:
            node = rows(task.node) if task.node else None
            if node is not None:
                self.free[:, node] += self.session.snapshot.space.vector(task.shape.requests, pods=1)[: len(self.free)]
