"""allocate over a tree of queues: the next chunk of the next job, again and again, as fairness has it.

A job that got its minimum goes back into its queue for the rest, so that elastic jobs grow one pod at a time beside others.
"""

from __future__ import annotations

import numpy as np

from navarch.actions.kai.pending_jobs import FairAction
from navarch.actions.kai.placement_failures import note_failures
from navarch.actions.kai.placing import Placing
from navarch.actions.kai.queue_forest import JobForest
from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.gangs.run_times import Lifetimes
from navarch.engine.job import Job
from navarch.engine.points.gang_protocols import NodeSet
from navarch.model.status import TaskStatus


class KaiAllocate(FairAction):
    """Places waiting jobs on what is idle or being released, queue by queue as fair shares have it"""

    name = "allocate"
    dialect = "kai"

    def execute(self) -> None:
        session = self.session
        everywhere = np.ones(len(session.nodes), dtype=bool)
        within = NodeSet(everywhere, everywhere=True)
        forest = JobForest(session, self.waiting_jobs(), self._next, depth=self.depth)
        while (job := forest.pop()) is not None:
            session.tried[job.key] = None
            active = job.tree.active
            started = bool(active) and any(session.status[task] != TaskStatus.PIPELINED for task in active)
            statement = session.statement()
            placing = Placing(session, statement, everywhere, within=within)
            if not placing.place(job):
                note_failures(job, placing.failures)
                continue
            waits = any(op.kind == TaskStatus.PIPELINED for op in statement.operations)
            statement.commit()
            if not started and not waits:
                session.shared(Lifetimes).starts(job)
            if job.tree.has_pending:
                forest.push(job)

    def _next(self, job: Job) -> list[int]:
        return next_to_place(self.session, job.tree)
