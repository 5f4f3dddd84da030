"""Moves that defragment: running pods that stand elsewhere, so that a pod of the job fits where they stood.

The search looks at room alone and finds one or two pods of one node, each with another node that takes it. A trial says whether the
job then starts. In a cluster a move ends a pod and starts it again elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.explanation.documents import Input, copied
from navarch.explanation.subject import Object
from navarch.model.resources import IntArray
from navarch.model.status import TaskStatus

_NODES = 16
"""Nodes that are looked at: those that lack least."""
_MOST_PODS = 12
"""Pods of a node that are thought of as moving, the smallest first."""


class Move:
    """A pod that stands on another node than in the input."""

    def __init__(self, pod: str, before: str, after: str, manifest: Object) -> None:
        self.pod, self.before, self.after = pod, before, after
        self.manifest = manifest

    @property
    def text(self) -> str:
        return f"{self.pod} from {self.before} to {self.after}"


def moves_for(session: Session, job: Job, given: Input) -> Iterator[list[Move]]:
    """Sets of one or two moves that make room for the first pod of the job that finds none; the fewest moves first."""
    free: IntArray = session.nodes.idle.copy()
    for task in session.sorted_tasks(job.tasks_in(TaskStatus.PENDING)):
        kind = session.class_of(task)
        open_to = session.view(kind).feasible()
        fits = open_to & np.all(free >= kind.request[:, None], axis=0)
        if fits.any():
            free[:, int(np.argmax(fits))] -= kind.request
            continue
        lacking = np.maximum(kind.request[:, None] - free, 0) / np.maximum(kind.request, 1)[:, None]
        near = np.argsort(np.where(open_to, lacking.sum(axis=0), np.inf), kind="stable")[:_NODES]
        nodes = [int(node) for node in near.tolist() if open_to[node]]
        for size in (1, 2):
            for node in nodes:
                yield from _from_node(session, job, given, free, node, kind.request, size)
        return


def _from_node(
    session: Session, job: Job, given: Input, free: IntArray, node: int, request: IntArray, size: int
) -> Iterator[list[Move]]:
    rows = [row for row in np.flatnonzero(session.node == node).tolist() if session.status[row] == TaskStatus.RUNNING]
    rows = [row for row in rows if session.job_of(row) is not job]
    rows.sort(key=lambda row: (int(session.class_of(row).request.sum()), session.task(row).key))
    for some in combinations(rows[:_MOST_PODS], size):
        freed = sum((session.class_of(row).request for row in some), start=free[:, node].copy())
        if np.all(freed >= request):
            moves = _elsewhere(session, given, free.copy(), node, some)
            if moves:
                yield moves
                return  # one set of a node is enough


def _elsewhere(session: Session, given: Input, free: IntArray, node: int, rows: Sequence[int]) -> list[Move]:
    """Where each of the pods could stand instead; empty where one of them could not, or is no object of the input."""
    moves = []
    for row in rows:
        spec, kind = session.task(row), session.class_of(row)
        found = given.find("Pod", spec.namespace, spec.name)
        fits = session.view(kind).feasible() & np.all(free >= kind.request[:, None], axis=0)
        fits[node] = False
        if not fits.any() or not found:
            return []
        other = int(np.argmax(fits))
        free[:, other] -= kind.request
        manifest: Object = copied(found[0])
        manifest["spec"]["nodeName"] = session.nodes.names[other]
        moves.append(Move(spec.key, session.nodes.names[node], session.nodes.names[other], manifest))
    return moves
