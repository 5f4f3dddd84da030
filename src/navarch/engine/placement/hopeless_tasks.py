"""Pending tasks that no node could hold, even if the cluster were empty: demand that must not keep anything from others.

A task is hopeless if no node passes its static filters (labels, taints, names) with room for its request in what the node has in
all. A job is hopeless if fewer of its tasks than it still needs could ever stand on nodes. The answer of a shape is kept while the
nodes stay as they are, so a cycle pays for new shapes only: about 50 us each at 5,000 nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.node_functions import Scope, TaskClass
from navarch.engine.placement.static_cache import static_answer, static_mask
from navarch.model.resources import BoolArray, IntArray
from navarch.model.status import IS_ALLOCATED, TaskStatus

if TYPE_CHECKING:
    from navarch.engine.session import Session

_COUNTS_AS_READY = IS_ALLOCATED.astype(np.int64)
_COUNTS_AS_READY[[TaskStatus.SUCCEEDED, TaskStatus.PIPELINED]] = 1


class HopelessTasks:
    """One object a session (`Session.shared`), to be asked for once all plugins are open."""

    def __init__(self, session: Session) -> None:
        self.rows: Rows = _hopeless(session)
        """Pending tasks that can never be placed on the nodes as they are."""
        self._known = frozenset(self.rows.tolist())

    def includes(self, tasks: Iterable[int]) -> bool:
        """Whether any of these tasks is one of them."""
        return bool(self._known) and not self._known.isdisjoint(tasks)


def _hopeless(session: Session) -> Rows:
    tasks, jobs = session.snapshot.tasks, session.snapshot.jobs
    rows = np.flatnonzero(tasks.alive & (tasks.status == TaskStatus.PENDING) & (tasks.job >= 0))
    if not len(rows):
        return rows
    shape = tasks.shape[rows]
    some = np.full(int(shape.max()) + 1, -1, dtype=np.int64)
    some[shape] = rows
    present = np.flatnonzero(some >= 0)
    room: IntArray = np.ones(len(some), dtype=np.int64)
    room[present] = [_room(session, session.class_of(row)) for row in some[present].tolist()]
    hopeless: BoolArray = np.zeros(len(rows), dtype=bool) if room.all() else room[shape] == 0
    gangs = np.flatnonzero(jobs.min_member[tasks.job[rows]] > 1)
    if len(gangs):  # a job that needs one task has too few places only where none of its tasks has any
        owner = tasks.job[rows[gangs]].astype(np.int64)
        pairs, count = np.unique(owner * len(room) + shape[gangs], return_counts=True)
        job, kind = pairs // len(room), pairs % len(room)
        possible: IntArray = np.zeros(len(jobs.min_member), dtype=np.int64)
        np.add.at(possible, job, np.minimum(count, room[kind]))
        too_few: BoolArray = np.zeros(len(possible), dtype=bool)
        too_few[job] = possible[job] < jobs.min_member[job] - jobs.counts[job] @ _COUNTS_AS_READY
        hopeless[gangs] |= too_few[owner]
    return rows[hopeless]


def _room(session: Session, task: TaskClass) -> int:
    """How many such tasks the empty cluster could hold, each node for itself."""
    filters = [f for f in session.filters_for(task) if f.scope is Scope.STATIC]
    claimed = session.claimable_dims.intersection(np.flatnonzero(task.request).tolist()) if session.claimable_dims else frozenset()
    key = ("room", tuple(f.identity() for f in filters), task.shape, claimed)
    return int(static_answer(session, key, lambda: _count(session, task))[0])


def _count(session: Session, task: TaskClass) -> IntArray:
    nodes = session.snapshot.nodes
    allowed: BoolArray = np.ones(len(nodes), dtype=bool)
    for f in session.filters_for(task):
        if f.scope is Scope.STATIC:
            allowed &= static_mask(session, f, task)
    dims = np.flatnonzero(task.request > 0)
    most, claimed = np.iinfo(np.int32).max, session.left_to_claims(dims)
    room = nodes.allocatable[dims] // task.request[dims, None]
    each = (room if claimed is None else np.where(claimed, most, room)).min(axis=0, initial=most)
    return np.array([np.maximum(each, 0)[allowed].sum()], dtype=np.int64)
