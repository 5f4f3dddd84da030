"""The statement: an undo log over the session. It is the only way to move tasks.

An operation moves a batch of tasks of one job and one shape at once, so a gang of a thousand equal tasks is a handful of
operations. `discard` undoes in reverse and leaves every figure as it was; `commit` hands the decisions to the record. A
save point lets a search try something inside a larger attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.placed_each import PlacedEach
from navarch.engine.placement.recording import record_binds, record_operation
from navarch.engine.placement.shared_devices import shares_devices
from navarch.engine.points.gang_protocols import EvictedAgain
from navarch.engine.points.protocols import Change
from navarch.engine.reasons import Reason
from navarch.model.resources import IntArray
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.engine.session import Session

ALLOCATED, PIPELINED, PENDING, RELEASING = (
    TaskStatus.ALLOCATED,
    TaskStatus.PIPELINED,
    TaskStatus.PENDING,
    TaskStatus.RELEASING,
)


@dataclass(slots=True, eq=False)
class Operation:
    kind: TaskStatus
    """What the tasks became: ALLOCATED, PIPELINED or RELEASING. PENDING: the task was nominated for a node and waits."""
    before: TaskStatus
    job: Job | None
    """None: an evicted pod that belongs to no job."""
    tasks: list[int]
    nodes: list[int]
    task: TaskClass
    rows: Rows
    counts: IntArray
    came_from: int = -1
    """The node that a moved task (pipelined after its eviction) stood on."""
    reason: str = ""
    message: str = ""
    for_: str = ""
    evicting: bool = False
    groups: tuple[str, ...] = ()
    """Shared devices that the task got; `left` are those that it used before."""
    left: tuple[str, ...] = ()
    restores: Operation | None = None
    """The eviction that this operation takes back without forgetting it."""
    void: bool = False
    """An eviction that was taken back."""
    again: bool = False
    """The statement had evicted the task already: only plugins that count evictions are told."""
    holds_node: bool = False
    """An evicted pod that rules on other pods count on its node until it is gone."""


class Statement:
    def __init__(self, session: Session, *, trial: bool = False) -> None:
        """`trial`: a placement that it undoes leaves no note that the task could have run (`Job.last_undone`)."""
        self.session = session
        self.trial = trial
        self.action = session.action
        self.operations: list[Operation] = []
        self._evictions: dict[int, Operation] = {}
        self._each: PlacedEach | None = None

    def __len__(self) -> int:
        return len(self.operations) + (0 if self._each is None else len(self._each))

    # what an attempt may do

    def allocate(
        self, job: Job, tasks: Sequence[int], nodes: Sequence[int], task: TaskClass, groups: tuple[str, ...] = ()
    ) -> Mapping[int, Reason]:
        """Allocate idle resources of `nodes[i]` to `tasks[i]`. `groups`: the shared devices of a single task.

        Returns the tasks that a plugin refuses there. If there are any, none of the tasks is placed."""
        return self._place(ALLOCATED, job, list(tasks), list(nodes), task, evicting=False, groups=groups)

    def allocate_each(
        self, jobs: Sequence[Job], tasks: Sequence[int], nodes: Sequence[int], classes: Sequence[TaskClass]
    ) -> Mapping[int, Reason]:
        """As `allocate` for one task of each of several jobs of one queue, `tasks[i]` of `jobs[i]`, in this order. They are one entry
        of the log (`placement/placed_each.py`)."""
        assert not self.operations and self._each is None, "such a statement holds nothing else"
        session = self.session
        self._each = PlacedEach(session, jobs, tasks, nodes, classes)
        if not session.vetoed:
            return _NOTHING
        vetoed, session.vetoed = session.vetoed, {}
        self.keep_each(0)
        return vetoed

    def keep_each(self, count: int) -> None:
        """Take back what `allocate_each` placed, all but the first `count` tasks, as if the others had never been tried."""
        if self._each is not None:
            self._each.keep(count)

    def pipeline(
        self,
        job: Job,
        tasks: Sequence[int],
        nodes: Sequence[int],
        task: TaskClass,
        groups: tuple[str, ...] = (),
        *,
        evicting: bool = False,
    ) -> None:
        """Promise the resources in release on `nodes[i]` to `tasks[i]`. `groups`: the shared devices of a single task; chosen here if
        the caller names none. `evicting`: tasks were evicted for it."""
        if not groups and self.session.devices is not None and shares_devices(task):
            groups, _ = self.session.devices.choose(task, nodes[0], False) or ((), True)
        self._place(PIPELINED, job, list(tasks), list(nodes), task, evicting=evicting, groups=groups)

    def evict(self, task: int, *, for_: str = "", reason: str = "", message: str = "", holds_node: bool = False) -> None:
        """Mark a running task as leaving. The real eviction happens after `commit`. `holds_node`: filters and scores count the pod on
        its node until it is gone, as kube-scheduler does; a pod without a job can be evicted only so."""
        session = self.session
        job = session.job_of(task)
        assert job is not None or holds_node, "a task without a job is never a victim"
        before = TaskStatus(int(session.status[task]))
        row = int(session.node[task])
        assert row >= 0, "a task whose node is gone is never a victim"
        session.steps.spend(1)
        kind = session.class_of(task)
        operation = Operation(
            RELEASING,
            before,
            job,
            [task],
            [row],
            kind,
            _ONE_ROW,
            _ONE,
            reason=reason,
            message=message,
            for_=for_,
            holds_node=holds_node,
        )
        self._release(operation)
        self.operations.append(operation)
        self._evictions[task] = operation

    def evict_again(self, task: int) -> None:
        """Count one more eviction of a task that this statement has evicted. `restore` takes back the first one only."""
        session, job = self.session, self.session.job_of(task)
        assert job is not None and task in self._evictions
        row = int(session.node[task])
        operation = Operation(RELEASING, RELEASING, job, [task], [row], session.class_of(task), _ONE_ROW, _ONE, void=True, again=True)
        self._tell_again(operation, -1)
        self.operations.append(operation)

    def restore(self, task: int) -> None:
        """Keep a task on its node that this statement evicted. Rolling back evicts it again."""
        eviction = self._evictions[task]
        self._unrelease(eviction)
        eviction.void = True
        self.operations.append(
            Operation(
                eviction.before,
                RELEASING,
                eviction.job,
                eviction.tasks,
                eviction.nodes,
                eviction.task,
                _ONE_ROW,
                _ONE,
                restores=eviction,
            )
        )

    def withdraw(self, task: int) -> None:
        """Take back a promise made earlier in the cycle; the task is pending again. Not undone by `discard`."""
        session = self.session
        job = session.job_of(task)
        assert job is not None and session.status[task] == PIPELINED
        row = int(session.node[task])
        self._apply(
            Operation(PIPELINED, PENDING, job, [task], [row], session.class_of(task), np.array([row], dtype=np.intp), _ONE), -1
        )

    def nominate(self, task: int, node: int, *, again: bool = False) -> None:
        """Promise the node to a pending task without reserving anything there. The record of the cycle tells it. `again`: the task
        keeps a promise of an earlier cycle."""
        job, kind = self.session.job_of(task), self.session.class_of(task)
        self.operations.append(Operation(PENDING, PENDING, job, [task], [node], kind, _ONE_ROW, _ONE, evicting=not again))

    def bind_allocated(self, job: Job, tasks: Sequence[int]) -> None:
        """Bind tasks that earlier statements of the cycle allocated and did not commit. Not undone by `discard`."""
        record_binds(self.session, job, tasks)

    # save points

    def save_point(self) -> int:
        return len(self.operations)

    def roll_back(self, save_point: int = 0) -> None:
        """Undo everything after the save point, last first."""
        while len(self.operations) > save_point:
            self._undo(self.operations.pop())

    def undo(self, operation: Operation) -> None:
        """Undo one operation out of order, for a victim that turned out not to be needed."""
        self.operations.remove(operation)
        self._undo(operation)

    def discard(self) -> None:
        self.keep_each(0)
        self.roll_back(0)

    def commit(self) -> None:
        """Add all operations to the session's record, in order. The session keeps the state; the statement is empty then."""
        if self._each is not None:
            self._each.record()
            self._each = None
        evicted = sum(1 for operation in self.operations if operation.kind == RELEASING and not operation.void)
        for operation in self.operations:
            if not operation.void and operation.restores is None:
                record_operation(self.session, operation, self.action, evicted)
        self.operations = []

    # how figures move

    def _place(
        self,
        kind: TaskStatus,
        job: Job,
        tasks: list[int],
        nodes: list[int],
        task: TaskClass,
        *,
        evicting: bool,
        groups: tuple[str, ...],
    ) -> Mapping[int, Reason]:
        session = self.session
        if len(tasks) == 1:
            rows, counts = np.array(nodes, dtype=np.intp), _ONE
        elif len(set(nodes)) == len(nodes):
            rows, counts = np.array(nodes, dtype=np.intp), np.ones(len(nodes), dtype=np.int64)
        else:
            times = Counter(nodes)
            rows = np.fromiter(times, dtype=np.intp, count=len(times))
            counts = np.fromiter(times.values(), dtype=np.int64, count=len(times))
        first = tasks[0]
        before = TaskStatus(int(session.status[first]))
        came_from = int(session.node[first]) if before == RELEASING else -1
        operation = Operation(kind, before, job, tasks, nodes, task, rows, counts, came_from, evicting=evicting, groups=groups)
        if groups and session.devices is not None:
            operation.left = session.devices.groups.get(first, ())
        self._apply(operation, 1)
        if session.vetoed:
            vetoed, session.vetoed = session.vetoed, {}
            self._apply(operation, -1)
            return vetoed
        self.operations.append(operation)
        return _NOTHING

    def _apply(self, operation: Operation, sign: int) -> None:
        session, task, job = self.session, operation.task, operation.job
        assert job is not None
        pipelined = operation.kind == PIPELINED
        session.nodes.place(operation.rows, operation.counts, task.request, task.footprint, sign, pipelined=pipelined)
        if operation.groups and session.devices is not None:
            first, row = operation.tasks[0], operation.nodes[0]
            if sign > 0:
                session.devices.placed(task, first, row, operation.groups, promised=pipelined)
            else:
                session.devices.unplaced(task, first, row, operation.left, promised=pipelined)
        count = len(operation.tasks)
        moved = np.array(operation.tasks) if count > 1 else operation.tasks[0]  # one is far cheaper than an array of one
        if sign > 0:
            session.status[moved] = operation.kind
            session.node[moved] = operation.nodes if count > 1 else operation.nodes[0]
            job.shift(operation.before, operation.kind, count, task.charge, task.best_effort)
        else:
            session.status[moved] = operation.before
            session.node[moved] = operation.came_from
            job.shift(operation.kind, operation.before, count, task.charge, task.best_effort)
        if operation.came_from >= 0 and operation.came_from != operation.nodes[0]:
            self._leave_place(operation, sign)
        session.residents_changed(operation.tasks, operation.nodes, joined=sign > 0)
        change = Change(job, operation.tasks, operation.nodes, task, task.charge * count, pipelined, undone=sign < 0)
        if sign > 0:
            session.events.allocated(change)
        else:
            session.events.deallocated(change)

    def _leave_place(self, operation: Operation, sign: int) -> None:
        """Note the place that a moved task leaves, or forget it. A place that it left on its new node before is forgotten for good."""
        places = self.session.left_places.setdefault(operation.tasks[0], {})
        if sign > 0:
            places.pop(operation.nodes[0], None)
            places[operation.came_from] = operation.left
        else:
            places.pop(operation.came_from, None)

    def _release(self, operation: Operation) -> None:
        session, task, job = self.session, operation.task, operation.job
        row, victim = operation.nodes[0], operation.tasks[0]
        view = not operation.holds_node
        promised = operation.before == PIPELINED
        stays = promised and session.semantics.evicted_promise_stays
        if promised:
            session.nodes.place(np.array([row]), _ONE, task.request, task.footprint, -1, pipelined=True)
        if stays:
            session.nodes.place(np.array([row]), _ONE, task.request, task.footprint, 1, pipelined=False)
        if not promised or stays:
            session.nodes.release(row, task.request, task.footprint, 1, view=view)
        if session.devices is not None and victim in session.devices.groups:
            if not promised or stays:
                session.devices.start_leaving(task, victim, row, promised=stays)
            else:
                operation.groups = session.devices.groups[victim]
                session.devices.unplaced(task, victim, row, (), promised=True)
        session.status[victim] = PENDING if promised and not stays else RELEASING
        if job is not None:
            job.shift(operation.before, TaskStatus(int(session.status[victim])), 1, task.charge, task.best_effort)
            session.events.deallocated(Change(job, operation.tasks, operation.nodes, task, task.charge, view=view))

    def _tell_again(self, operation: Operation, sign: int) -> None:
        task = operation.tasks[0]
        assert operation.job is not None
        repeated, row = self.session.repeated_evictions, operation.job.row
        if sign > 0 or operation.job.counts[self._evictions[task].before]:  # a status that no task has is not looked up
            repeated[row] = repeated.get(row, 0) - sign
        for plugin in self.session.implementing(EvictedAgain):
            plugin.on_evicted_again(operation.job, task, operation.nodes[0], sign)

    def _undo(self, operation: Operation) -> None:
        if operation.kind == PENDING:  # a nomination moved nothing
            return
        if operation.again:
            self._tell_again(operation, 1)
        elif operation.restores is not None:
            operation.restores.void = False
            self._release(operation.restores)
        elif operation.kind == RELEASING:
            self._evictions.pop(operation.tasks[0], None)
            self._unrelease(operation)
        else:
            if operation.before == PENDING and operation.job is not None and not self.trial:
                operation.job.last_undone.update(dict.fromkeys(operation.tasks, operation.kind))
            self._apply(operation, -1)

    def _unrelease(self, operation: Operation) -> None:
        session, task, job = self.session, operation.task, operation.job
        row, victim = operation.nodes[0], operation.tasks[0]
        after = TaskStatus(int(session.status[victim]))
        view = not operation.holds_node
        promised = operation.before == PIPELINED
        stayed = promised and session.semantics.evicted_promise_stays
        if session.devices is not None and (victim in session.devices.groups or operation.groups):
            if not promised or stayed:
                session.devices.stop_leaving(task, victim, row, promised=stayed)
            elif promised:
                session.devices.placed(task, victim, row, operation.groups, promised=True)
        if not promised or stayed:
            session.nodes.release(row, task.request, task.footprint, -1, view=view)
        if stayed:
            session.nodes.place(np.array([row]), _ONE, task.request, task.footprint, -1, pipelined=False)
        if promised:
            session.nodes.place(np.array([row]), _ONE, task.request, task.footprint, 1, pipelined=True)
        session.status[victim] = operation.before
        session.node[victim] = row
        if job is not None:
            job.shift(after, operation.before, 1, task.charge, task.best_effort)
            session.events.allocated(Change(job, operation.tasks, operation.nodes, task, task.charge, undone=True, view=view))


_NOTHING: Mapping[int, Reason] = {}
_ONE: IntArray = np.ones(1, dtype=np.int64)
_ONE_ROW: Rows = np.zeros(1, dtype=np.intp)
