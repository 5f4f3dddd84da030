"""What preempt and reclaim share: a unit of a job has one statement, which is kept if the job is ready or pipelined with it.

A unit is what the job lacks to start, and then one pod more at a time (`EvictionRule`). Where the policy follows the answers of its
plugins alone, all pods of a job that starves share one statement.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from navarch.actions.eviction_failures import FailedAttempts
from navarch.engine.action import Action
from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.engine.statement import Statement
from navarch.engine.victims.evicted_again import refuse_for_protected
from navarch.engine.victims.eviction_rule import EvictionRule, Standing
from navarch.model.resources import IntArray
from navarch.model.status import TaskStatus


class PodEviction(Action):
    reclaim = False
    """Whether its victims are of other queues."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.rule = EvictionRule(session) if session.semantics.evictions_settle else None
        self.standing: Standing | None = None
        """Of the unit that evicts."""
        self.failed = FailedAttempts(session)
        self.bounds: dict[tuple[str, str], IntArray] = {}
        """Queue, and job where it differs from others of the queue -> what evictions could free on each node at most."""

    @abstractmethod
    def for_task(self, job: Job, row: int, statement: Statement) -> bool:
        """Evict for one task, and promise it the room."""

    def for_job(self, job: Job, wanted: Sequence[int]) -> None:
        session, tasks, known, served = self.session, list(wanted), len(job.reasons), False
        session.start_turn(job)
        if self.failed.known_to_fail(job, wanted):
            return
        while tasks and session.job_starving(job):
            statement = session.statement()
            alone = self.rule is not None and not job.is_starving
            self._place_unit(job, tasks, statement, alone=alone)
            if not session.job_pipelined(job):
                statement.discard()
            if len(statement):
                self.commit(statement)
                served = True
            elif not alone:
                break
        if not served:
            refuse_for_protected(job, other_queues=self.reclaim)
            self.failed.add(job, wanted, known)

    def _place_unit(self, job: Job, tasks: list[int], statement: Statement, *, alone: bool) -> None:
        """Take tasks from the list and place them. `alone`: one, which is a unit by itself; if there is no room for it, there is none
        for tasks like it."""
        session = self.session
        count = 1 if alone else max(session.job_missing(job), 1)
        self.take_standing(job, tasks[: -count - 1 : -1])
        while tasks and session.job_starving(job):
            task = tasks.pop()
            placed = self.for_task(job, task, statement)
            if alone:
                if not placed:
                    kind = session.class_of(task).number
                    tasks[:] = [other for other in tasks if session.class_of(other).number != kind]
                return
            if (self.rule is not None and session.job_pipelined(job)) or (not placed and self._hopeless(job, tasks)):
                return

    def take_standing(self, job: Job, tasks: Sequence[int]) -> None:
        self.standing = None if self.rule is None else self.rule.of(job, tasks)

    def may_evict(self, candidates: Sequence[int]) -> list[int]:
        return list(candidates) if self.standing is None else self.standing.may_evict(candidates)

    def commit(self, statement: Statement) -> None:
        if self.rule is not None:
            self.rule.changed(op.job for op in statement.operations if op.job is not None)
        statement.commit()
        self.failed.clear()
        self.bounds.clear()

    def _hopeless(self, job: Job, tasks: Sequence[int]) -> bool:
        """Whether too few tasks are left to reach the minimum. Equal tasks would fail equally, one by one."""
        held = job.ready_count + job.counts[TaskStatus.PIPELINED] + job.best_effort_pending
        return self.rule is not None and held + len(tasks) < job.min_member
