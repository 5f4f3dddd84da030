"""preempt: a starving job evicts lower jobs of its own queue, then its better tasks evict its worse tasks.

Each unit of a job has one statement (`pod_eviction`). For each of its tasks the nodes are tried by score, best first. On a node the
victims that plugins allow are evicted in order until the task fits, the queue may take it, and the filters pass.
"""

from __future__ import annotations

import numpy as np

from navarch.actions.allocate import keep_promises
from navarch.actions.job_queues import PREDICATE_ERROR_CACHE, JobHeap, QueueHeap, takes_part, waiting_tasks
from navarch.actions.pod_eviction import PodEviction
from navarch.actions.preempt_dry_run import PreemptDryRun
from navarch.actions.preemptor_eligibility import may_evict_for, names_topology, needs_domain
from navarch.engine.arguments import Argument
from navarch.engine.job import Job
from navarch.engine.statement import Statement
from navarch.engine.victims import search
from navarch.model.resources import BoolArray, IntArray
from navarch.model.status import TaskStatus

EVICTABLE = (TaskStatus.BOUND, TaskStatus.RUNNING)


class Preempt(PodEviction):
    """Evicts lower jobs of the same queue for a starving job"""

    name = "preempt"
    arguments = (
        PREDICATE_ERROR_CACHE,
        Argument("enableTopologyAwarePreemption", "bool", False, "dry-run many nodes and take the one whose victims cost least"),
        Argument("topologyAwarePreemptWorkerNum", "int", 16, "the search is vectorised, without workers", has_effect=False),
        Argument("minCandidateNodesPercentage", "int", 10, "share of nodes to dry-run"),
        Argument("minCandidateNodesAbsolute", "int", 1, "dry-run at least so many nodes"),
        Argument("maxCandidateNodesAbsolute", "int", 100, "dry-run at most so many nodes"),
    )

    def execute(self) -> None:
        session = self.session
        keep_promises(session)
        jobs: dict[str, JobHeap] = {}
        starving: dict[str, list[Job]] = {}
        self._tasks: dict[int, list[int]] = {}
        for job in session.jobs_with_pending():
            elsewhere = needs_domain(job) if session.semantics.evictions_mind_domains else names_topology(job)
            if not takes_part(session, job) or elsewhere or not session.job_starving(job):
                continue
            tasks = waiting_tasks(session, job, best_effort=None)
            if tasks:
                self._tasks[job.row] = session.sorted_tasks(tasks, reverse=True)
                jobs.setdefault(job.queue.name, JobHeap(session)).push(job)
                starving.setdefault(job.queue.name, []).append(job)
        queues = QueueHeap(session, (session.queues[name] for name in jobs))
        session.beyond_shares = session.semantics.leftover_is_offered  # a queue beyond its share may still prefer its better jobs
        while (queue := queues.pop()) is not None:
            while (best := jobs[queue.name].pop()) is not None:
                self.for_job(best, self._tasks[best.row])
            for job in starving[queue.name]:
                self._inside_job(job)
        session.beyond_shares = False

    def _bound(self, job: Job) -> IntArray:
        """What evicting other jobs of its queue could free on each node at most. The same for every job without evictable tasks of
        its own."""
        session = self.session
        has_evictable = any(job.counts[status] for status in EVICTABLE)
        key = (job.queue.name, job.key if has_evictable else "")
        found = self.bounds.get(key)
        if found is None:
            candidates = search.candidates_in_queue(session, job.queue, EVICTABLE)
            if has_evictable:
                candidates &= session.snapshot.tasks.job != job.row
            found = self.bounds[key] = search.freed_at_most(session, candidates)
        return found

    def for_task(self, job: Job, row: int, statement: Statement) -> bool:
        return self._for_task(job, row, statement, self._bound(job), inside=False)

    def _inside_job(self, job: Job) -> None:
        """Single tasks in statements of their own; victims are worse tasks of the same job."""
        session = self.session
        if session.semantics.victims_are_minimal and not any(job.counts[status] for status in EVICTABLE):
            return
        bound: IntArray | None = None
        for task in session.sorted_tasks(job.tasks_in(TaskStatus.PENDING)):
            if session.task(task).gates:
                continue
            if bound is None:
                mine = session.snapshot.tasks.job == job.row
                bound = search.freed_at_most(session, search.candidates_in_queue(session, job.queue, EVICTABLE) & mine)
            statement = session.statement()
            self.take_standing(job, [task])
            if not self._for_task(job, task, statement, bound, inside=True):
                statement.discard()
                return
            self.commit(statement)

    def _for_task(self, job: Job, row: int, statement: Statement, bound: IntArray, *, inside: bool) -> bool:
        session = self.session
        task = session.class_of(row)
        if not may_evict_for(session, row) or session.pre_predicate(task) is not None:
            return False
        view = session.view(task)
        candidates = ~view.unresolvable()
        errors = job.fit_errors.get(row)
        if errors is not None and errors.unresolvable.size:
            candidates = candidates & ~errors.unresolvable
        for group in self._shards(candidates):
            if self.given.flag("enableTopologyAwarePreemption"):
                attempt = PreemptDryRun(session, job, row, statement, self.given)
                if attempt.run(group, lambda node: self._offered(job, row, node, inside=inside)):
                    return True
                continue
            group = group & search.within_reach(session, task, bound)
            if group.any() and self._try_nodes(job, row, statement, group, inside=inside):
                return True
        return False

    def _shards(self, candidates: BoolArray) -> list[BoolArray]:
        mine = self.session.shard
        return [candidates] if mine is None else [candidates & mine, candidates & ~mine]

    def _try_nodes(self, job: Job, row: int, statement: Statement, group: BoolArray, *, inside: bool) -> bool:
        session = self.session
        task = session.class_of(row)
        view = session.view(task)
        scores = view.totals(~view.unresolvable())
        nodes = np.flatnonzero(group)
        for node in nodes[np.argsort(-scores[nodes], kind="stable")].tolist():
            offered = session.preemptable(row, self._offered(job, row, node, inside=inside))
            if not search.fits(session, task, node, search.freed_request(session, offered) if offered else None):
                continue

            def enough(node: int = node) -> bool:
                return session.allocatable(job.queue, task, 1)[0] > 0 and search.fits(session, task, node) and view.passes(node)

            mark = statement.save_point()
            ordered = search.victim_order(session, offered, job.queue)
            gone = search.evict_until(statement, ordered, enough, for_=job.key, reason="preempt")
            if gone is None:
                statement.roll_back(mark)
                continue
            if gone and session.semantics.victims_are_minimal:
                gone = search.give_back(statement, mark, enough)
            statement.pipeline(job, [row], [node], task, evicting=gone > 0)
            return True
        return False

    def _offered(self, job: Job, row: int, node: int, *, inside: bool) -> list[int]:
        """Tasks on the node that this preemptor may evict: of its queue, of other jobs or (inside) of its own job."""
        session = self.session
        empty = session.snapshot.shape_best_effort
        only_empty = empty[session.shape[row]]
        out = []
        for task in session.residents.on(node):
            other = session.job_of(task)
            if other is None or (other is job) != inside or other.queue is not job.queue:
                continue
            if session.status[task] in EVICTABLE and session.task(task).preemptable:
                if not only_empty or empty[session.shape[task]]:
                    out.append(task)
        return self.may_evict(search.as_offered(session, out, job.queue))
