"""preempt and reclaim as kube-batch has them: for a task, running pods of one node are evicted until they alone cover its request.

What is idle on the node does not count, and victims go in the reverse order of tasks, whatever job they are of. preempt commits
as soon as its job would be ready and lets it queue for more; reclaim serves one task of a job in a cycle, and what it evicted stays
evicted whether or not the gang ever starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cmp_to_key

import numpy as np

from navarch.actions.job_queues import JobHeap, QueueHeap, Turns, takes_part, waiting_tasks
from navarch.actions.preemptor_eligibility import keeps_to_label
from navarch.engine.action import Action
from navarch.engine.job import Job
from navarch.engine.placement.shared_devices import shares_devices
from navarch.engine.reasons import Event, Reason
from navarch.engine.statement import Statement
from navarch.engine.victims.search import total_request
from navarch.model.resources import PODS
from navarch.model.status import TaskStatus

RUNNING = TaskStatus.RUNNING
NO_EVICTION = "no pod is evicted for a part of a GPU under this policy: it starts when one is free"


class CoveringEviction(Action):
    """What both actions share: the waiting jobs, and evicting on one node until the victims cover the request."""

    def _waiting(self) -> dict[str, JobHeap]:
        """Jobs with pending tasks by queue; their tasks, best last, are in `tasks`."""
        session = self.session
        self.tasks: dict[int, list[int]] = {}
        jobs: dict[str, JobHeap] = {}
        for job in session.jobs_with_pending():
            if takes_part(session, job) and not keeps_to_label(job):
                self.tasks[job.row] = session.sorted_tasks(waiting_tasks(session, job, best_effort=None), reverse=True)
                jobs.setdefault(job.queue.name, JobHeap(session)).push(job)
        return jobs

    def _evict_for(
        self,
        job: Job,
        row: int,
        statement: Statement,
        nodes: Iterable[int],
        is_candidate: Callable[[Job], bool],
        allowed: Callable[[int, list[int]], list[int]],
    ) -> bool:
        """On the first of these nodes where the victims that are `allowed` cover the task, evict as many as it takes."""
        session = self.session
        task = session.class_of(row)
        if shares_devices(task):  # covering a request by those of victims says nothing about devices that several pods share
            job.refuse(Reason("GpuNotShared", NO_EVICTION, undone_by=(Event.POD_REMOVED, Event.NODE_ADDED)))
            return False
        dims = session.view(task).dims
        dims = dims[dims != PODS]
        need = task.request[dims]
        for node in nodes:
            there = [t for t in session.residents.on(node) if session.status[t] == RUNNING]
            candidates = [t for t in there if (other := session.job_of(t)) is not None and is_candidate(other)]
            candidates.sort(key=cmp_to_key(session.compare_tasks), reverse=True)
            victims = allowed(row, candidates) if candidates else []
            if not victims or not (need <= total_request(session, victims)[dims]).all():
                continue
            freed = np.zeros_like(task.request)
            for victim in victims:
                if (need <= freed[dims]).all():
                    break
                statement.evict(victim, for_=job.key, reason=self.name)
                freed += session.class_of(victim).request
            statement.pipeline(job, [row], [node], task, evicting=True)
            return True
        return False


class KubeBatchPreempt(CoveringEviction):
    """Evicts lower jobs of the same queue, as kube-batch does"""

    name = "preempt"
    dialect = "kube-batch"

    def execute(self) -> None:
        session = self.session
        jobs = self._waiting()
        waiting = session.jobs_at(self.tasks)
        queues = QueueHeap(session, (session.queues[name] for name in jobs))
        while (queue := queues.pop()) is not None:
            while (best := jobs[queue.name].pop()) is not None:
                if self._for_job(best):
                    jobs[queue.name].push(best)
            for job in waiting:
                if job.queue is queue:
                    self._inside_job(job)

    def _for_job(self, job: Job) -> bool:
        """Until the job would be ready, on one statement. True: something was evicted for it, and it may ask for more."""
        session, tasks = self.session, self.tasks[job.row]
        session.start_turn(job)
        statement = session.statement()
        while tasks:
            self._for_task(job, tasks.pop(), statement, lambda other: other is not job and other.queue is job.queue)
            if session.job_pipelined(job):
                break
        if not session.job_pipelined(job):
            statement.discard()
        evicted = len(statement) > 0
        statement.commit()
        return evicted

    def _inside_job(self, job: Job) -> None:
        tasks = self.tasks[job.row]
        while tasks:
            statement = self.session.statement()
            done = self._for_task(job, tasks.pop(), statement, lambda other: other is job)
            statement.commit()
            if not done:
                return

    def _for_task(self, job: Job, row: int, statement: Statement, is_candidate: Callable[[Job], bool]) -> bool:
        session = self.session
        view = session.view(session.class_of(row))
        group = view.feasible()
        nodes = np.flatnonzero(group)
        if not len(nodes):
            return False
        best_first = nodes[np.argsort(-view.totals(group)[nodes], kind="stable")].tolist()
        return self._evict_for(job, row, statement, best_first, is_candidate, session.preemptable)


class KubeBatchReclaim(CoveringEviction):
    """Evicts what other queues borrowed, one task of a job at a time, as kube-batch does"""

    name = "reclaim"
    dialect = "kube-batch"

    def execute(self) -> None:
        turns = Turns(self.session, self._waiting())
        while (job := turns.next()) is not None:
            if self.tasks[job.row] and self._for_task(job, self.tasks[job.row].pop()):
                turns.put_back(job.queue)

    def _for_task(self, job: Job, row: int) -> bool:
        session = self.session
        nodes = np.flatnonzero(session.view(session.class_of(row)).feasible()).tolist()
        statement = session.statement()

        def elsewhere(other: Job) -> bool:
            return other.queue is not job.queue

        done = self._evict_for(job, row, statement, nodes, elsewhere, session.reclaimable)
        statement.commit()
        return done
