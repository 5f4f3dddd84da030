"""gangpreempt and gangreclaim: eviction of whole gangs, for whole gangs.

For a starving job, bundles of victims (`engine.victims.bundles`) are added, cheapest first, until the domain could have the resources
that the whole gang needs. Then the placement of the gang is tried in full. A plan is committed only if the job is ready or pipelined
with it: nothing is evicted for a gang that could not start.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

import numpy as np
from msgspec.structs import replace

from navarch.actions.allocate import keep_promises
from navarch.actions.eviction_failures import FailedAttempts
from navarch.actions.job_queues import PREDICATE_ERROR_CACHE, JobHeap, QueueHeap, is_attainable, takes_part, waiting_tasks
from navarch.actions.preemptor_eligibility import keeps_to_label
from navarch.engine.action import Action
from navarch.engine.arguments import Argument
from navarch.engine.gangs.sub_jobs import SubJob, needed_first
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.points.order_key import OrderKey
from navarch.engine.statement import Statement
from navarch.engine.victims import search
from navarch.engine.victims.bundles import Bundle, allowed_parts, split
from navarch.engine.victims.evicted_again import refuse_for_protected
from navarch.engine.victims.eviction_rule import EvictionRule, Standing
from navarch.engine.victims.owed import BORROWED
from navarch.engine.victims.room import GangRoom
from navarch.engine.victims.search import once_per_job
from navarch.model.resources import UNLIMITED, BoolArray, IntArray
from navarch.model.status import TaskStatus


class GangEviction(Action):
    arguments = (
        Argument("maxDomains", "int", 8, "how many topology domains to try for a job"),
        Argument("allowWholeBundle", "bool", True, "whether whole gangs may be ended"),
        PREDICATE_ERROR_CACHE,
    )
    reclaim = False

    def execute(self) -> None:
        session = self.session
        keep_promises(session)
        self._failed = FailedAttempts(session)
        self._rule = EvictionRule(session) if session.semantics.evictions_settle else None
        self._victims: dict[tuple[str, int], list[tuple[Job, list[int]]]] = {}
        self._kept: dict[int, tuple[int, list[int], list[Bundle]]] = {}
        """Row of a job -> how many of its tasks are ready, those that may go, and the bundles of them."""
        jobs: dict[str, JobHeap] = {}
        for job in session.jobs_with_pending():
            if not job.counts[TaskStatus.PENDING] or keeps_to_label(job) or not takes_part(session, job):
                continue
            if session.job_starving(job) and is_attainable(job):
                jobs.setdefault(job.queue.name, JobHeap(session)).push(job)
        queues = QueueHeap(session, (session.queues[name] for name in jobs))
        # Inside its own queue a job may take room even if the queue is beyond its share; from others only within it.
        session.beyond_shares = session.semantics.leftover_is_offered and not self.reclaim
        while (queue := queues.pop()) is not None:
            reason = session.overused(queue) if self.reclaim else None
            while (best := jobs[queue.name].pop()) is not None:
                if reason is not None:
                    best.refuse(reason)
                    continue
                while self._attempt(best):
                    continue
        session.beyond_shares = False

    def _attempt(self, job: Job) -> bool:
        """One statement for the job. True: tasks were placed, and the job may place more."""
        session = self.session
        session.start_turn(job)
        statement = session.statement()
        parts = self._parts(job)
        pending = [task for _, tasks in parts for task in tasks]
        if not pending or self._failed.known_to_fail(job, pending):
            return False
        known = len(job.reasons)
        self._for_job(job, parts, pending, statement)
        if not session.job_pipelined(job):
            statement.discard()
        if not len(statement):
            refuse_for_protected(job, other_queues=self.reclaim)
            self._failed.add(job, pending, known)
            return False
        if self._rule is not None:
            self._rule.changed(op.job for op in statement.operations if op.job is not None)
        statement.commit()
        self._failed.clear()
        self._victims.clear()
        return not session.semantics.evicts_for_all_pending and session.job_starving(job)

    def _for_job(self, job: Job, parts: Sequence[tuple[SubJob, list[int]]], pending: list[int], statement: Statement) -> None:
        session = self.session
        if self.reclaim and not self._may_reclaim(job, pending):
            return
        standing = self._rule.of(job, pending) if self._rule is not None else None
        if self.reclaim and standing is not None and standing.depth == BORROWED:
            job.refuse(standing.refusal())
            return
        need = search.total_request(session, pending)
        need[[*session.claimable_dims]] = 0
        for domain in session.evict_domains(job, self.given.integer("maxDomains")):
            if not session.job_starving(job):
                return
            inside = session.domains.tree.mask(domain)
            bundles = self._bundles(job, need, inside, standing)
            free = (session.nodes.idle + session.nodes.releasing)[:, inside].sum(axis=1)
            chosen: list[int] = []
            exact = session.devices is None
            room = GangRoom(session, pending, inside) if exact and bundles else None
            for bundle in bundles:
                chosen += bundle.tasks
                if room is not None:
                    room.add(bundle.tasks)
                if room is not None and not room.suffices:
                    continue
                if (need > free + search.freed_request(session, chosen)).any():
                    continue
                if self._carry_out(job, parts, chosen, domain, statement):
                    return

    def _parts(self, job: Job) -> list[tuple[SubJob, list[int]]]:
        """The tasks to place: those of every sub-job that waits, needed ones first; for a ready job only the first sub-job.

        A job without sub-groups asks for what it lacks to be ready, then for one task more at a time."""
        session = self.session
        waiting = set(waiting_tasks(session, job, best_effort=False))
        parts = [(sub, session.sorted_tasks([t for t in sub.tasks if t in waiting])) for sub in needed_first(session, job)]
        parts = [(sub, tasks) for sub, tasks in parts if tasks]
        ready = session.job_ready(job)
        if not session.semantics.evicts_for_all_pending and not job.spec.sub_groups:
            wanted = 1 if ready else session.job_missing(job) - job.counts[TaskStatus.PIPELINED]
            parts = [(sub, tasks[: max(wanted, 1)]) for sub, tasks in parts]
        return parts[:1] if ready else parts

    def _may_reclaim(self, job: Job, pending: list[int]) -> bool:
        session = self.session
        kinds = [session.class_of(task) for task in pending]
        at_once = session.semantics.evicts_for_all_pending
        for task in [_together(kinds)] if at_once else {kind.number: kind for kind in kinds}.values():
            reason = session.preemptive(job.queue, task)
            if reason is not None:
                job.refuse(reason)
                return False
        return True

    def _bundles(self, job: Job, need: IntArray, domain: BoolArray, standing: Standing | None) -> list[Bundle]:
        session = self.session
        everywhere = bool(domain.all())
        bundles: list[Bundle] = []
        for other, there in self._victim_jobs(job):
            tasks = there if everywhere else [t for t in there if domain[session.node[t]]]
            if tasks:
                bundles += self._split(other, tasks)
        if not bundles:
            return []
        bundles.sort(key=self._order(job, need))
        candidates = [task for bundle in bundles for task in bundle.tasks]
        if standing is not None:
            candidates = standing.may_evict(candidates)
            bundles = allowed_parts(bundles, set(candidates))
        allowed = set(session.unified_evictable(job, candidates, reclaim=self.reclaim))
        left = allowed_parts(bundles, allowed)
        left.sort(key=self._order(job, need))
        return [b for b in left if not b.whole or self.given.flag("allowWholeBundle")]

    def _split(self, other: Job, tasks: list[int]) -> list[Bundle]:
        """The bundles of a job. Most jobs lose nothing between two attempts, so theirs are kept."""
        kept = self._kept.get(other.row)
        if kept is None or kept[0] != other.ready_count or kept[1] != tasks:
            kept = self._kept[other.row] = other.ready_count, tasks, split(self.session, other, tasks)
        return kept[2]

    def _order(self, job: Job, need: IntArray) -> Callable[[Bundle], Any]:
        session = self.session
        job_order = once_per_job(session.job_order)

        def compare(left: Bundle, right: Bundle) -> int:
            if left.whole != right.whole:
                return 1 if left.whole else -1
            opinion = self._job_opinion(left.job, right.job, job, job_order)
            if opinion:
                return opinion
            gain = right.return_on(session, need) - left.return_on(session, need)
            if gain == gain and gain:  # inf - inf is no opinion
                return 1 if gain > 0 else -1
            a, b = (left.job.key, session.task(left.tasks[0]).uid), (right.job.key, session.task(right.tasks[0]).uid)
            return (a > b) - (a < b)

        return cmp_to_key(compare)

    def _job_opinion(self, left: Job, right: Job, preemptor: Job, job_order: Callable[[Job], OrderKey]) -> int:
        """Which job loses victims first: the one that would be served last; between queues by the victims' queue order."""
        session = self.session
        if self.reclaim and left.queue is not right.queue:
            return session.victim_queue_order(left.queue, right.queue, preemptor.queue)
        if left is right or (self.reclaim and not session.semantics.reclaim_minds_job_order):
            return 0
        return -1 if job_order(left) > job_order(right) else 1

    def _victim_jobs(self, job: Job) -> list[tuple[Job, list[int]]]:
        """Jobs that may lose tasks to this one, and the tasks. Computed once for each queue and priority until something is
        decided. Jobs of equal or higher priority, which are mostly all, are left out at once."""
        session = self.session
        key = (job.queue.name, 0 if self.reclaim else job.priority)
        found = self._victims.get(key)
        if found is None:
            if self.reclaim:
                mask = search.candidates_elsewhere(session, job.queue, (TaskStatus.RUNNING,))
            else:
                mask = search.candidates_in_queue(session, job.queue, (TaskStatus.BOUND, TaskStatus.RUNNING))
                mask &= session.snapshot.jobs.priority[session.snapshot.tasks.job] < job.priority
            by_job: dict[int, list[int]] = {}
            for task, row in zip(mask.nonzero()[0].tolist(), session.snapshot.tasks.job[mask].tolist()):
                by_job.setdefault(row, []).append(task)
            jobs = ((session.job(row), tasks) for row, tasks in by_job.items())
            found = [(other, tasks) for other, tasks in jobs if other is not None and not other.spec.never_preempted]
            found.sort(key=_priority)
            self._victims[key] = found
        if self.reclaim:
            return found
        return [each for each in found[: bisect_left(found, job.priority, key=_priority)] if each[0] is not job]

    def _carry_out(
        self, job: Job, parts: Sequence[tuple[SubJob, list[int]]], victims: Sequence[int], domain: int, statement: Statement
    ) -> bool:
        """Evict and place on trial. True: the job would be ready, and the statement holds everything."""
        if not self._try(job, parts, victims, domain, statement):
            return False
        if self.session.semantics.victims_are_minimal and (needed := self._needed(job, statement)) != list(victims):
            # What comes back may take a port, or room below a limit, that the gang needs. So the gang is placed once more.
            statement.roll_back(0)
            return self._try(job, parts, needed, domain, statement) or self._try(job, parts, victims, domain, statement)
        return True

    def _try(
        self, job: Job, parts: Sequence[tuple[SubJob, list[int]]], victims: Sequence[int], domain: int, statement: Statement
    ) -> bool:
        session = self.session
        was_ready, before = session.job_ready(job), session.beyond_shares
        session.beyond_shares = before or self._rule is not None  # who is owed its place is asked before: limits remain
        for victim in victims:
            statement.evict(victim, for_=job.key, reason=self.name)
        for sub, tasks in parts:
            where = session.evict_domains_of(sub, domain)
            if not any(self._place(job, sub, tasks, session.domains.tree.mask(part), statement) for part in where):
                break
            if was_ready or session.job_pipelined(job):
                break
        session.beyond_shares = before
        if session.job_pipelined(job) and len(statement) > len(victims):
            return True
        statement.roll_back(0)
        return False

    def _place(self, job: Job, sub: SubJob, tasks: list[int], within: BoolArray, statement: Statement) -> bool:
        """Promise a node of `within` to every task of the sub-job, or to none."""
        session = self.session
        mark = statement.save_point()
        for row in tasks:
            task = session.class_of(row)
            view = session.view(task)
            node = None
            if session.allocatable(job.queue, task, 1)[0] and session.pre_predicate(task) is None:
                groups = view.groups(within, tolerant=not session.semantics.gang_eviction_asks_filters)
                node = next((view.best(group) for group, _ in groups if group.any()), None)
            if node is None:
                statement.roll_back(mark)
                return False
            statement.pipeline(job, [row], [node], task, evicting=True)
        if session.sub_job_ready(sub) or session.sub_job_pipelined(sub):
            return True
        statement.roll_back(mark)
        return False

    def _needed(self, job: Job, statement: Statement) -> list[int]:
        """The victims without those that the placement does not need: on nodes that have enough future idle resources without their
        eviction, and in queues that have room for them below their limits. Those are taken back."""
        session = self.session
        for operation in reversed([op for op in statement.operations if op.kind == TaskStatus.RELEASING]):
            node, loser = operation.nodes[0], operation.job
            assert loser is not None
            room = session.nodes.future_idle[:, node]
            room[[*session.claimable_dims]] = UNLIMITED
            safe = loser.ready_count >= loser.min_member or loser.min_member <= 1
            safe = safe and (session.devices is None or session.devices.may_stay(operation.task, operation.tasks[0], node))
            if safe and bool((room >= operation.task.request).all()) and self._has_room_below_limits(job, loser, operation.task):
                statement.undo(operation)
        return [op.tasks[0] for op in statement.operations if op.kind == TaskStatus.RELEASING]

    def _has_room_below_limits(self, job: Job, loser: Job, task: TaskClass) -> bool:
        """Whether the victim may come back beside the gang, as far as limits count both."""
        apart = loser.queue is not job.queue and loser.queue.parent is None
        return apart or search.limits_allow(self.session, loser.queue, task)


def _priority(loser: tuple[Job, list[int]]) -> int:
    return loser[0].priority


class GangPreempt(GangEviction):
    """Evicts lower gangs of the same queue, whole or their surplus"""

    name = "gangpreempt"


class GangReclaim(GangEviction):
    """Evicts gangs of other queues, whole or their surplus"""

    name = "gangreclaim"
    reclaim = True


def _together(kinds: Sequence[TaskClass]) -> TaskClass:
    """A class that asks for what all these tasks ask for together. Its number follows from the amounts, and no other class has it."""
    charge: IntArray = np.sum([kind.charge for kind in kinds], axis=0)
    request: IntArray = np.sum([kind.request for kind in kinds], axis=0)
    return replace(kinds[0], number=-1 - int.from_bytes(charge.tobytes(), "little"), charge=charge, request=request)
