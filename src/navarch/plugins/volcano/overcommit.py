"""Overcommit: how much work may be admitted beyond what the cluster can run at once.

Admitted jobs create pods, and pods that cannot run load the API server. So the minimums of admitted jobs may add up to at most
`overcommit-factor` times the cluster, minus what is used.
"""

from __future__ import annotations

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Vote
from navarch.engine.reasons import Event, Reason
from navarch.model.resources import FloatArray, IntArray
from navarch.plugins.queues.amounts import asked_dims, in_order
from navarch.plugins.queues.ledger import gated_requests, in_phase, minimum_of, queue_of_job, running_in_full, without_gated

FACTOR = 1.2
_FREED = (Event.POD_REMOVED, Event.JOB_CHANGED, Event.NODE_ADDED, Event.NODE_CHANGED)


class Overcommit(Plugin):
    """Admits jobs up to a multiple of the cluster"""

    name = "overcommit"
    arguments = (
        Argument("overcommit-factor", "float", FACTOR, "times the cluster that may be admitted", minimum=1),
        Argument("overcommit-asks-for-nodes", "bool", True, "whether pods of jobs that it does not admit ask autoscalers for nodes"),
    )

    def open(self) -> None:
        session = self.session
        jobs = session.snapshot.jobs
        self.idle: FloatArray = session.total * np.float64(self.given.number("overcommit-factor")) - session.nodes.used.sum(axis=1)
        self._gated = gated_requests(session)
        asking = np.flatnonzero(jobs.has_min_resources)
        asking = asking[queue_of_job(session, asking) >= 0]
        admitted = in_phase(session, "Inqueue", asking)
        claiming = admitted | running_in_full(session, asking)
        admitted, rows = admitted[claiming], asking[claiming]
        minimum = jobs.min_resources[:, rows]
        claims = np.where(admitted, minimum, np.maximum(minimum - jobs.allocated[:, rows], 0))
        for column, row in enumerate(rows.tolist() if self._gated else ()):
            if row in self._gated:
                claims[:, column] = np.maximum(claims[:, column] - self._gated[row], 0)
        self.inqueue: IntArray = claims.sum(axis=1)

    def job_enqueueable(self, job: Job) -> Vote | Reason:
        if job.spec.min_resources is None or self.session.beyond_shares:
            return Vote.PERMIT
        asked, names = minimum_of(job), self.session.snapshot.resource_names
        dims = asked_dims(asked)
        short = dims[self.inqueue[dims] + asked[dims] > self.idle[dims]].tolist()
        if not short:
            return Vote.PERMIT
        figures: dict[str, int | float | str] = {}
        for dim in short:
            figures[f"{names[dim]} asked"] = int(asked[dim])
            figures[f"{names[dim]} admitted"] = int(self.inqueue[dim])
            figures[f"{names[dim]} idle with overcommit"] = float(self.idle[dim])
        overused = ", ".join(f"overused {name}" for name in in_order(short, names))
        cause = "" if self.given.flag("overcommit-asks-for-nodes") else "NotAdmitted"
        text = f"resource in cluster is overused: {overused}"
        return Reason("ClusterOverused", text, figures=figures, undone_by=_FREED, cause=cause)

    def job_enqueued(self, job: Job) -> None:
        if job.spec.min_resources is not None:
            self.inqueue = self.inqueue + without_gated(minimum_of(job), self._gated, job)
