"""reclaim: a queue below its share takes back what other queues borrowed.

Each unit of a job has one statement (`pod_eviction`): for each task the first node in order where plugins offer enough tasks of other
queues. A queue that has its share (overused), or may not grow by a task (preemptive), does not reclaim.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from navarch.actions.allocate import keep_promises
from navarch.actions.job_queues import PREDICATE_ERROR_CACHE, JobHeap, LateQueueHeap, QueueHeap, takes_part, waiting_tasks
from navarch.actions.pod_eviction import PodEviction
from navarch.actions.preemptor_eligibility import keeps_to_label, needs_domain
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.engine.statement import Statement
from navarch.engine.victims import search
from navarch.engine.victims.owed import BORROWED
from navarch.engine.victims.search import limits_allow
from navarch.model.resources import IntArray
from navarch.model.status import TaskStatus


class Reclaim(PodEviction):
    """Evicts what other queues borrowed for a starving job"""

    name = "reclaim"
    reclaim = True
    arguments = (PREDICATE_ERROR_CACHE,)

    def execute(self) -> None:
        session = self.session
        keep_promises(session)
        jobs: dict[str, JobHeap] = {}
        for job in session.jobs_with_pending():
            elsewhere = needs_domain(job) if session.semantics.evictions_mind_domains else keeps_to_label(job)
            if not takes_part(session, job) or elsewhere:
                continue
            waiting = jobs.setdefault(job.queue.name, JobHeap(session))
            if session.job_starving(job):
                waiting.push(job)
        if session.semantics.reclaim_sorts_queues_late:
            self._in_stale_order(jobs)
            return
        queues = QueueHeap(session, (session.queues[name] for name, waiting in jobs.items() if len(waiting)))
        while (queue := queues.pop()) is not None:
            self._for_queue(queue, jobs[queue.name])

    def _in_stale_order(self, jobs: dict[str, JobHeap]) -> None:
        """Queues without waiting jobs have turns too, and a queue is pushed again after each of its jobs but the last. Neither serves
        a job; both put the heap in order once more."""
        session = self.session
        rows = session.snapshot.jobs
        admitted = np.unique(rows.queue[(rows.queue >= 0) & ~rows.marks.absent & ~rows.marks.unadmitted])
        names = {rows.queue_names[number] for number in admitted.tolist()} | jobs.keys()
        queues = LateQueueHeap(session, (session.queues[name] for name in names if name in session.queues))
        while (queue := queues.pop()) is not None:
            self._for_queue(queue, jobs.get(queue.name, JobHeap(session)), partial(queues.push, queue))

    def _for_queue(self, queue: Queue, jobs: JobHeap, after_each: Callable[[], None] = lambda: None) -> None:
        """`after_each` is called after each of its jobs but the last."""
        session = self.session
        reason = session.overused(queue)
        while (best := jobs.pop()) is not None:
            if reason is not None:
                best.refuse(reason)
                continue
            self.for_job(best, session.sorted_tasks(waiting_tasks(session, best, best_effort=None), reverse=True))
            if len(jobs):
                after_each()

    def _bound(self, job: Job) -> IntArray:
        """What evicting tasks of other queues could free on each node at most."""
        session = self.session
        key = (job.queue.name, "")
        found = self.bounds.get(key)
        if found is None:
            mask = search.candidates_elsewhere(session, job.queue, (TaskStatus.RUNNING,))
            found = self.bounds[key] = search.freed_at_most(session, mask)
        return found

    def for_task(self, job: Job, row: int, statement: Statement) -> bool:
        session, bound = self.session, self._bound(job)
        task = session.class_of(row)
        if session.task(row).preemption_policy == "Never":
            return False
        reason = self._refusal(job, task, statement) or session.pre_predicate(task)
        if reason is not None:
            job.refuse(reason)
            return False
        view = session.view(task)
        nodes = np.flatnonzero(~view.unresolvable() & search.within_reach(session, task, bound) & bound.any(axis=0))
        if session.shard is not None:
            nodes = np.concatenate([nodes[session.shard[nodes]], nodes[~session.shard[nodes]]])
        return any(self._on_node(job, row, node, statement) for node in nodes.tolist())

    def _refusal(self, job: Job, task: TaskClass, statement: Statement) -> Reason | None:
        """A unit that is owed as a whole is asked about with its first task; after that, limits alone hold it."""
        if self.standing is None:
            return self.session.preemptive(job.queue, task)
        if self.standing.depth == BORROWED:
            return self.standing.refusal()
        return None if len(statement) else self.session.preemptive(job.queue, task)

    def _on_node(self, job: Job, row: int, node: int, statement: Statement) -> bool:
        session = self.session
        task = session.class_of(row)
        candidates = self._candidates(job, node)
        if not candidates:
            return False
        offered = session.reclaimable(row, candidates)
        if not search.fits(session, task, node, search.freed_request(session, offered) if offered else None):
            return False

        view, check = session.view(task), session.semantics.victims_are_minimal

        def enough() -> bool:
            within = self.standing is None or limits_allow(session, job.queue, task)
            return within and search.fits(session, task, node) and (not check or view.passes(node))

        mark = statement.save_point()
        gone = search.evict_until(statement, search.victim_order(session, offered, job.queue), enough, for_=job.key, reason="reclaim")
        if gone is None:
            statement.roll_back(mark)
            return False
        if gone and session.semantics.victims_are_minimal:
            gone = search.give_back(statement, mark, enough)
        statement.pipeline(job, [row], [node], task, evicting=gone > 0)
        return True

    def _candidates(self, job: Job, node: int) -> list[int]:
        """Running, evictable tasks on the node, of queues that are reclaimable."""
        session = self.session
        out = []
        for task in session.residents.on(node):
            other = session.job_of(task)
            if other is not None and other.queue is not job.queue and other.queue.spec.reclaimable:
                if session.status[task] == TaskStatus.RUNNING and session.task(task).preemptable:
                    out.append(task)
        return self.may_evict(search.as_offered(session, out, job.queue))
