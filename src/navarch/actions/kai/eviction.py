"""The actions that evict over a tree of queues: consolidation moves, reclaim takes from other queues, preempt from lower priority.

Each walks the waiting jobs in order of fairness, asks whether the job may evict at all, and has the solver find who must go.
A job is served once: it does not evict again in the same cycle to grow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from navarch.actions.kai.job_signatures import FailedJobs
from navarch.actions.kai.pending_jobs import FairAction, not_ready
from navarch.actions.kai.placement_failures import Failure, failed_task
from navarch.actions.kai.queue_forest import JobForest
from navarch.actions.kai.solver.search_budget import ActionBudget
from navarch.actions.kai.solver.solver import Solver
from navarch.actions.kai.solver.victim_queue import VictimPool
from navarch.actions.kai.sorted_jobs import JobShelf
from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.gangs.run_times import Lifetimes
from navarch.engine.job import Job
from navarch.engine.points.gang_protocols import (
    MayPreempt,
    MayReclaim,
    PreemptScenario,
    PreemptVictim,
    ReclaimBound,
    ReclaimScenario,
    ReclaimVictim,
    Scenario,
    Unresolvable,
)
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.engine.statement import Statement
from navarch.engine.victims.protected import ProtectedPods
from navarch.model.resources import BoolArray, IntArray
from navarch.model.status import ON_NODE, TaskStatus


class EvictingAction(FairAction, ABC):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._shelf: JobShelf | None = None
        self.budget = ActionBudget(session, self.name)

    def execute(self) -> None:
        session = self.session
        uses_signatures = bool(session.policy.param("useSchedulingSignatures"))
        failed: dict[str, FailedJobs] = {}
        forest = JobForest(session, self.jobs(), self._next, depth=self.depth)
        while (job := forest.pop()) is not None:
            chunk = self._next(job)
            if not chunk or self._broken_up(job) or not self.may_start(job, chunk):
                continue
            alike = failed.setdefault(self.table(job), FailedJobs(session))
            if uses_signatures and alike.hopeless(job):
                continue
            if self._beyond_help(job, chunk) or self.budget.closed_to(job):
                continue
            statement = self.solve(job, chunk)
            if statement is None:
                if not self.budget.was_cut(job):
                    alike.note(job)
                continue
            self._commit(statement)

    def _next(self, job: Job) -> list[int]:
        return next_to_place(self.session, job.tree)

    def _broken_up(self, job: Job) -> bool:
        """Whether the job itself was a victim since it came into the line: what is left of it could not start."""
        if job.tree.could_start():
            return False
        job.refuse(not_ready(job))
        return True

    def _beyond_help(self, job: Job, chunk: list[int]) -> bool:
        for plugin in self.session.implementing(Unresolvable):
            for task in chunk:
                reason = plugin.unresolvable_reason(task)
                if reason is not None:
                    job.refuse(failed_task(job, Failure(task, reason)))
                    return True
        return False

    def _commit(self, statement: Statement) -> None:
        lifetimes = self.session.shared(Lifetimes)
        moved = {operation.job.row: operation.job for operation in statement.operations if operation.job is not None}
        for operation in statement.operations:
            if operation.kind == TaskStatus.RELEASING and not operation.void and operation.job is not None:
                lifetimes.is_evicted(operation.job)
        statement.commit()
        for job in moved.values():
            self.shelf.renew(job, keep=self._may_give(job))

    # what the actions differ in

    def jobs(self) -> list[Job]:
        return self.waiting_jobs(delayed=False)

    def table(self, job: Job) -> str:
        """Jobs of one table that are alike and failed stand for each other."""
        return job.queue.name

    def may_start(self, job: Job, chunk: list[int]) -> bool:
        return True

    @abstractmethod
    def solve(self, job: Job, chunk: list[int]) -> Statement | None:
        """A statement that makes room for the next tasks of the job, ready to be committed."""

    def _anyone(self, rows: BoolArray, allows: Callable[[Job], bool]) -> bool:
        """Whether there may be a victim: among these jobs, or among those that have moved since the cycle began. To ask columns
        is cheap; to take down the shelf costs as much as there are running jobs."""
        if (rows & self._standing).any():
            return True
        return any(job.version and self._may_give(job) and allows(job) for job in self.session.touched_jobs)

    @cached_property
    def _standing(self) -> BoolArray:
        """(jobs,): preemptable, and on some node when the cycle began."""
        jobs = self.session.snapshot.jobs
        standing: BoolArray = jobs.preemptable & jobs.counts[:, ON_NODE].any(axis=1)
        return standing

    @property
    def shelf(self) -> JobShelf:
        """Jobs that may be evicted and hold or are promised something, kept in order while the action runs."""
        if self._shelf is None:
            self._shelf = JobShelf(self.session, [job for job in self.session.all_jobs() if self._may_give(job)])
        return self._shelf

    def _may_give(self, job: Job) -> bool:
        """Not one of whose pods the node is gone: nothing is known to become free. In strict mode what this cycle decided
        stands."""
        session = self.session
        active = job.tree.active
        if not job.spec.preemptable or not active or (session.node[active] < 0).any():
            return False
        protected = session.shared(ProtectedPods).rows
        if protected is not None and protected[active].any():
            return False
        if session.semantics.evicted_promise_stays:
            return True
        return all(ON_NODE[session.status[task]] and ON_NODE[session.task(task).status] for task in active)


class Consolidation(EvictingAction):
    """Moves running pods together so that a waiting job fits; nobody loses a place"""

    name = "consolidation"

    def execute(self) -> None:
        if self.session.policy.param("maxNumberConsolidationPreemptees") != 0:
            super().execute()

    def jobs(self) -> list[Job]:
        return [job for job in self.waiting_jobs(delayed=False) if job.spec.preemptable]

    def table(self, job: Job) -> str:
        return ""

    def solve(self, job: Job, chunk: list[int]) -> Statement | None:
        if not self._enough_in_all(chunk):
            return None
        most = self.session.policy.param("maxNumberConsolidationPreemptees")
        assert isinstance(most, int)
        pool = VictimPool(self.shelf, lambda each: each.row != job.row, None if most < 0 else most + 1)
        return Solver(self.session, pool, _nobody_lost, self.budget, moves_only=True).solve(job)

    def _enough_in_all(self, chunk: list[int]) -> bool:
        """Whether what is free somewhere, put together, would do: to move pods makes no more of it. GPUs and parts of them are
        looked for on nodes that are ready; of everything else a node that holds too much counts as having none."""
        session = self.session
        devices = session.devices
        assert devices is not None
        ready = session.ready_nodes()
        free = np.maximum(devices.idle_parts() + devices.releasing_parts(), 0)
        kinds = [session.class_of(task) for task in chunk]
        asked = np.sum([np.maximum(kind.request - session.slack, 0) for kind in kinds], axis=0)
        asked[[*devices.dims, *(dim for dim, _ in devices.slices)]] = 0
        if (asked > np.maximum(session.nodes.future_idle, 0).sum(axis=1)).any():
            return False
        if sum(devices.gpus_of(kind, 0) for kind in kinds) > free[ready].sum():
            return False
        memory = sum(k.shape.devices.count * k.shape.devices.memory for k in kinds if k.shape.devices is not None)
        return memory <= float((free * devices.memory)[ready].sum())


def _nobody_lost(scenario: Scenario) -> bool:
    return all(task in scenario.stays for _, tasks in scenario.victims for task in tasks)


class KaiReclaim(EvictingAction):
    """Takes from queues that hold more than their share what a queue below its share waits for"""

    name = "reclaim"
    dialect = "kai"

    def may_start(self, job: Job, chunk: list[int]) -> bool:
        for plugin in self.session.implementing(MayReclaim)[:1]:
            reason: Reason | None = plugin.may_reclaim(job, chunk)
            if reason is not None:
                job.refuse(reason)
            return reason is None
        return True

    def solve(self, job: Job, chunk: list[int]) -> Statement | None:
        session = self.session
        filters = session.implementing(ReclaimVictim)
        validators = session.implementing(ReclaimScenario)

        def allows(each: Job) -> bool:
            return each.queue is not job.queue and all(p.reclaim_victim(job, chunk, each) for p in filters)

        def could_take(tasks: Sequence[int], lacking: IntArray) -> bool:
            return all(p.reclaim_bound(job, tasks, pool.jobs(), lacking) for p in bounds)

        jobs = session.snapshot.jobs
        if not self._anyone(jobs.queue != jobs.queue[job.row], allows):
            return None
        pool = VictimPool(self.shelf, allows)
        bounds = session.implementing(ReclaimBound)
        solver = Solver(session, pool, lambda s: all(p.reclaim_scenario(s) for p in validators), self.budget, could_take=could_take)
        return solver.solve(job)


class KaiPreempt(EvictingAction):
    """Makes room for a job among those of its own queue that have lower priority"""

    name = "preempt"
    dialect = "kai"

    def solve(self, job: Job, chunk: list[int]) -> Statement | None:
        session = self.session
        if any(p.may_preempt(job, chunk) is not None for p in session.implementing(MayPreempt)):
            return None
        filters = session.implementing(PreemptVictim)
        validators = session.implementing(PreemptScenario)

        def allows(each: Job) -> bool:
            lower = each.queue is job.queue and each.row != job.row and each.priority < job.priority
            return lower and all(p.preempt_victim(job, each) for p in filters)

        jobs = session.snapshot.jobs
        if not self._anyone((jobs.queue == jobs.queue[job.row]) & (jobs.priority < job.priority), allows):
            return None
        pool = VictimPool(self.shelf, allows)
        return Solver(session, pool, lambda s: all(p.preempt_scenario(s) for p in validators), self.budget).solve(job)
