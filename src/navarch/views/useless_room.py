"""What is free and of no use: room on nodes where no waiting pod fits.

A resource that is free on a node is of use there if some waiting pod passes every filter, has room on the node now, and asks for that
resource. A resource for which no waiting pod asks counts as of use: it is not the reason that pods wait.

Waiting pods are asked about once a kind: pods that all rules treat alike are one kind.
"""

from __future__ import annotations

import numpy as np

from navarch.engine.session import Session
from navarch.ingest.groups import shown_key
from navarch.model.resources import PODS, IntArray
from navarch.model.status import TaskStatus

MOST_KINDS = 50
"""Kinds of waiting pods that are asked about."""


def waiting_kinds(session: Session, most: int | None = MOST_KINDS) -> list[tuple[int, list[str], int]]:
    """One waiting pod of each kind, the jobs that have such pods, and how many they are. `most`: only so many kinds; None: all."""
    by_class: dict[int, tuple[int, dict[str, None], int]] = {}
    for job in session.jobs_with_pending():
        for task in session.sorted_tasks(job.tasks_in(TaskStatus.PENDING)):
            number = session.class_of(task).number
            first, jobs, count = by_class.get(number, (task, {}, 0))
            jobs[shown_key(job.key)] = None
            by_class[number] = (first, jobs, count + 1)
    return [(task, list(jobs), count) for task, jobs, count in list(by_class.values())[:most]]


def useless_room(session: Session) -> IntArray:
    """(resources, nodes): what is free on each node of the snapshot and of use to no waiting pod. All zero where nothing waits."""
    free: IntArray = np.maximum(session.nodes.idle, 0)
    tasks = [task for task, _, _ in waiting_kinds(session)]
    if not tasks:
        return np.zeros_like(free)
    of_use = np.zeros(free.shape, dtype=bool)
    of_use[PODS] = True
    asked = np.zeros(len(free), dtype=bool)
    for task in tasks:
        kind = session.class_of(task)
        asked |= kind.request > 0
        view = session.view(kind)
        of_use |= (kind.request > 0)[:, None] & (view.feasible() & view.idle)[None, :]
    return np.where(of_use | ~asked[:, None], 0, free)
