"""The ledger of queues: what each queue holds, requests, and has admitted. proportion and capacity share it.

It is computed from the job columns in a few passes when a session opens. Afterwards `allocated` follows each placement and
eviction, and `inqueue` each admission. Arrays are (queues, resources) by `Queue.number`, so that the figures of a queue are
adjacent.

`inqueue` is what admitted jobs may still claim: their minimum minus what they hold. `elastic` is what jobs hold above their minimum.
It can be taken back, so it does not prevent an admission.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from navarch.engine.figures import Rows
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.hopeless_tasks import HopelessTasks
from navarch.engine.points.protocols import Change, EachChange, HardLimit
from navarch.engine.queue import Queue
from navarch.engine.reasons import NEVER, Event, Reason
from navarch.engine.record import QueueFigures
from navarch.engine.session import Session
from navarch.model.resources import UNLIMITED, BoolArray, IntArray
from navarch.model.status import IS_ALLOCATED, TaskStatus
from navarch.model.tables.columns import sums_by_group
from navarch.plugins.queues.amount_text import side_by_side
from navarch.plugins.queues.amounts import Amounts, Vector, asked_dims, in_order, total_of

_ALL = slice(None)
_IS_ALLOCATED = IS_ALLOCATED.astype(np.int64)
SHARE = "deserved share"
"""What limits a queue whose share is the bound (`over_limit`)."""
LIMIT, OVER_SHARE = "QueueLimit", "QueueOverDeserved"
"""Codes of a task that has no room below a bound of its queue, and in what its queue is owed."""
FREED = (Event.POD_REMOVED, Event.QUEUE_CHANGED, Event.NODE_ADDED, Event.NODE_CHANGED)


class QueueLedger:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.names = session.snapshot.resource_names
        jobs, queues = session.snapshot.jobs, sorted(session.queues.values(), key=lambda q: q.number)
        size = (len(queues), len(self.names))
        self.allocated: IntArray = np.array([q.allocated for q in queues], dtype=np.int64).reshape(size)
        self.request: IntArray = np.array([q.request for q in queues], dtype=np.int64).reshape(size)
        self.has_jobs: BoolArray = np.zeros(len(queues), dtype=bool)
        for name, count in zip(jobs.queue_names, jobs.queue_jobs.tolist()):
            if count and name in session.queues:
                self.has_jobs[session.queues[name].number] = True
        asking = np.flatnonzero(jobs.has_min_resources)
        """Only jobs that say what they need have anything to keep or to claim; pods without a group are not among them."""
        minimum = jobs.min_resources[:, asking]
        needed = np.minimum(jobs.allocated[:, asking], minimum)
        self.elastic: IntArray = self.allocated - self._sums(needed, queue_of_job(session, asking))
        self._gated = gated_requests(session)
        claiming = in_phase(session, "Inqueue", asking) | running_in_full(session, asking)
        rows = asking[claiming]
        claims = minimum[:, claiming] - needed[:, claiming]
        for column, row in enumerate(rows.tolist() if self._gated else ()):
            if row in self._gated:
                claims[:, column] = np.maximum(claims[:, column] - self._gated[row], 0)
        self.inqueue: IntArray = self._sums(claims, queue_of_job(session, rows))
        self._asked: dict[int, tuple[Rows, IntArray]] = {}
        self._pairs: dict[int, list[tuple[int, int]]] = {}
        self._queues: Sequence[Queue] = queues
        self._lasting: IntArray = np.full(size, UNLIMITED, dtype=np.int64)
        self._hard: dict[int, HardLimit | None] = {}
        self._charges: dict[int, dict[str, float]] = {}
        self._over_limit: dict[tuple[int, int, str, bytes, bytes], Reason] = {}
        """By queue, class and figures: a backlog of equal jobs is refused for one reason, whose text is written once."""

    def set_limits(self, queues: Sequence[Queue], limits: IntArray) -> None:
        """`limits`: (queues, resources), what each queue may hold at most on the nodes that are there."""
        self._queues = queues
        self._lasting = lasting_limits(self.names, self.session.total, queues, limits)

    def hard_limits(self, queues: Iterable[int]) -> list[HardLimit]:
        """Those of these queues that have one."""
        return [limit for number in queues if (limit := self._hard_limit(number)) is not None]

    def _hard_limit(self, number: int) -> HardLimit | None:
        if number not in self._hard:
            lasting, held, names = self._lasting[number], self.allocated[number], self.names
            left = {names[dim]: float(lasting[dim] - held[dim]) for dim in np.flatnonzero(lasting < UNLIMITED).tolist()}
            name = self._queues[number].name

            def told(resource: str, asked: float, left: float) -> str:
                asks, rest, limit = side_by_side(resource, asked, left, lasting[names.index(resource)].item())
                return f"queue {name} would exceed its limit: {resource} asks {asks}, {rest} of {limit} is left by jobs before it"

            self._hard[number] = HardLimit(left, self._charge, told) if left else None
        return self._hard[number]

    def _charge(self, task: int) -> dict[str, float]:
        """What the task takes of the queue's resources, pods aside."""
        shape = int(self.session.shape[task])
        found = self._charges.get(shape)
        if found is None:
            amounts = self.session.snapshot.shape_charge[:, shape]
            found = self._charges[shape] = {self.names[dim]: float(amounts[dim]) for dim in asked_dims(amounts).tolist()}
        return found

    def attainable_request(self) -> IntArray:
        """What queues hold and ask for, without what no node could ever hold, unless the policy lets that count."""
        session = self.session
        if session.semantics.impossible_demand_counts:
            return self.request
        hopeless = session.shared(HopelessTasks).rows
        if not len(hopeless):
            return self.request
        asked = session.snapshot.shape_charge[:, session.snapshot.tasks.shape[hopeless]]
        left: IntArray = self.request - self._sums(asked, queue_of_job(session, session.snapshot.tasks.job[hopeless].astype(np.intp)))
        return left

    def _sums(self, columns: IntArray, queue: Rows) -> IntArray:
        return np.ascontiguousarray(sums_by_group(columns, queue, len(self.session.queues)).T)

    def add_queue(self) -> None:
        """One more queue that the snapshot does not have, without figures of its own."""
        for name in ("allocated", "request", "inqueue", "elastic"):
            columns = getattr(self, name)
            setattr(self, name, np.vstack([columns, np.zeros_like(columns, shape=(1, columns.shape[1]))]))
        self.has_jobs = np.append(self.has_jobs, False)

    # moving

    def allocate(self, queues: Iterable[int], change: Change | EachChange) -> None:
        for number in queues:
            self.allocated[number] += change.total

    def deallocate(self, queues: Iterable[int], change: Change | EachChange) -> None:
        for number in queues:
            self.allocated[number] -= change.total

    def admit(self, queues: Iterable[int], job: Job) -> None:
        amount = without_gated(minimum_of(job), self._gated, job)
        for number in queues:
            self.inqueue[number] += amount

    # asking

    def asked(self, task: TaskClass) -> tuple[Rows, IntArray]:
        """The resources that the class asks for, pods aside, and how much of each."""
        found = self._asked.get(task.number)
        if found is None:
            dims = asked_dims(task.charge)
            found = self._asked[task.number] = (dims, task.charge[dims])
        return found

    def amounts_asked(self, task: TaskClass) -> list[tuple[int, int]]:
        """The same as plain pairs."""
        found = self._pairs.get(task.number)
        if found is None:
            dims, request = self.asked(task)
            found = self._pairs[task.number] = list(zip(dims.tolist(), request.tolist()))
        return found

    def room(self, number: int, task: TaskClass, limit: IntArray, count: int) -> int:
        """How many of `count` such tasks the queue can take on within an integer limit."""
        held = self.allocated[number]
        for dim, amount in self.amounts_asked(task):  # a few: cheaper one by one than as arrays
            count = min(count, (int(limit[dim]) - int(held[dim])) // amount)
        return count

    def over_limit(self, queue: Queue, task: TaskClass, limit: Vector, *, limit_is: str) -> Reason:
        """Why not even one more: for when `room` found none."""
        held, (tried, pods) = self.allocated[queue.number], _tried(self.session)
        if pods:
            return self._find_over_limit(queue, task, limit, limit_is, held, tried, pods)
        key = (queue.number, task.number, limit_is, held.tobytes(), limit.tobytes())
        found = self._over_limit.get(key)
        if found is None:
            found = self._over_limit[key] = self._find_over_limit(queue, task, limit, limit_is, held, 0, 0)
        return found

    def _find_over_limit(
        self, queue: Queue, task: TaskClass, limit: Vector, limit_is: str, held: IntArray, tried: IntArray | int, pods: int
    ) -> Reason:
        dims, request = self.asked(task)
        short = [d for d, asked in zip(dims.tolist(), request.tolist()) if held[d] + asked > limit[d]]
        if absent := in_order([d for d in short if not self.session.total[d]], self.names):
            return Reason(NEVER, f"cannot start: no node offers {', '.join(absent)}", figures={"queue": queue.name}, undone_by=FREED)
        asked, others = task.charge + tried, held - tried
        if limit_is == SHARE and all(limit[d] >= self.session.total[d] for d in short):
            return self._cluster_full(short, queue, others, asked, pods)
        prefix = f"queue {queue.name} would exceed its {limit_is}"
        code = OVER_SHARE if limit_is == SHARE else LIMIT
        found = self.refusal(code, prefix, short, queue, others, asked, limit, limit_is, pods)
        return found if limit_is == SHARE else self._of_cluster(found, queue, short, held + task.charge)

    def _cluster_full(self, short: Sequence[int], queue: Queue, held: Vector, asked: Vector, tried: int) -> Reason:
        """The share of the queue is the whole cluster, so no share stands in the way. `tried`: see `refusal`."""
        total = self.session.total
        found = self.refusal("ClusterFull", "", short, queue, held, asked, total, "in the cluster", tried)
        lacking = {self.names[d]: side_by_side(self.names[d], asked[d].item(), held[d].item(), total[d].item()) for d in short}
        holder, pods = ("others hold", f"{tried + 1} pods of this job ask") if tried else (f"queue {queue.name} holds", "asks")
        told = [
            f"insufficient {name} in the cluster: {pods} {asks}, {holder} {holds} of {of}"
            for name in in_order(short, self.names)
            for asks, holds, of in (lacking[name],)
        ]
        return replace(found, message="; ".join(told))

    def enqueueable(self, queue: Queue, job: Job, limit: Vector) -> Reason | None:
        """Whether the job's minimum finds room beside what the queue holds and has admitted, less what can be taken back. What was
        admitted and holds nothing does not count while `session.beyond_shares` is set."""
        number, asked = queue.number, minimum_of(job)
        dims = asked_dims(asked)
        held = self.allocated[number]
        if not job.session.beyond_shares:
            held = held + self.inqueue[number] - self.elastic[number]
        short = dims[held[dims] + asked[dims] > limit[dims]]
        if not len(short):
            return None
        prefix = "queue resource quota insufficient"
        found = self.refusal("QueueQuotaInsufficient", prefix, short.tolist(), queue, held, asked, limit, "capability")
        return self._of_cluster(found, queue, short.tolist(), held + asked)

    def _of_cluster(self, reason: Reason, queue: Queue, short: Sequence[int], wanted: Vector) -> Reason:
        """The reason. Where no limit that lasts is exceeded, what stands behind it is that the cluster is too small."""
        lasting = self._lasting[queue.number]
        return reason if any(wanted[dim] > lasting[dim] for dim in short) else replace(reason, cause="ClusterFull")

    def refusal(
        self,
        code: str,
        prefix: str,
        short: Sequence[int],
        queue: Queue,
        held: Vector,
        asked: Vector,
        limit: Vector,
        limit_is: str,
        tried: int = 0,
    ) -> Reason:
        """`tried`: so many further pods of the job are in `asked`, and not in `held`."""
        figures: dict[str, int | float | str] = {"queue": queue.name}
        if tried:
            figures["pods"] = tried + 1
        for dim in short:
            name = self.names[dim]
            figures[f"{name} held"] = held[dim].item()
            figures[f"{name} asked"] = asked[dim].item()
            figures[f"{name} {limit_is}"] = limit[dim].item()
        absent = [d for d in short if not self.session.total[d]]
        lacking = [f"insufficient {name}" for name in in_order(short, self.names)]
        if code in (LIMIT, OVER_SHARE):
            amounts = {self.names[d]: (asked[d].item(), held[d].item(), limit[d].item()) for d in short}
            lacking = [f"insufficient {name} ({_of(name, *amounts[name], tried)})" for name in in_order(short, self.names)]
        told = f"; no node offers {', '.join(in_order(absent, self.names))}" if absent else ""
        return Reason(code, f"{prefix}: {', '.join(lacking)}{told}", figures=figures, undone_by=FREED)

    def figures(self, queue: Queue, deserved: Amounts, share: float, *, with_below: bool = False) -> QueueFigures:
        """Kept until one of the figures changes: of thousands of queues few do in a cycle."""
        number = queue.number
        kept: dict[str, tuple[Any, QueueFigures]] = self.session.snapshot.memo.setdefault("figures of queues", {})
        arrays = (deserved.values, deserved.given, self.allocated[number], self.request[number])
        now = (self.names, share, with_below, *(each.tobytes() for each in arrays))
        if queue.name in kept and kept[queue.name][0] == now:
            return kept[queue.name][1]
        due = zip(self.names, deserved.values.tolist(), deserved.given.tolist())
        found = QueueFigures(
            queue=queue.name,
            deserved={name: value for name, value, given in sorted(due) if given and value < UNLIMITED},
            allocated=self._named(self.allocated[number]),
            request=self._named(self.request[number]),
            share=share,
            with_below=with_below,
        )
        if len(kept) > 2 * len(self.session.queues):
            kept.clear()
        kept[queue.name] = now, found
        return found

    def _named(self, values: IntArray) -> Mapping[str, int]:
        return {name: value for name, value in sorted(zip(self.names, values.tolist())) if value}


def queue_of_job(session: Session, rows: Rows | slice = _ALL) -> Rows:
    """Queue number of each of these job rows; -1: it takes no part."""
    jobs = session.snapshot.jobs
    number = [queue.number if (queue := session.queues.get(name)) else -1 for name in jobs.queue_names]
    found: Rows = np.array([*number, -1], dtype=np.intp)[jobs.queue[rows]]
    return found


def hard_limits(names: Sequence[str], total: IntArray, queues: Sequence[Queue]) -> IntArray:
    """(queues, resources): what each queue may hold of what shares leave over. Its capability limits it, and what others are
    guaranteed; a resource that neither names is limited by the nodes alone."""
    size = (len(queues), len(names))
    guarantee: IntArray = np.array([Amounts.of(names, q.spec.guarantee).values for q in queues], dtype=np.int64).reshape(size)
    others = guarantee.sum(axis=0) - guarantee
    capability = np.array([Amounts.limit(names, q.spec.capability).values for q in queues], dtype=np.int64).reshape(size)
    limits: IntArray = np.minimum(capability, np.where(others > 0, np.maximum(total - others, 0), UNLIMITED))
    return limits


def lasting_limits(names: Sequence[str], total: IntArray, queues: Sequence[Queue], limits: IntArray) -> IntArray:
    """(queues, resources): what stays of these limits when nodes are added: what a queue's capability says, and what others are
    guaranteed, but not the size of the cluster."""
    capability = np.array([Amounts.limit(names, q.spec.capability).values for q in queues], dtype=np.int64).reshape(limits.shape)
    lasting: IntArray = np.where((limits < total) & (total > 0), limits, capability)
    return lasting


def real_capabilities(names: Sequence[str], total: IntArray, queues: Sequence[Queue]) -> list[Amounts]:
    """What each queue may hold at most: the cluster less what is guaranteed to others, within its own capability."""
    guarantees = [Amounts.of(names, q.spec.guarantee) for q in queues]
    common = Amounts(total, np.ones(len(names), dtype=bool)).beyond(total_of(guarantees, len(names)))
    out = []
    for queue, guarantee in zip(queues, guarantees):
        limit = common.plus(guarantee)
        out.append(limit.within(Amounts.limit(names, queue.spec.capability)) if queue.spec.capability else limit)
    return out


def closed(session: Session, queue: Queue) -> Reason | None:
    """Only an open queue takes on work."""
    state = queue.spec.state
    if session.queues_are_open or state in ("", "Open"):
        return None
    text = f"queue {queue.name} is {state}, not Open"
    return Reason("QueueClosed", text, figures={"queue": queue.name, "state": state}, undone_by=(Event.QUEUE_CHANGED,))


def running_in_full(session: Session, rows: Rows) -> BoolArray:
    """Which of these job rows are in phase Running with enough pods, and say what they need: whose minimum is spoken for as far as
    they do not hold it yet. A job whose main pod has finished is not among them: it does not claim its minimum again."""
    jobs = session.snapshot.jobs
    enough = jobs.counts[rows] @ _IS_ALLOCATED >= jobs.min_member[rows]
    mask: BoolArray = jobs.has_min_resources[rows] & in_phase(session, "Running", rows) & enough
    return mask


def in_phase(session: Session, phase: str, rows: Rows | slice = _ALL) -> BoolArray:
    jobs = session.snapshot.jobs
    mask: BoolArray = jobs.phase[rows] == (jobs.phases.index(phase) if phase in jobs.phases else -1)
    return mask


def minimum_of(job: Job) -> IntArray:
    """What the job needs to start, as it says itself."""
    columns = job.session.snapshot.jobs
    amount: IntArray = columns.min_resources[:, job.row] * columns.has_min_resources[job.row]
    return amount


def without_gated(amount: IntArray, gated: Mapping[int, IntArray], job: Job) -> IntArray:
    return np.maximum(amount - gated[job.row], 0) if job.row in gated else amount


def gated_requests(session: Session) -> dict[int, IntArray]:
    """Job row -> what its gated pods request, for jobs that say what they need. Nothing is reserved for these pods."""
    tasks, jobs = session.snapshot.tasks, session.snapshot.jobs
    rows = np.flatnonzero(tasks.gated & tasks.alive & (tasks.status == TaskStatus.PENDING) & (tasks.job >= 0))
    rows = rows[jobs.has_min_resources[tasks.job[rows]]]
    if not len(rows):
        return {}
    owners, group = np.unique(tasks.job[rows], return_inverse=True)
    requests = sums_by_group(session.snapshot.shape_charge[:, tasks.shape[rows]], group, len(owners))
    return dict(zip(owners.tolist(), requests.T))


def _tried(session: Session) -> tuple[IntArray | int, int]:
    """What the gang that is being placed holds of this attempt alone, and with how many pods. It is given back if the gang finds
    no room, so its owner must not read that others hold it."""
    job = session.placing
    if job is None or job.is_ready or not session.semantics.refusals_tell_all:
        return 0, 0
    rows = job.tasks_in(TaskStatus.ALLOCATED, TaskStatus.PIPELINED)
    return (session.snapshot.shape_charge[:, session.snapshot.tasks.shape[rows]].sum(axis=1), len(rows)) if rows else (0, 0)


def _of(name: str, asked: float, held: float, limit: float, tried: int) -> str:
    """`asks 2, holds 7 of 8`: what a user needs to see at once why the queue refused."""
    asks, holds, of = side_by_side(name, asked, held, limit)
    if tried:
        return f"{tried + 1} pods of this job ask {asks}, others hold {holds} of {of}"
    return f"asks {asks}, holds {holds} of {of}"
