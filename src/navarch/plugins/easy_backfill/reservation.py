"""When a gang can start if running jobs end as expected, and on which nodes.

Ends are known where jobs say how long they run. Room on nodes only grows as they end, so the earliest start is found by bisection
over the ends, with one count of slots a node for each step. Cost: O(log ends) passes over (resources, nodes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.model.status import IS_ALLOCATED, TaskStatus


@dataclass(slots=True)
class Reservation:
    """`job` starts at `at` on nodes where `spare` is what others may hold then: (R, nodes)."""

    job: Job
    at: float
    spare: IntArray
    nodes: list[int]
    usable: BoolArray
    """Nodes that the job may use."""
    behind: Job | None
    """The first job with an earlier promise on some of these nodes. That promise is made anew in every cycle and may choose other
    nodes, so this one may move."""


class Ends:
    """What running tasks hold, and until when."""

    def __init__(self, session: Session) -> None:
        self._session = session
        tasks, jobs = session.snapshot.tasks, session.snapshot.jobs
        held = IS_ALLOCATED[session.status] & (session.node >= 0) & tasks.alive & (tasks.job >= 0)
        rows = np.flatnonzero(held)
        started = np.where(np.isfinite(tasks.started[rows]), tasks.started[rows], session.now)
        end: FloatArray = np.maximum(started + jobs.expected_duration[tasks.job[rows]], session.now)
        known = np.isfinite(end)
        rows, end = rows[known], end[known]
        order = np.argsort(end, kind="stable")
        self.end = end[order]
        self._node = session.node[rows[order]]
        self._request = session.snapshot.shape_request[:, session.shape[rows[order]]]

    def free_at(self, moment: float) -> IntArray:
        """(R, nodes): what is idle then."""
        nodes = self._session.nodes
        free: IntArray = nodes.allocatable - nodes.used
        count = int(np.searchsorted(self.end, moment, side="right"))
        np.add.at(free.T, self._node[:count], self._request[:, :count].T)
        return free


def reserve(session: Session, ends: Ends, job: Job, earlier: list[Reservation]) -> Reservation | None:
    """The earliest start of the job's waiting tasks beside promises that were made before. None: no known ends let it start."""
    wanted = _classes(session, job)
    moments = np.unique(ends.end[ends.end > session.now])
    if not len(moments) or _assign(session, wanted, _free(ends, float(moments[-1]), earlier)) is None:
        return None
    low, high = 0, len(moments) - 1
    while low < high:
        middle = (low + high) // 2
        if _assign(session, wanted, _free(ends, float(moments[middle]), earlier)) is None:
            low = middle + 1
        else:
            high = middle
    at = float(moments[low])
    spare = _free(ends, at, earlier)
    nodes = _assign(session, wanted, spare)
    if nodes is None:
        return None
    usable: BoolArray = np.any([session.view(task).possible for task, _ in wanted], axis=0)
    behind = next((other.job for other in earlier if (other.usable & usable).any()), None)
    return Reservation(job, at, spare, nodes, usable, behind)


def _free(ends: Ends, moment: float, earlier: list[Reservation]) -> IntArray:
    """What is idle at a moment and promised to nothing."""
    free = ends.free_at(moment)
    for other in earlier:
        promised = ends.free_at(other.at) - other.spare
        free -= np.where(promised > 0, promised, 0)
    return free


def _classes(session: Session, job: Job) -> list[tuple[TaskClass, int]]:
    """The job's waiting tasks by class, largest first, up to its minimum."""
    counts: dict[int, tuple[TaskClass, int]] = {}
    rows = session.sorted_tasks(job.tasks_in(TaskStatus.PENDING))[: max(job.min_member - job.ready_count, 1)]
    for row in rows:
        task = session.class_of(row)
        counts[task.number] = task, counts.get(task.number, (task, 0))[1] + 1
    return list(counts.values())


def _assign(session: Session, wanted: list[tuple[TaskClass, int]], free: IntArray) -> list[int] | None:
    """Take room for the tasks out of `free`; the nodes, or None and `free` as it may be. Nodes that have no room now come first, so
    that those that have it stay open to others."""
    chosen: list[int] = []
    nodes = session.nodes
    for task, count in wanted:
        view = session.view(task)
        view.refresh()
        dims = np.flatnonzero(task.request)
        request = task.request[dims, None]
        slots: IntArray = np.where(view.possible, np.min(free[dims] // request, axis=0).clip(0), 0)
        if int(slots.sum()) < count:
            return None
        now: BoolArray = np.all(nodes.allocatable[dims] - nodes.used[dims] >= request, axis=0)
        left = count
        for row in np.lexsort((np.arange(len(slots)), now)).tolist():
            take = min(int(slots[row]), left)
            if take:
                free[:, row] -= take * task.request
                chosen += [row] * take
                left -= take
            if not left:
                break
    return chosen
