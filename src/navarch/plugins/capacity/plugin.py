"""Capacity: each queue has a deserved amount, a guarantee and a capability, as its owner wrote them.

A queue may grow up to its capability, idle resources of the cluster included. A queue below its deserved amount may reclaim from
queues above theirs. With `enableHierarchy` queues form a tree (`queue_tree`): a placement must fit the queue and every ancestor,
and two leaves are compared by their ancestors just below the lowest common one.

A queue outside the tree refuses its own jobs with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change, HardLimit, VictimQueueOrder, Vote
from navarch.engine.queue import ROOT, Queue
from navarch.engine.reasons import Event, Reason
from navarch.engine.record import QueueFigures
from navarch.engine.victims.owed import QueueShares
from navarch.engine.victims.search import victim_order
from navarch.model.resources import CPU, MEMORY, PODS, BoolArray
from navarch.model.spec import QueueSpec
from navarch.plugins.capacity import queue_tree as capacity_tree
from navarch.plugins.capacity.device_quota import DeviceQuota
from navarch.plugins.capacity.reclaim import ReclaimAttempt
from navarch.plugins.queues.amounts import CLOSE, largest_part
from navarch.plugins.queues.ledger import FREED, QueueLedger, closed, real_capabilities
from navarch.plugins.queues.owed_shares import Claims, owed_down
from navarch.plugins.queues.unread_bounds import unread_shares, unread_tree


class Capacity(Plugin):
    """Holds queues to what they deserve and may have"""

    name = "capacity"
    arguments = (
        Argument("ancestorReclaimLevel", "int", 0, "how many levels of ancestors count in reclaim", minimum=0),
        Argument("capacity.DynamicResourceAllocationEnable", "bool", True, "hold queues to their quotas of device classes"),
        Argument("capacity.DRAConsumableCapacityEnable", "bool", False, "known and answered with a warning: whole devices count"),
    )

    def open(self) -> None:
        session = self.session
        self.hierarchy = self.option.is_enabled("hierarchy")
        self.reclaim_level = self.given.integer("ancestorReclaimLevel") if self.hierarchy else 0
        self.ledger = QueueLedger(session)
        self.queues = sorted(session.queues.values(), key=lambda q: q.number)
        if self.hierarchy:
            self._plant()
        else:
            self._lay_out()
        session.record.warnings += unread_shares(self.queues, self.name)
        if not self.hierarchy:
            session.record.warnings += unread_tree(self.queues, self.name)
        self.path = [[number, *self.tree.ancestors[number][::-1]] for number in range(len(self.queues))]
        """Each queue and its ancestors, itself first."""
        self.ledger.set_limits(self.queues, self.due.limit)
        self.devices = self._device_quota()
        if self.hierarchy:
            self._add_up()
        self.empty = [amounts.is_empty for amounts in self.due.deserved]
        self.counted: list[BoolArray] = [amounts.counted for amounts in self.due.deserved]
        self.exceedable = [_exceedable(amounts.given, counted) for amounts, counted in zip(self.due.deserved, self.counted)]
        self._dims = [np.flatnonzero(counted) for counted in self.counted]
        self._share: list[float | None] = [None] * len(self.queues)
        if not self.hierarchy:
            session.stop_asking(self, VictimQueueOrder)

    def _device_quota(self) -> DeviceQuota | None:
        if not self.given.flag("capacity.DynamicResourceAllocationEnable"):
            return None
        quota = DeviceQuota(self.session, self.queues, self.path)
        if quota.limits and self.given.flag("capacity.DRAConsumableCapacityEnable"):
            self.session.record.warnings.append("capacity: quotas of device classes count whole devices, not shares of them")
        return quota if quota.limits else None

    def _lay_out(self) -> None:
        names = self.ledger.names
        self.tree = capacity_tree.flat(self.queues)
        limits = real_capabilities(names, self.session.total, self.queues)
        self.due = capacity_tree.flat_entitlements(names, self.queues, limits)

    def _plant(self) -> None:
        session = self.session
        if ROOT not in session.queues:
            self.queues.append(Queue(len(self.queues), QueueSpec(ROOT, state="Open"), session.snapshot.jobs, None))
            self.ledger.add_queue()
        self.tree = capacity_tree.grow(self.queues)
        self.due = capacity_tree.tree_entitlements(self.ledger.names, self.queues, self.tree, session.total)
        faults = [self.tree.broken[q.number] for q in self.queues if q.number in self.tree.broken]
        faults += [_not_leaf(q) for q in self.queues if self.tree.children[q.number] and self.ledger.has_jobs[q.number]]
        session.record.warnings += [f"{reason.message}; its jobs wait, other queues are served" for reason in faults]

    def _add_up(self) -> None:
        """Figures of leaves count in all their ancestors."""
        ledger = self.ledger
        for column in (ledger.allocated, ledger.request, ledger.inqueue, ledger.elastic):
            own = column.copy()
            for number, line in enumerate(self.tree.ancestors):
                column[line] += own[number]

    # figures

    def share(self, number: int) -> float:
        found = self._share[number]
        if found is None:
            due = self.due.deserved[number].values
            found = 1.0 if self.empty[number] else largest_part(self.ledger.allocated[number], due, self._dims[number])
            self._share[number] = found
        return found

    def queue_figures(self, queue: Queue) -> QueueFigures:
        due, share = self.due.deserved[queue.number], self.share(queue.number)
        return self.ledger.figures(queue, due, share, with_below=self.hierarchy)

    def hard_limits(self, job: Job) -> Sequence[HardLimit]:
        return self.ledger.hard_limits(self.path[job.queue.number])

    def fault(self, queue: Queue, *, leaf: bool = True) -> Reason | None:
        """Why the queue can take on nothing, whatever it holds."""
        broken = self.tree.broken.get(queue.number)
        if broken is not None:
            return broken
        return _not_leaf(queue) if leaf and not self.tree.is_leaf(queue.number) else None

    # order

    def queue_order(self, left: Queue, right: Queue) -> int:
        if left.spec.priority != right.spec.priority:
            return right.spec.priority - left.spec.priority
        a, b, tree = left.number, right.number, self.tree
        if (a in tree.broken) != (b in tree.broken):
            return 1 if a in tree.broken else -1
        if tree.is_leaf(a) != tree.is_leaf(b):
            return -1 if tree.is_leaf(a) else 1
        if tree.is_leaf(a):
            level = tree.level(a, b) + 1
            a, b = self._at(a, level), self._at(b, level)
        mine, yours = (self.share(a), self.empty[a]), (self.share(b), self.empty[b])
        return int(mine > yours) - int(mine < yours)

    def _at(self, number: int, level: int) -> int:
        line = self.tree.ancestors[number]
        return line[level] if level < len(line) else number

    def victim_queue_order(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        """Near queues first: the queue that shares more ancestors with the preemptor's loses victims first."""
        return self.tree.level(right.number, preemptor.number) - self.tree.level(left.number, preemptor.number)

    # limits

    def allocatable(self, queue: Queue, task: TaskClass, count: int) -> int | Reason:
        reason = closed(self.session, queue) or self.fault(queue)
        if reason is not None:
            return reason
        for number in self.path[queue.number]:
            count = self.ledger.room(number, task, self.due.limit[number], count)
            if count <= 0:
                return self.ledger.over_limit(self.queues[number], task, self.due.limit[number], limit_is="capability")
        if self.devices is not None:
            return self.devices.refuses(self.path[queue.number], task.shape) or count
        return count

    def preemptive(self, queue: Queue, task: TaskClass) -> Reason | None:
        number = queue.number
        reason = self.fault(queue, leaf=False) or closed(self.session, queue)
        if reason is not None:
            return reason
        if self.ledger.room(number, task, self.due.limit[number], 1) <= 0:
            return self.ledger.over_limit(queue, task, self.due.limit[number], limit_is="capability")
        above = (self.tree.above(number, depth) for depth in range(1, self.reclaim_level + 1))
        for each in (number, *(a for a in above if a is not None and self.queues[a].name != ROOT)):
            if self._below_due(each, task):
                return None
        text = f"queue {queue.name} would hold more than it deserves: it may not reclaim for the task"
        return Reason("OverFairShare", text, figures={"queue": queue.name, "share": self.share(number)}, undone_by=FREED)

    def _below_due(self, number: int, task: TaskClass) -> bool:
        """Whether the queue with the task stays within what it deserves: in every resource that the task asks for and the
        queue has a part of; where the policy wants it so, in any one resource that the task asks for."""
        dims, request = self.ledger.asked(task)
        within = self.ledger.allocated[number, dims] + request - self.due.deserved[number].values[dims] < CLOSE
        if not self.session.semantics.reclaim_minds_every_resource:
            return bool(within.any())
        owed = self.exceedable[number][dims]
        return bool(owed.any() and within[owed].all())

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None:
        session = self.session
        job = session.job_of(reclaimer)
        if job is None or self.fault(job.queue, leaf=False) is not None:
            return []
        attempt = ReclaimAttempt(self, session.class_of(reclaimer), job.queue.number)
        out = []
        for candidate in victim_order(session, candidates, job.queue):
            other = session.job_of(candidate)
            if other is not None and attempt.try_take(other.queue.number, session.class_of(candidate)):
                out.append(candidate)
        return out

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None:
        if not reclaim:
            return list(candidates)
        attempt = ReclaimAttempt(self)
        out = []
        for candidate in candidates:
            other = self.session.job_of(candidate)
            if other is not None and attempt.try_take(other.queue.number, self.session.class_of(candidate)):
                out.append(candidate)
        return out

    def queues_owed(self) -> QueueShares:
        """What each deserves as far as it asks for it, then its part of what others leave. Queues that are not fit for use are owed
        nothing."""
        count = len(self.queues)
        root = next((queue.number for queue in self.queues if queue.name == ROOT), -1) if self.hierarchy else -1
        fit = [n for n in range(count) if n != root and n not in self.tree.broken]
        claims = Claims(
            weight=np.array([float(max(queue.spec.weight, 1)) for queue in self.queues]),
            limit=self.due.limit,
            request=self.ledger.attainable_request(),
            entitled=np.array([amounts.values for amounts in self.due.deserved], dtype=np.int64),
        )
        lines: list[tuple[int, ...]] = [()] * count
        for number in fit:
            lines[number] = (*(each for each in self.tree.ancestors[number] if each != root), number)
        top, below = [n for n in fit if len(lines[n]) == 1], {n: self.tree.children[n] for n in fit}
        return QueueShares(owed_down(self.session.total, top, below, claims), lines)

    # admission

    def job_enqueueable(self, job: Job) -> Vote | Reason:
        reason = self.fault(job.queue) or closed(self.session, job.queue)
        if reason is not None:
            return reason
        if job.spec.min_resources is None:
            return Vote.PERMIT
        for number in self.path[job.queue.number]:
            reason = self.ledger.enqueueable(self.queues[number], job, self.due.limit[number])
            if reason is not None:
                return reason
        if self.devices is not None:
            return self.devices.refuses_job(self.path[job.queue.number], job) or Vote.PERMIT
        return Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        self.ledger.admit(self.path[job.queue.number], job)
        if self.devices is not None:
            self.devices.admit(self.path[job.queue.number], job)

    # events

    def on_allocate(self, change: Change) -> None:
        path = self.path[change.job.queue.number]
        self.ledger.allocate(path, change)
        if self.devices is not None:
            self.devices.move(path, change, 1)
        self._forget_shares(path)

    def on_deallocate(self, change: Change) -> None:
        path = self.path[change.job.queue.number]
        self.ledger.deallocate(path, change)
        if self.devices is not None:
            self.devices.move(path, change, -1)
        self._forget_shares(path)

    def _forget_shares(self, path: list[int]) -> None:
        for number in path:
            self._share[number] = None


def _not_leaf(queue: Queue) -> Reason:
    text = f"queue {queue.name} has children: only leaf queues take jobs"
    return Reason("QueueNotLeaf", text, figures={"queue": queue.name}, undone_by=(Event.QUEUE_CHANGED, Event.JOB_CHANGED))


def _exceedable(given: BoolArray, counted: BoolArray) -> BoolArray:
    """Resources in which a queue can be above what it deserves: named ones, even with zero; cpu and memory above zero."""
    out = given.copy()
    out[[CPU, MEMORY]] = counted[[CPU, MEMORY]]
    out[PODS] = False
    return out
