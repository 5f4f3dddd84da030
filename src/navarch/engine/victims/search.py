"""Functions that the victim searches of all evicting actions share.

An action uses them on a statement, as a dry run that it keeps or rolls back:

- `freed_at_most` bounds what evictions could free on each node, in one pass over the task columns, so that the search skips
  nodes that can never have enough;
- `victim_order` is the order of eviction;
- `evict_until` evicts along that order until a test holds;
- `give_back` undoes every eviction that turns out not to be needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.points.order_key import OrderKey
from navarch.engine.queue import Queue
from navarch.engine.statement import Statement
from navarch.engine.steps import TASKS_A_STEP
from navarch.engine.victims.protected import ProtectedPods
from navarch.model.resources import BoolArray, IntArray
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.engine.session import Session


def freed_at_most(session: Session, candidates: BoolArray) -> IntArray:
    """(R, N): what evicting every candidate (a mask over task rows) would free on each node."""
    out = np.zeros_like(session.nodes.used)
    rows = np.flatnonzero(candidates)
    requests = session.snapshot.shape_request[:, session.shape[rows]]
    for resource in np.flatnonzero(requests.any(axis=1)):
        out[resource] = np.bincount(session.node[rows], weights=requests[resource], minlength=out.shape[1])
    if (devices := session.devices) is not None:
        for task in devices.groups:
            if candidates[task]:
                out[:, session.node[task]] += devices.freed_by((task,))
    return out


def candidates_in_queue(session: Session, queue: Queue, statuses: Sequence[TaskStatus]) -> BoolArray:
    """Mask of the preemptable task rows in one of these statuses that belong to jobs of the queue."""
    return _evictable(session, statuses) & _job_mask(session, lambda number, name: name == queue.name)


def candidates_elsewhere(session: Session, queue: Queue, statuses: Sequence[TaskStatus]) -> BoolArray:
    """The same for every other queue that is reclaimable."""

    def other(number: int, name: str) -> bool:
        found = session.queues.get(name)
        return found is not None and found is not queue and found.spec.reclaimable

    return _evictable(session, statuses) & _job_mask(session, other)


def _evictable(session: Session, statuses: Sequence[TaskStatus]) -> BoolArray:
    tasks = session.snapshot.tasks
    session.steps.spend(1 + len(tasks.alive) // TASKS_A_STEP)
    evictable: BoolArray = tasks.alive & tasks.preemptable & np.isin(session.status, statuses) & (session.node >= 0)
    protected = session.shared(ProtectedPods).rows
    return evictable if protected is None else evictable & ~protected


def _job_mask(session: Session, wanted: Callable[[int, str], bool]) -> BoolArray:
    jobs = session.snapshot.jobs
    numbers = [i for i, name in enumerate(jobs.queue_names) if wanted(i, name)]
    belongs = np.append(np.isin(jobs.queue, numbers), False)  # the last answers for tasks without a job (-1)
    mask: BoolArray = belongs[session.snapshot.tasks.job]
    return mask


def within_reach(session: Session, task: TaskClass, freed: IntArray) -> BoolArray:
    """Nodes where the task would fit if everything in `freed` were released."""
    dims = np.flatnonzero(task.request)
    room = session.nodes.future_idle[dims] + freed[dims]
    enough = task.request[dims, None] <= room
    claimed = session.left_to_claims(dims)
    reach: BoolArray = np.all(enough if claimed is None else enough | claimed, axis=0)
    return reach


def fits(session: Session, task: TaskClass, row: int, freed: IntArray | None = None) -> bool:
    """Whether the task's request fits the future idle resources of the node plus `freed`."""
    nodes = session.nodes
    room = nodes.allocatable[:, row] - nodes.used[:, row] + nodes.releasing[:, row] - nodes.pipelined[:, row]
    if freed is not None:
        room = room + freed
    view = session.view(task)
    enough, claimed = view.need[:, 0] <= room[view.dims], session.left_to_claims(view.dims)
    if not np.all(enough if claimed is None else enough | claimed[:, row]):
        return False
    # What a victim frees of a shared device depends on its other users, so only evictions that were carried out count.
    return freed is not None or view.devices is None or view.devices.fits_on(task, row)


def limits_allow(session: Session, queue: Queue, task: TaskClass) -> bool:
    """Whether the queue may hold one such task more, held to hard limits alone."""
    before, session.beyond_shares = session.beyond_shares, True
    room, _ = session.allocatable(queue, task, 1)
    session.beyond_shares = before
    return room > 0


def total_request(session: Session, tasks: Sequence[int]) -> IntArray:
    total: IntArray = session.snapshot.shape_request[:, session.shape[list(tasks)]].sum(axis=1)
    return total


def freed_request(session: Session, victims: Sequence[int]) -> IntArray:
    """The most that evicting these tasks frees: their requests, and the devices that they share."""
    total = total_request(session, victims)
    return total if session.devices is None else total + session.devices.freed_by(victims)


def once_per_job(order: Callable[[Job], OrderKey]) -> Callable[[Job], OrderKey]:
    """The order, computed once for each job: a sort asks many times."""
    known: dict[int, OrderKey] = {}

    def order_of(job: Job) -> OrderKey:
        found = known.get(job.row)
        if found is None:
            found = known[job.row] = order(job)
        return found

    return order_of


def victim_order(session: Session, victims: Sequence[int], preemptor: Queue) -> list[int]:
    """The order of eviction: across queues by the victims' queue order, inside a queue by reverse job order, inside a job (or
    between jobs that the plugins order equally) by reverse task order."""
    job_key = once_per_job(session.job_order_by_plugins)

    def compare(left: int, right: int) -> int:
        a, b = session.job_of(left), session.job_of(right)
        assert a is not None and b is not None
        if a is not b:
            if a.queue is not b.queue:
                opinion = session.victim_queue_order(a.queue, b.queue, preemptor)
                if opinion:
                    return opinion
            elif job_key(a) != job_key(b):
                return -1 if job_key(a) > job_key(b) else 1
        return -session.compare_tasks(left, right)

    return sorted(victims, key=cmp_to_key(compare)) if len(victims) > 1 else list(victims)


def as_offered(session: Session, candidates: Sequence[int], preemptor: Queue) -> list[int]:
    """Candidates in the order in which plugins see them. A plugin that offers a limited number offers the first ones, so they are
    in the order of eviction; without `victims_are_minimal`, in the order given."""
    return victim_order(session, candidates, preemptor) if session.semantics.victims_are_minimal else list(candidates)


def evict_until(statement: Statement, victims: Sequence[int], enough: Callable[[], bool], *, for_: str, reason: str) -> int | None:
    """Evict in order until the test holds; it is checked before the first eviction too. Returns the number of evictions, or None
    if the test never held."""
    if enough():
        return 0
    for number, victim in enumerate(victims, 1):
        statement.evict(victim, for_=for_, reason=reason)
        if enough():
            return number
    return None


def give_back(statement: Statement, save_point: int, enough: Callable[[], bool]) -> int:
    """Undo evictions since the save point, last first, as long as the test still holds without them. Returns how many remain."""
    evictions = [op for op in statement.operations[save_point:] if op.kind == TaskStatus.RELEASING]
    remain = len(evictions)
    for operation in reversed(evictions):
        statement.undo(operation)
        if enough():
            remain -= 1
        else:
            statement.evict(operation.tasks[0], for_=operation.for_, reason=operation.reason, message=operation.message)
    return remain
