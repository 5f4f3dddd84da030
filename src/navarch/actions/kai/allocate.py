"""KAI's allocate: places the next chunk of the next job in fairness order, until no job is left.

A job that got its minimum returns to its queue for the rest, so that elastic jobs grow one pod at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from navarch.actions.kai.pending_jobs import KaiAction
from navarch.actions.kai.placement_failures import note_failures
from navarch.actions.kai.placing import ChunkPlacement
from navarch.actions.kai.queue_forest import QueueForest
from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.gangs.job_times import JobTimes
from navarch.engine.job import Job
from navarch.engine.points.gang_protocols import NodeSet
from navarch.model.status import TaskStatus


class KaiAllocate(KaiAction):
    """Places waiting jobs on idle resources or resources in release, in the order of fair shares"""

    name = "allocate"
    dialect = "kai"

    def execute(self) -> None:
        promised = [job for job in self.waiting_jobs() if self._has_promise(job)]
        if promised:  # jobs for which others were evicted come first; otherwise the freed room may go to another
            self._serve(promised, self._has_promise)
        self._serve(self.waiting_jobs(), lambda job: True)

    def _has_promise(self, job: Job) -> bool:
        return bool(self.session.snapshot.tasks.nominated[job.tasks_in(TaskStatus.PENDING)].any())

    def _serve(self, jobs: list[Job], may_go_on: Callable[[Job], bool]) -> None:
        """Place jobs in fairness order. A job that got a chunk has another turn if it may go on."""
        session = self.session
        everywhere = np.ones(len(session.nodes), dtype=bool)
        within = NodeSet(everywhere, everywhere=True)
        forest = QueueForest(session, jobs, self._next, depth=self.depth)
        while (job := forest.pop()) is not None:
            session.tried[job.key] = None
            session.start_turn(job)
            active = job.tree.active
            started = bool(active) and any(session.status[task] != TaskStatus.PIPELINED for task in active)
            statement = session.statement()
            placement = ChunkPlacement(session, statement, everywhere, within=within)
            if not placement.place(job):
                note_failures(job, placement.failures)
                continue
            waits = any(op.kind == TaskStatus.PIPELINED for op in statement.operations)
            statement.commit()
            if not started and not waits:
                session.shared(JobTimes).note_start(job)
            if job.tree.has_pending and may_go_on(job):
                forest.push(job)

    def _next(self, job: Job) -> list[int]:
        return next_to_place(self.session, job.tree)
