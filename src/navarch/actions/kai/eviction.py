"""KAI's evicting actions: consolidation moves pods, reclaim takes from other queues, preempt takes from jobs of lower priority.

Each takes the pending jobs in fairness order, checks whether the job may evict, and lets the solver find victims. A job is served
once: it does not evict again in the same cycle to grow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from navarch.actions.kai.job_signatures import FailedJobs
from navarch.actions.kai.pending_jobs import KaiAction, not_ready
from navarch.actions.kai.placement_failures import Failure, failed_task
from navarch.actions.kai.queue_forest import QueueForest
from navarch.actions.kai.solver.search_budget import ActionBudget
from navarch.actions.kai.solver.solver import Solver
from navarch.actions.kai.solver.victim_queue import VictimPool, counts_active
from navarch.actions.kai.sorted_jobs import SortedJobs
from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.gangs.job_times import JobTimes
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


class EvictingAction(KaiAction, ABC):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._sorted_jobs: SortedJobs | None = None
        self.budget = ActionBudget(session, self.name)

    def execute(self) -> None:
        session = self.session
        uses_signatures = bool(session.policy.param("useSchedulingSignatures"))
        failed: dict[str, FailedJobs] = {}
        forest = QueueForest(session, self.jobs(), self._next, depth=self.depth)
        while (job := forest.pop()) is not None:
            chunk = self._next(job)
            if not chunk or self._broken_up(job) or not self.may_start(job, chunk):
                continue
            failures = failed.setdefault(self.table(job), FailedJobs(session))
            if uses_signatures and failures.is_no_easier(job):
                continue
            if self._is_unresolvable(job, chunk):
                continue
            self.session.start_turn(job)
            statement = self.solve(job, chunk)
            if statement is None:
                if not self.budget.was_cut(job):
                    failures.add(job)
                continue
            self._commit(statement)

    def _next(self, job: Job) -> list[int]:
        return next_to_place(self.session, job.tree)

    def _broken_up(self, job: Job) -> bool:
        """Whether the job was a victim itself since the action began, so that its remaining tasks cannot start."""
        if job.tree.could_start():
            return False
        job.refuse(not_ready(job))
        return True

    def _is_unresolvable(self, job: Job, chunk: list[int]) -> bool:
        for plugin in self.session.implementing(Unresolvable):
            for task in chunk:
                reason = plugin.unresolvable_reason(task)
                if reason is not None:
                    job.refuse(failed_task(job, Failure(task, reason)))
                    return True
        return False

    def _commit(self, statement: Statement) -> None:
        job_times = self.session.shared(JobTimes)
        moved = {operation.job.row: operation.job for operation in statement.operations if operation.job is not None}
        for operation in statement.operations:
            if operation.kind == TaskStatus.RELEASING and not operation.void and operation.job is not None:
                job_times.note_eviction(operation.job)
        statement.commit()
        for job in moved.values():
            self.sorted_jobs.update(job, keep=self._can_be_victim(job))

    # what the actions differ in

    def jobs(self) -> list[Job]:
        return self.waiting_jobs(delayed=False)

    def table(self, job: Job) -> str:
        """The key of the failures that apply to this job: jobs with the same key and signature fail together."""
        return job.queue.name

    def may_start(self, job: Job, chunk: Sequence[int]) -> bool:
        return True

    @abstractmethod
    def solve(self, job: Job, chunk: list[int]) -> Statement | None:
        """A statement that makes room for the next tasks of the job, ready to be committed."""

    def _any_victim(self, rows: BoolArray, allows: Callable[[Job], bool]) -> bool:
        """Whether there may be a victim among these jobs, or among jobs that moved since the cycle began. Columns answer this
        cheaply; making `sorted_jobs` costs as much as there are running jobs."""
        if (rows & self._on_nodes_at_open).any():
            return True
        return any(job.version and self._can_be_victim(job) and allows(job) for job in self.session.touched_jobs)

    @cached_property
    def _on_nodes_at_open(self) -> BoolArray:
        """(jobs,): preemptable, and on a node when the cycle began."""
        jobs = self.session.snapshot.jobs
        found: BoolArray = jobs.preemptable & jobs.counts[:, ON_NODE].any(axis=1)
        return found

    @property
    def sorted_jobs(self) -> SortedJobs:
        """Jobs that may be evicted and hold or are promised a node, kept in order while the action runs."""
        if self._sorted_jobs is None:
            self._sorted_jobs = SortedJobs(self.session, [job for job in self.session.all_jobs() if self._can_be_victim(job)])
        return self._sorted_jobs

    def _can_be_victim(self, job: Job) -> bool:
        """A job with a pod whose node is gone cannot: it is unknown what its eviction frees. In strict mode, neither can a job that
        this cycle placed."""
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
    """Moves running pods together so that a waiting job fits; every moved pod gets another node"""

    name = "consolidation"

    def execute(self) -> None:
        if self.session.policy.param("maxNumberConsolidationPreemptees") != 0:
            super().execute()

    def jobs(self) -> list[Job]:
        return [job for job in self.waiting_jobs(delayed=False) if job.spec.preemptable]

    def table(self, job: Job) -> str:
        return ""

    def solve(self, job: Job, chunk: list[int]) -> Statement | None:
        if not self._enough_in_total(chunk):
            return None
        most = self.session.policy.param("maxNumberConsolidationPreemptees")
        assert isinstance(most, int)

        def allows(each: Job) -> bool:
            return each.row != job.row and counts_active(self.session, each)

        pool = VictimPool(self.sorted_jobs, allows, None if most < 0 else most + 1)
        return Solver(self.session, pool, _all_victims_stay, self.budget, moves_only=True).solve(job)

    def _enough_in_total(self, chunk: list[int]) -> bool:
        """Whether the free resources of all nodes together are enough, because moving pods adds none. GPUs and their parts count on
        ready nodes; for other resources an over-committed node counts as empty."""
        session = self.session
        devices = session.devices
        assert devices is not None
        ready = session.ready_nodes()
        free = np.maximum(devices.idle_parts() + devices.releasing_parts(), 0)
        kinds = [session.class_of(task) for task in chunk]
        asked = np.sum([kind.request for kind in kinds], axis=0)
        asked[[*devices.dims, *(dim for dim, _ in devices.slices), *session.claimable_dims]] = 0
        if (asked > np.maximum(session.nodes.future_idle, 0).sum(axis=1)).any():
            return False
        if sum(devices.gpus_of(kind, 0) for kind in kinds) > free[ready].sum():
            return False
        memory = sum(k.shape.devices.count * k.shape.devices.memory for k in kinds if k.shape.devices is not None)
        return memory <= float((free * devices.memory)[ready].sum())


def _all_victims_stay(scenario: Scenario) -> bool:
    return all(task in scenario.stays for _, tasks in scenario.victims for task in tasks)


class KaiReclaim(EvictingAction):
    """Takes from queues above their share what a queue below its share waits for"""

    name = "reclaim"
    dialect = "kai"

    def may_start(self, job: Job, chunk: Sequence[int]) -> bool:
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

        def rules_may_allow(tasks: Sequence[int], lacking: IntArray) -> bool:
            return all(p.reclaim_bound(job, tasks, pool.jobs(), lacking) for p in bounds)

        jobs = session.snapshot.jobs
        if not self._any_victim(jobs.queue != jobs.queue[job.row], allows):
            return None
        pool = VictimPool(self.sorted_jobs, allows)
        bounds = session.implementing(ReclaimBound)

        def valid(scenario: Scenario) -> bool:
            return all(p.reclaim_scenario(scenario) for p in validators)

        solver = Solver(session, pool, valid, self.budget, rules_may_allow=rules_may_allow)
        return solver.solve(job)


class KaiPreempt(EvictingAction):
    """Makes room for a job by evicting jobs of lower priority in its own queue"""

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
            return lower and counts_active(session, each) and all(p.preempt_victim(job, each) for p in filters)

        jobs = session.snapshot.jobs
        if not self._any_victim((jobs.queue == jobs.queue[job.row]) & (jobs.priority < job.priority), allows):
            return None
        pool = VictimPool(self.sorted_jobs, allows)
        return Solver(session, pool, lambda s: all(p.preempt_scenario(s) for p in validators), self.budget).solve(job)
