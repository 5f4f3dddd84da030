"""One task of each of many jobs, placed in one step: one entry of a statement's log, which can be cut from its end.

Elastic jobs take thousands of turns of one task each. What a turn moves is the same for all of them, so figures of nodes, statuses and
accounts move once for the whole run, and the record gets all its binds together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.recording import record_binds
from navarch.engine.points.protocols import EachChange
from navarch.engine.record import Bind
from navarch.model.resources import IntArray
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.engine.session import Session

PENDING, ALLOCATED, BINDING = TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.BINDING


class PlacedEach:
    """Pending tasks of jobs of one queue that hold idle resources now, `tasks[i]` of `jobs[i]` on `nodes[i]`."""

    def __init__(
        self, session: Session, jobs: Sequence[Job], tasks: Sequence[int], nodes: Sequence[int], classes: Sequence[TaskClass]
    ) -> None:
        self._session = session
        self._jobs, self._tasks, self._nodes, self._classes = list(jobs), list(tasks), list(nodes), list(classes)
        kinds = {task.number: task for task in classes}
        place = {number: i for i, number in enumerate(kinds)}
        self._where: Rows = np.array(nodes, dtype=np.intp)
        self._kind: Rows = np.array([place[task.number] for task in classes], dtype=np.intp)
        """Of each task, the row of its class in the three tables below."""
        self._requests: IntArray = np.array([task.request for task in kinds.values()])
        self._footprints: IntArray = np.array([task.footprint for task in kinds.values()])
        self._charges: IntArray = np.array([task.charge for task in kinds.values()])
        self._move(0, 1)

    def __len__(self) -> int:
        return len(self._tasks)

    def keep(self, count: int) -> None:
        """Take back all but the first `count` tasks. No trace of the others is left, because they had no turn."""
        if count >= len(self._tasks):
            return
        self._move(count, -1)
        del self._jobs[count:], self._tasks[count:], self._nodes[count:], self._classes[count:]
        self._where, self._kind = self._where[:count], self._kind[:count]

    def record(self) -> None:
        """Hand the tasks to binding."""
        session = self._session
        if session.devices is not None or session.zones or session.cpus or session.bind_annotations:
            for job, task in zip(self._jobs, self._tasks):
                record_binds(session, job, [task])
            return
        names, task_of = session.nodes.names, session.task
        binds = session.record.binds
        for job, task, node in zip(self._jobs, self._tasks, self._nodes):
            spec, counts = task_of(task), job.counts
            binds.append(Bind(spec.key, names[node], spec.uid, job.key))
            counts[ALLOCATED] -= 1
            counts[BINDING] += 1
            if job.last_undone:
                job.last_undone.pop(task, None)
        session.status[self._tasks] = BINDING

    def _move(self, start: int, sign: int) -> None:
        """Place the tasks from `start` on, or take them back."""
        session, joined = self._session, sign > 0
        jobs, classes = self._jobs[start:], self._classes[start:]
        tasks, nodes = self._tasks[start:], self._nodes[start:]
        where, kind = self._where[start:], self._kind[start:]
        session.nodes.place_each(where, self._requests[kind], self._footprints[kind], sign)
        session.status[tasks] = ALLOCATED if joined else PENDING
        session.node[tasks] = where if joined else -1
        session.residents_changed(tasks, nodes, joined=joined)
        for job, task in zip(jobs, classes):
            job.shift_one(task.charge, task.best_effort, sign)
        total: IntArray = self._charges[kind].sum(axis=0)
        session.events.placed_each(EachChange(jobs, tasks, nodes, classes, total, undone=not joined))
