"""backfill: places pods without requests on any node whose filters pass, after pods with requests."""

from __future__ import annotations

from navarch.actions.job_queues import PREDICATE_ERROR_CACHE, JobHeap, QueueHeap, takes_part, waiting_tasks
from navarch.actions.preemptor_eligibility import keeps_to_label
from navarch.engine.action import Action
from navarch.engine.job import Job
from navarch.engine.placement.fit_errors import FitErrors
from navarch.model.status import TaskStatus


class Backfill(Action):
    """Places pods without requests"""

    name = "backfill"
    arguments = (PREDICATE_ERROR_CACHE,)

    def execute(self) -> None:
        for job, task in self._collect():
            self._place(job, task)

    def _collect(self) -> list[tuple[Job, int]]:
        """Every such task, in the current order of queues, jobs and tasks."""
        session = self.session
        empty = session.snapshot.shape_best_effort
        jobs: dict[str, JobHeap] = {}
        for job in session.jobs_with_pending():
            if not job.best_effort_pending and not job.counts[TaskStatus.PIPELINED]:
                continue
            if keeps_to_label(job) or not takes_part(session, job):
                continue
            for task in job.tasks_in(TaskStatus.PIPELINED):
                if empty[session.shape[task]]:
                    session.statement().withdraw(task)
            jobs.setdefault(job.queue.name, JobHeap(session)).push(job)
        queues, out = QueueHeap(session, (session.queues[name] for name in jobs)), []
        while (queue := queues.pop()) is not None:
            while (following := jobs[queue.name].pop()) is not None:
                out += [(following, task) for task in session.sorted_tasks(waiting_tasks(session, following, best_effort=True))]
        return out

    def _place(self, job: Job, row: int) -> None:
        session = self.session
        session.start_turn(job)
        task = session.class_of(row)
        refusal = session.pre_predicate(task)
        if refusal is not None:
            job.fit_errors[row] = FitErrors(
                len(session.nodes), message=refusal.message, codes=(refusal.code,), undone_by=refusal.undone_by
            )
            return
        view = session.view(task)
        group = view.feasible() & view.idle
        if session.shard is not None and (group & session.shard).any():
            group = group & session.shard
        if not group.any():
            job.fit_errors[row] = view.explain()
            return
        node = view.best(group)
        failure = view.scoring_failure()
        if failure is not None:
            job.refuse(failure)
            return
        vetoed = session.statement().allocate(job, [row], [node], task)
        if vetoed:
            job.refuse(vetoed[row])
            return
        if session.job_ready(job):
            self._bind(job)

    def _bind(self, job: Job) -> None:
        """Bind every allocated task of the job, including those of earlier turns."""
        session = self.session
        for task in job.tasks_in(TaskStatus.ALLOCATED):
            session.statement().bind_allocated(job, [task])
