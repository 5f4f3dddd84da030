"""allocate: gives idle resources to admitted jobs, queue by queue, job by job, a gang at a time.

A turn works on one job in one statement. It places the job's tasks in order, equal tasks in one step, until the job is ready. A
ready job is committed and returns for its remaining tasks, one task a turn, so that elastic jobs grow side by side. A job that will
be ready once resources are released keeps its promises, and nothing is bound. Otherwise the statement is discarded.
"""

from __future__ import annotations

import numpy as np

from navarch.actions.allocate_domains import DomainSearch, RemainingWork, remaining_work
from navarch.actions.equal_turns import EqualTurns, may_take_turns_together
from navarch.actions.job_queues import JobHeap, Turns, admit_groups_without_pods, admitted, takes_part, waiting_tasks
from navarch.actions.label_domains import label_domains, no_label_domain
from navarch.actions.placement_attempt import PlacementAttempt
from navarch.actions.preemptor_eligibility import keeps_to_label
from navarch.actions.static_exclusion import StaticExclusion
from navarch.engine.action import Action
from navarch.engine.arguments import Argument
from navarch.engine.gangs.sub_jobs import SubJob
from navarch.engine.job import Job
from navarch.engine.placement.hopeless_tasks import HopelessTasks
from navarch.engine.points.protocols import JobTurn
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.engine.statement import Statement
from navarch.engine.topology.domains import NOWHERE
from navarch.model.resources import BoolArray
from navarch.model.status import TaskStatus


