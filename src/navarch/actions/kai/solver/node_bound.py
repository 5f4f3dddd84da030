"""The single-node bound: proves before the first step that a probe node by node, or the whole search, cannot succeed.

A scenario of that search evicts, besides the recorded victims, batches of the jobs on one node. So on that node at most everything
evictable is freed, and other nodes are affected only by those of these jobs that span several nodes. For every node the bound sums
how many more tasks would fit on these nodes if everything evictable on them were freed. Where victims must be placed again, a job
takes back on each further node as many places as it has tasks there that ask for no less; a job that is evicted task by task takes
back at least one. If no node reaches the missing number, `resource_bound` would refuse every scenario of the probe, and the probe is
skipped. Shared devices are not counted; if there are any, nothing is excluded.

Over a whole search (`excludes_probes`), each successful probe adds the victims of one more node to those that are recorded. So the
victims of the k-th success are on nodes that k nodes affect, and make room for at most the sum of the k largest gains. If this sum
is below what the job lacks, no probe with all tasks succeeds.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from navarch.actions.kai.solver.resource_bound import ClassDemand, ResourceBound
from navarch.engine.gangs.chunks import next_to_evict
from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, IntArray
from navarch.model.status import IS_ACTIVE


class SingleNodeBound:
    def __init__(self, session: Session, victims: Iterable[Job]) -> None:
        """`victims`: all jobs that may be victims."""
        rows, jobs = _held(session, victims)
        nodes, size = session.node[rows].astype(np.int64), max(len(session.nodes), 1)
        self.session = session
        self._shared = session.devices is not None and session.devices.any_shared
        requests = session.snapshot.shape_request[:, session.shape[rows]]
        self._held: IntArray = np.zeros((requests.shape[0], len(session.nodes)), dtype=np.int64)
        for dim, amounts in enumerate(requests):
            if amounts.any():
                np.add.at(self._held[dim], nodes, amounts)
        owners = np.unique(jobs * size + nodes) // size
        several = np.isin(jobs, owners[1:][owners[1:] == owners[:-1]])
        self._rows: IntArray = rows[several]
        """Tasks of the jobs that are on several nodes."""
        parts, self._part = np.unique(jobs[several] * size + nodes[several], return_inverse=True)
        """For each of these tasks the part that it belongs to: its job on its node."""
        self._node: IntArray = parts % size
        owners, self._job = np.unique(parts // size, return_inverse=True)
        """For each part its node, and its job."""
        first = self._rows[np.unique(jobs[several], return_index=True)[1]]
        self._whole: BoolArray = np.array([_goes_whole(session, int(task)) for task in first], dtype=bool)[self._job]

    def excludes_all(self, bound: ResourceBound) -> bool:
        """Whether no scenario can provide what `bound`, which includes the recorded victims, lacks."""
        return self.excludes_probes(bound, 1)

    def excludes_probes(self, bound: ResourceBound, probes: int) -> bool:
        """Whether the victims of so many nodes, and those that `bound` includes, cannot provide what `bound` lacks."""
        if self._shared:
            return False
        return any(kind.total + int(np.sort(self._gains(kind))[-probes:].sum()) < kind.wanted for kind in bound.kinds)

    def _gains(self, kind: ClassDemand) -> IntArray:
        """For each node, the largest number of further tasks of a class that its victims make room for."""
        gain: IntArray = np.maximum(kind.most(kind.free + self._held[kind.dims]) - kind.counts, 0)
        if not len(self._rows):
            return gain
        again: IntArray = np.zeros(len(self._node), dtype=np.int64)
        if kind.all_return:
            asked = self.session.snapshot.shape_request[kind.dims][:, self.session.shape[self._rows]]
            no_less = (asked >= np.array(kind.need)[:, None]).all(axis=0)
            count = np.bincount(self._part, weights=no_less)
            again = np.where(self._whole, count, count == np.bincount(self._part)).astype(np.int64)
        elsewhere = np.maximum(gain[self._node] - again, 0)
        of_job = np.bincount(self._job, weights=elsewhere)
        out: IntArray = gain + np.bincount(self._node, weights=of_job[self._job] - elsewhere, minlength=len(gain)).astype(np.int64)
        return out


def _goes_whole(session: Session, task: int) -> bool:
    """Whether the job of the task is evicted at once."""
    job = session.job_of(task)
    assert job is not None
    return len(next_to_evict(session, job.tree)) == len(job.tree.active)


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
