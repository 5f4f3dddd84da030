"""Jobs that can never start on the nodes there are, whatever ends: found without a trial, by a bound on room.

Each pod of a gang is one that some number of nodes could take if they were empty. Where all pods of the job together find fewer such
places than the gang needs, it does not start on the empty cluster. The bound is generous: it forgets that pods of different kinds
compete for the same node, and it looks at no queue. So it may miss a job that never starts, but what it finds is sure.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from navarch.engine.job import Job
from navarch.engine.reasons import Event, Reason
from navarch.engine.session import Session
from navarch.model.status import TaskStatus

_UNDONE_BY = (Event.NODE_ADDED, Event.NODE_CHANGED, Event.JOB_CHANGED, Event.POD_CHANGED)


def never_starts(session: Session, job: Job) -> Reason | None:
    """Why the job does not start even on empty nodes; None: it might."""
    needed = max(1, job.min_member) - job.ready_count
    pending = list(job.tasks_in(TaskStatus.PENDING))
    if needed <= 0 or not pending or session.semantics.overcommitted_nodes_are_out:
        return None  # in the last case figures of nodes are not those of empty ones
    counts = Counter(session.class_of(task).number for task in pending)
    room, seen = 0, set[int]()
    for task in pending:
        kind = session.class_of(task)
        if kind.number not in seen:
            seen.add(kind.number)
            room += min(counts[kind.number], _places(session, task, counts[kind.number]))
            if room >= needed:
                return None
    text = f"never: the empty cluster has room for {room} of the {needed} pods that it needs"
    return Reason("NeverStarts", text, figures={"room": room, "needed": needed}, undone_by=_UNDONE_BY)


def _places(session: Session, task: int, most: int) -> int:
    """How many such pods all nodes could take if they were empty, `most` at most. By labels, taints and amounts alone."""
    kind = session.class_of(task)
    view = session.view(kind)
    open_to = np.flatnonzero(view.static)
    dims = np.flatnonzero(kind.request - session.slack > 0)
    if not len(dims):
        return most if len(open_to) else 0
    size = session.snapshot.nodes.allocatable[np.ix_(dims, open_to)]
    each = (size // (kind.request - session.slack)[dims, None]).min(axis=0)
    return int(min(most, np.maximum(each, 0).sum()))