class Allocate(Action):
    """Gives idle resources to jobs, whole gangs at a time"""

    name = "allocate"
    arguments = (
        Argument(
            "predicateErrorCacheEnable",
            "bool",
            True,
            "under `compat: volcano`, a node that refused a task is not tried for later tasks of its role in the same attempt",
        ),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        if session.snapshot.shares_devices:
            session.share_devices()

    def execute(self) -> None:
        session = self.session
        if session.semantics.evictions_settle:
            _withdraw_idle_promises(session)
        jobs = self._begin()
        kept = session.shared(PromisesKept)
        if not kept.done:
            kept.done = True
            self._keep_promises()
        self._take_turns(jobs)
        if self._held_back:
            self._offer_leftover()
        if session.semantics.leftover_is_offered and "enqueue" in session.policy.actions:
            self._offer_to_unadmitted()

    def keep_promises(self) -> None:
        """Place promised pods alone: for an action that evicts before this one runs."""
        self._begin()
        self._keep_promises()

    def _begin(self) -> dict[str, JobHeap]:
        session = self.session
        admit_groups_without_pods(session)
        jobs: dict[str, JobHeap] = {}
        self._tasks: dict[int, list[int]] = {}
        for job in session.jobs_with_pending():
            best_effort = None if keeps_to_label(job) else False
            tasks = waiting_tasks(session, job, best_effort=best_effort) if takes_part(session, job) else []
            if tasks:
                self._tasks[job.row] = tasks
                jobs.setdefault(job.queue.name, JobHeap(session)).push(job)
        self._sorted: set[int] = set()
        self._refusals_last = session.semantics.refusals_bind_the_role and self.given.flag("predicateErrorCacheEnable")
        self._remaining: dict[int, RemainingWork] = {}
        self._excluded = StaticExclusion(session)
        self._search: DomainSearch | None = None
        self._held_back: dict[int, tuple[Job, list[Reason]]] = {}
        """Jobs that their queue refuses within its share, until what is left over has been offered, and why."""
        self._offers_leftover = session.semantics.leftover_is_offered
        return jobs

    def _take_turns(self, jobs: dict[str, JobHeap]) -> None:
        session = self.session
        turns = Turns(session, jobs, self._refused_by_queue)
        in_turns = bool(session.implementing(JobTurn))
        together = EqualTurns(session, turns, self._sorted_tasks) if self._may_take_turns_together() else None
        while (best := turns.next()) is not None:
            refusal = session.turn_refusal(best) if in_turns else None
            if refusal is not None:
                best.refuse(refusal)
                turns.put_back(best.queue)
                continue
            session.placing = best
            session.start_turn(best)
            if together is not None and together.take(best, jobs[best.queue.name]):
                session.placing = None
                turns.put_back(best.queue)
                continue
            session.tried[best.key] = None
            has_more = self._turn(best)
            self._bind_earlier(best)
            if has_more:
                jobs[best.queue.name].push(best)
            elif in_turns and not session.job_ready(best) and not session.job_pipelined(best):
                session.turn_failed(best)
            session.placing = None
            turns.put_back(best.queue)

    def _may_take_turns_together(self) -> bool:
        return may_take_turns_together(self.session)

    def _bind_earlier(self, job: Job) -> None:
        """Bind what earlier turns of the cycle gave the job and did not bind, because it could only start later: it is ready now."""
        if job.counts[TaskStatus.ALLOCATED] and self.session.job_ready(job):
            self.session.statement().bind_allocated(job, job.tasks_in(TaskStatus.ALLOCATED))

    def _keep_promises(self) -> None:
        """Tasks for which others were evicted are placed before all others, held to hard limits alone. Otherwise the freed room may go
        to a job that is served earlier, and the victims would have been evicted in vain."""
        session = self.session
        tasks = session.snapshot.tasks
        if not np.count_nonzero(tasks.nominated):
            return
        rows = np.flatnonzero(tasks.nominated & tasks.alive & (session.status == TaskStatus.PENDING))
        promised: dict[int, set[int]] = {}
        for task, row in zip(rows.tolist(), tasks.job[rows].tolist()):
            if row in self._tasks:
                promised.setdefault(row, set()).add(task)
        first: dict[str, JobHeap] = {}
        for row, nominated in promised.items():
            job = session.job(row)
            assert job is not None
            others = [task for task in self._tasks[row] if task not in nominated]
            lacking = max(session.job_missing(job) - len(nominated), 0)
            self._tasks[row] = [*(task for task in self._tasks[row] if task in nominated), *session.sorted_tasks(others)[:lacking]]
            first.setdefault(job.queue.name, JobHeap(session)).push(job)
        if not first:
            return
        offers, self._offers_leftover = self._offers_leftover, True
        session.beyond_shares = True
        self._take_turns(first)
        session.beyond_shares, self._offers_leftover = False, offers
        self._held_back.clear()
        for row in promised:
            job = session.job(row)
            assert job is not None
            self._tasks[row] = waiting_tasks(session, job, best_effort=False)
            self._remaining.pop(row, None)
            self._sorted.discard(row)

    def _refused_by_queue(self, job: Job, reason: Reason) -> None:
        """The job is told, or it waits for what is left over when every queue had its turns."""
        if self._offers_leftover:
            self._held_back.setdefault(job.row, (job, []))[1].append(reason)
        else:
            job.refuse(reason)

    def _offer_leftover(self) -> None:
        """Jobs that only the share of their queue kept waiting get another turn, in the same order, held to hard limits alone: what
        no queue may have within its share would stay idle otherwise. Their queues give it back when another reclaims its share."""
        session, self._offers_leftover = self.session, False
        hopeless = session.shared(HopelessTasks)
        jobs: dict[str, JobHeap] = {}
        for _, (job, reasons) in sorted(self._held_back.items()):
            tasks = waiting_tasks(session, job, best_effort=False)
            classes = {task.number: task for task in map(session.class_of, tasks)}
            if hopeless.includes(tasks) or any(session.view(task).fits_now() for task in classes.values()):
                self._tasks[job.row] = tasks
                self._remaining.pop(job.row, None)
                self._sorted.discard(job.row)
                jobs.setdefault(job.queue.name, JobHeap(session)).push(job)
            else:
                for reason in reasons:
                    job.refuse(reason)
        session.beyond_shares = True
        self._take_turns(jobs)
        session.beyond_shares = False

    def _offer_to_unadmitted(self) -> None:
        """Jobs that `enqueue` refused in this cycle get a turn at what is idle now, held to hard limits and to their minimum resources
        alone. Otherwise jobs that were admitted and cannot be placed would keep it from them. A job that finds no place is not
        admitted."""
        session, jobs = self.session, dict[str, JobHeap]()
        offered: list[tuple[Job, str, list[Reason]]] = []
        session.beyond_shares, self._offers_leftover = True, False
        idle, minimum = session.total - session.nodes.used.sum(axis=1), session.snapshot.jobs.min_resources
        for job in session.unadmitted_jobs():
            if not job.reasons or (minimum[:, job.row] > idle).any():
                continue
            tasks = waiting_tasks(session, job, best_effort=False)
            classes = {task.number: task for task in map(session.class_of, tasks)}
            if admitted(session, job) or not any(session.view(task).fits_now() for task in classes.values()):
                continue
            phase, reasons = job.phase, list(job.reasons)
            if session.job_enqueueable(job) is not None:
                continue
            job.phase = "Inqueue"
            if session.job_valid(job) is not None:
                job.phase = phase
                continue
            job.reasons.clear()
            offered.append((job, phase, reasons))
            self._tasks[job.row] = tasks
            jobs.setdefault(job.queue.name, JobHeap(session)).push(job)
        try:
            self._take_turns(jobs)
        finally:  # also where the cycle is cut
            session.beyond_shares = False
            for job, phase, reasons in offered:
                if session.job_ready(job) or session.job_pipelined(job):
                    session.job_enqueued(job)
                else:
                    job.phase, job.reasons[:] = phase, reasons
                    job.fit_errors.clear()

    def _turn(self, job: Job) -> bool:
        """One attempt at a job. True: it is ready and has tasks left for another turn."""
        session = self.session
        if keeps_to_label(job):
            return self._turn_by_label(job)
        if _has_domains(job):
            return self._turn_in_domains(job)
        tasks = self._sorted_tasks(job)
        statement = session.statement()
        if job.spec.topology is None:
            ready = self._place_tasks(job, tasks, statement)
        else:
            ready = self._place_tasks(job, tasks, statement, job.sub_jobs[0], session.domains.tree.top)
        if ready:
            statement.commit()
            return bool(tasks)
        if session.job_pipelined(job):
            return False
        if not session.semantics.partial_gang_holds_nodes:
            statement.discard()
        return False

    def _turn_by_label(self, job: Job) -> bool:
        """A turn of a job whose nodes must have the same value of a label: the first domain, by value, in which it can start."""
        session, tasks = self.session, self._sorted_tasks(job)
        masks = label_domains(job)
        if not masks:
            job.refuse(no_label_domain(job))
        for mask in masks:
            statement, left = session.statement(), list(tasks)
            if self._place_tasks(job, left, statement, inside=mask):
                statement.commit()
                tasks[:] = left
                return bool(left)
            if session.job_pipelined(job):
                return False
            statement.discard()
        return False

    def _sorted_tasks(self, job: Job) -> list[int]:
        """Its waiting tasks in reverse order, because they are taken from the end."""
        if job.row not in self._sorted:
            self._sorted.add(job.row)
            self._tasks[job.row] = self.session.sorted_tasks(self._tasks[job.row], reverse=True)
        return self._tasks[job.row]

    def _turn_in_domains(self, job: Job) -> bool:
        """A turn of a job with sub-groups, or with a topology demand."""
        if self._search is None:
            self._search = DomainSearch(self.session, self._place_tasks)
        work = self._remaining.pop(job.row, None) or remaining_work(job, self._tasks[job.row])
        left = self._search.turn(job, work)
        if left is not None:
            self._remaining[job.row] = left
        return left is not None

    def _place_tasks(
        self,
        job: Job,
        tasks: list[int],
        statement: Statement,
        part: SubJob | None = None,
        domain: int = NOWHERE,
        inside: BoolArray | None = None,
    ) -> bool:
        """Place tasks from the end of the list until the job is ready, or its part in a domain. Returns whether it is ready.
        `inside`: only on these nodes."""
        attempt = PlacementAttempt(
            job,
            tasks,
            statement,
            part,
            domain,
            inside,
            refusals_last=self._refusals_last,
            excluded=self._excluded,
            refused_by_queue=self._refused_by_queue,
        )
        return attempt.run()


def _has_domains(job: Job) -> bool:
    """Whether parts of the job are placed one by one, or its topology demand limits the domains."""
    if job.spec.sub_groups:
        return True
    return job.spec.topology is not None and job.session.domains.is_bounded(job)


class PromisesKept:
    """Made with `Session.shared`. Whether promised pods had their turn in this cycle."""

    def __init__(self, session: Session) -> None:
        self.done = False


def keep_promises(session: Session) -> None:
    """Called by actions that evict. Where `allocate` comes after them, promised pods are placed now: otherwise the action would
    promise them their room once more, and nothing would ever be bound."""
    kept = session.shared(PromisesKept)
    if not kept.done and "allocate" in session.policy.actions:
        kept.done = True
        if np.count_nonzero(session.snapshot.tasks.nominated):
            Allocate(session).keep_promises()


def _withdraw_idle_promises(session: Session) -> None:
    """Take back promises of this cycle to jobs for which nothing was evicted. An earlier action found room for them without evictions,
    so they are placed like others."""
    promised = np.flatnonzero(session.status == TaskStatus.PIPELINED).tolist()
    waits = {int(session.snapshot.tasks.job[task]) for task in promised if task in session.promised_by_eviction}
    for task in promised:
        if int(session.snapshot.tasks.job[task]) not in waits:
            session.statement().withdraw(task)
