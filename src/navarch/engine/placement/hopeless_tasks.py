"""Pending tasks that no node could hold, even if the cluster were empty: demand that must not keep anything from others.

A task is hopeless if no node passes its static filters (labels, taints, names) with room for its request in what the node has in
all. A job is hopeless if fewer of its tasks than it still needs could ever stand on nodes. Shapes with the same rules about nodes are
compared with the few kinds of nodes that pass, all at once: fifty thousand shapes take some milliseconds (bench/tenants).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.node_functions import NodeFilter, Scope, TaskClass
from navarch.engine.placement.static_cache import static_answer, static_mask
from navarch.model.resources import BoolArray, IntArray
from navarch.model.shape_facts import of_shapes
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
    some: IntArray = np.full(int(shape.max()) + 1, -1, dtype=np.int64)
    some[shape] = rows
    gangs = np.flatnonzero(jobs.min_member[tasks.job[rows]] > 1)
    owner = tasks.job[rows[gangs]].astype(np.int64)
    pairs, count = np.unique(owner * len(some) + shape[gangs], return_counts=True)
    job, kind = pairs // len(some), pairs % len(some)
    wanted: IntArray = np.ones(len(some), dtype=np.int64)
    np.maximum.at(wanted, kind, count)
    room = _places(session, some, wanted)
    hopeless: BoolArray = room[shape] == 0
    if len(gangs):  # a job that needs one task has too few places only where none of its tasks has any
        possible: IntArray = np.zeros(len(jobs.min_member), dtype=np.int64)
        np.add.at(possible, job, np.minimum(count, room[kind]))
        too_few: BoolArray = np.zeros(len(possible), dtype=bool)
        too_few[job] = possible[job] < jobs.min_member[job] - jobs.counts[job] @ _COUNTS_AS_READY
        hopeless[gangs] |= too_few[owner]
    return rows[hopeless]


def _places(session: Session, some: IntArray, wanted: IntArray) -> IntArray:
    """By shape: how many such tasks the empty cluster could hold, each node for itself; counted up to `wanted`. `some`: a task of each
    shape, -1 where the shape has none that waits."""
    places: IntArray = np.zeros(len(some), dtype=np.int64)
    for shapes in _alike(session, some):
        task = session.class_of(int(some[shapes[0]]))
        filters = [f for f in session.filters_for(task) if f.scope is Scope.STATIC]
        for part in [shapes] if all(f.reads_only_node_rules for f in filters) else shapes[:, None]:
            task = session.class_of(int(some[part[0]]))
            places[part] = _places_of(session, part, wanted[part], _node_kinds(session, filters, task))
    return places


def _alike(session: Session, some: IntArray) -> list[Rows]:
    """The shapes with a waiting task, those with the same rules about nodes together."""
    rules = session.snapshot.shape_node_rules
    numbers = of_shapes(
        session.snapshot, "rules about nodes", lambda _: np.unique([id(each) for each in rules], return_inverse=True)[1]
    )
    present = np.flatnonzero(some >= 0)
    of = numbers[present]
    order = np.argsort(of, kind="stable")
    return np.split(present[order], np.flatnonzero(np.diff(of[order])) + 1)


def _node_kinds(session: Session, filters: Sequence[NodeFilter], task: TaskClass) -> IntArray:
    """The different nodes that pass these filters: a column each, what it has of each resource and last how many there are. Largest
    first, so that most shapes are decided by the first few."""
    nodes = session.snapshot.nodes

    def count() -> IntArray:
        allowed: BoolArray = np.ones(len(nodes), dtype=bool)
        for f in filters:
            allowed &= static_mask(session, f, task)
        kinds, number = np.unique(nodes.allocatable[:, allowed], axis=1, return_counts=True)
        order = np.argsort(-(kinds / np.maximum(kinds.max(axis=1, initial=1), 1)[:, None]).sum(axis=0), kind="stable")
        return np.vstack([kinds, number])[:, order]

    read = task.shape if any(not f.reads_only_node_rules for f in filters) else session.snapshot.shape_node_rules[task.shape_number]
    key = ("node kinds", tuple(f.identity() for f in filters), read, len(session.snapshot.resource_names))
    return static_answer(session, key, count)


def _places_of(session: Session, shapes: Rows, wanted: IntArray, kinds: IntArray) -> IntArray:
    request = session.snapshot.shape_request[:, shapes]
    places: IntArray = np.zeros(len(shapes), dtype=np.int64)
    if not kinds.shape[1]:
        return places
    claimable = [*session.claimable_dims]
    most = kinds[:-1].max(axis=1)
    possible = request <= most[:, None]
    possible[claimable] = True
    left = np.flatnonzero(possible.all(axis=0))
    for kind in kinds.T:
        if not len(left):
            break
        asked, has = request[:, left], kind[:-1, None]
        each = np.where(asked > 0, has // np.maximum(asked, 1), wanted[left])
        if claimable:  # claims on devices decide where the node does not report the resource
            each[claimable] = np.where(has[claimable] == 0, wanted[left], each[claimable])
        places[left] = np.minimum(places[left] + each.min(axis=0) * kind[-1], wanted[left])
        left = left[places[left] < wanted[left]]
    return places
