"""The single-node bound: proves before the first step that the search node by node cannot succeed.

A scenario of that search evicts, besides the recorded victims, batches of the jobs on one node. So on that node at most everything
evictable is freed, and other nodes are affected only by those of these jobs that span several nodes. For every node the bound sums
how many more tasks would fit on these nodes if everything evictable on them were freed. A job whose tasks must be placed again
brings that much less, or nothing. If no node reaches the missing number, `resource_bound` would refuse every scenario of the
search, and the search is skipped. Shared devices are not counted; if there are any, nothing is excluded.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from navarch.actions.kai.solver.resource_bound import ClassDemand, ResourceBound
from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, IntArray
from navarch.model.status import IS_ACTIVE

_MOST_NODES = 64
"""A job on more nodes than this is not examined: its nodes count as unlimited."""
_ANYTHING = 1 << 40


class SingleNodeBound:
    def __init__(self, session: Session, victims: Iterable[Job]) -> None:
        """`victims`: all jobs that may be victims."""
        rows, jobs = _held(session, victims)
        nodes = session.node[rows].astype(np.intp)
        self.session = session
        self.traces = session.devices is not None and session.devices.any_shared
        requests = session.snapshot.shape_request[:, session.shape[rows]]
        self._held: IntArray = np.zeros((requests.shape[0], len(session.nodes)), dtype=np.int64)
        for dim, amounts in enumerate(requests):
            if amounts.any():
                np.add.at(self._held[dim], nodes, amounts)
        places = np.unique(jobs * len(session.nodes) + nodes)
        owners, counts = np.unique(places // max(len(session.nodes), 1), return_counts=True)
        self._spread: list[tuple[list[int], list[int]]] = []
        """For each job on several nodes: these nodes, and its tasks."""
        for job in owners[counts > 1].tolist():
            mine = jobs == job
            self._spread.append((np.unique(nodes[mine]).tolist(), rows[mine].tolist()))

    def excludes_all(self, bound: ResourceBound) -> bool:
        """Whether no scenario can provide what `bound`, which includes the recorded victims, lacks."""
        if self.traces or bound.traces:
            return False
        return any(kind.total + self._most_gained(kind, bound) < kind.wanted for kind in bound.kinds)

    def _most_gained(self, kind: ClassDemand, bound: ResourceBound) -> int:
        """The largest number of further tasks of a class that the victims of any one node make room for."""
        gain = np.maximum(kind.most(kind.free + self._held[kind.dims]) - kind.counts, 0)
        out = gain.copy()
        for spots, tasks in self._spread:
            if len(spots) > _MOST_NODES:
                out[spots] = _ANYTHING
                continue
            again = sum(bound.asks_no_less(task, kind) for task in tasks) if kind.all_return else 0
            out[spots] += np.maximum(int(gain[spots].sum()) - gain[spots] - again, 0)
        return int(out.max(initial=0))


def _held(session: Session, victims: Iterable[Job]) -> tuple[IntArray, IntArray]:
    """The tasks of these jobs that hold or are promised a node, and the row of each one's job."""
    jobs, tasks = session.snapshot.jobs, session.snapshot.tasks
    plain: BoolArray = np.zeros(len(jobs.keys) + 1, dtype=bool)  # the last is for tasks without a job
    parted: list[tuple[int, int]] = []
    for job in victims:
        if len(job.tree.leaves) == 1:
            plain[job.row] = True
        else:
            parted += [(task, job.row) for task in job.tree.active if session.node[task] >= 0]
    rows = np.flatnonzero(plain[tasks.job] & tasks.alive & IS_ACTIVE[session.status] & (session.node >= 0))
    found = np.array(parted, dtype=np.int64).reshape(-1, 2)
    return np.concatenate([rows, found[:, 0]]), np.concatenate([tasks.job[rows].astype(np.int64), found[:, 1]])
