"""A job within a session: its immutable spec and the counts and sums that statements move.

Made when first needed, so a cycle over ten thousand running gangs touches only those that it processes. Counts are plain Python
integers because readiness checks read them after every placement.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from navarch.engine.reasons import Reason
from navarch.model.resources import IntArray
from navarch.model.spec import Condition, JobSpec
from navarch.model.status import IS_ALLOCATED, TaskStatus

if TYPE_CHECKING:
    from navarch.engine.gangs.gang_tree import GangTree
    from navarch.engine.gangs.sub_jobs import SubJob
    from navarch.engine.placement.fit_errors import FitErrors
    from navarch.engine.queue import Queue
    from navarch.engine.session import Session

PENDING, ALLOCATED, PIPELINED = int(TaskStatus.PENDING), int(TaskStatus.ALLOCATED), int(TaskStatus.PIPELINED)
BINDING, BOUND, RUNNING, SUCCEEDED = (
    int(TaskStatus.BINDING),
    int(TaskStatus.BOUND),
    int(TaskStatus.RUNNING),
    int(TaskStatus.SUCCEEDED),
)
_HOLDS: tuple[int, ...] = tuple(int(held) for held in IS_ALLOCATED)
"""Status -> 1 if a task in it counts as allocated."""
_READY = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED)


class Job:
    __slots__ = (
        "_priority",
        "_sub_jobs",
        "_tree",
        "allocated",
        "best_effort_pending",
        "conditions",
        "counts",
        "fit_errors",
        "key",
        "last_undone",
        "min_member",
        "phase",
        "queue",
        "reasons",
        "row",
        "session",
        "spec",
        "status_changed",
        "tasks",
        "unschedulable",
        "version",
    )

    def __init__(self, session: Session, row: int, spec: JobSpec, queue: Queue) -> None:
        columns = session.snapshot.jobs
        self.session = session
        self.row = row
        self.spec = spec
        self.key = spec.key
        self.queue = queue
        self.min_member = spec.min_member
        self.phase = spec.phase
        self.tasks: tuple[int, ...] = tuple(columns.tasks[row])
        self.counts: list[int] = columns.counts[row].tolist()
        self.best_effort_pending = int(columns.best_effort_pending[row])
        self.allocated: IntArray = columns.allocated[:, row].copy()
        self.fit_errors: dict[int, FitErrors] = {}
        """Task row -> why no node took it in this cycle."""
        self.last_undone: dict[int, TaskStatus] = {}
        """Task row -> the status of its last undone placement: the task alone could have run."""
        self.reasons: list[Reason] = []
        """Why it waits, in the order in which the cycle found the reasons."""
        self.conditions: dict[str, Condition] = {c.type: c for c in spec.conditions}
        self.status_changed = False
        """This cycle set a condition, or another field of the group's status."""
        self.unschedulable = False
        """An Unschedulable condition was set in this cycle."""
        self.version = 0
        """Grows whenever a task of the job moves."""
        self._priority = None if spec.priority_of_tasks else spec.priority
        self._sub_jobs: list[SubJob] | None = None
        self._tree: GangTree | None = None

    @property
    def has_changed(self) -> bool:
        """Whether this cycle changed the job or found a reason for it."""
        return bool(self.version or self.reasons or self.fit_errors or self.status_changed or self.phase != self.spec.phase)

    @property
    def is_refused_without_pods(self) -> bool:
        """It was not admitted in this cycle. Volcano's controller makes its pods once it is."""
        return bool(self.reasons) and not self.tasks and self.phase == "Pending"

    # what readiness is made of

    @property
    def priority(self) -> int:
        if self._priority is None:
            priorities = self.session.snapshot.tasks.priority
            self._priority = int(priorities[list(self.tasks)].max()) if self.tasks else self.spec.priority
        return self._priority

    @property
    def ready_count(self) -> int:
        counts = self.counts
        return counts[ALLOCATED] + counts[BINDING] + counts[BOUND] + counts[RUNNING] + counts[SUCCEEDED]

    @property
    def is_ready(self) -> bool:
        return self.ready_count + self.best_effort_pending >= self.min_member

    @property
    def is_pipelined(self) -> bool:
        return self.ready_count + self.counts[PIPELINED] + self.best_effort_pending >= self.min_member

    @property
    def is_starving(self) -> bool:
        return self.ready_count + self.counts[PIPELINED] < self.min_member

    @property
    def valid_count(self) -> int:
        return self.ready_count + self.counts[PIPELINED] + self.counts[PENDING]

    # roles

    @property
    def roles_matter(self) -> bool:
        """Role minimums are a demand only where the gang's own minimum covers them all."""
        return bool(self.spec.roles) and self.min_member >= sum(minimum for _, minimum in self.spec.roles)

    def role_counts(self, statuses: tuple[TaskStatus, ...], *, pending_best_effort: bool = False) -> Counter[str]:
        session, counts = self.session, Counter[str]()
        counts.update(session.task(task).role for task in self.tasks_in(*statuses))
        if pending_best_effort and self.best_effort_pending:
            empty = session.snapshot.shape_best_effort
            waiting = (t for t in self.tasks_in(TaskStatus.PENDING) if empty[session.shape[t]])
            counts.update(session.task(task).role for task in waiting)
        return counts

    def _roles_reach(self, statuses: tuple[TaskStatus, ...], *, pending_best_effort: bool) -> bool:
        if not self.roles_matter:
            return True
        counts = self.role_counts(statuses, pending_best_effort=pending_best_effort)
        return all(counts[role] >= minimum for role, minimum in self.spec.roles)

    @property
    def roles_valid(self) -> bool:
        return self._roles_reach((*_READY, TaskStatus.PIPELINED, TaskStatus.PENDING), pending_best_effort=False)

    @property
    def roles_ready(self) -> bool:
        return self._roles_reach(_READY, pending_best_effort=True)

    @property
    def roles_pipelined(self) -> bool:
        return self._roles_reach((*_READY, TaskStatus.PIPELINED), pending_best_effort=True)

    # tasks

    def tasks_in(self, *statuses: TaskStatus) -> list[int]:
        if self.counts[PENDING] == len(self.tasks):
            return list(self.tasks) if TaskStatus.PENDING in statuses else []
        wanted = {int(status) for status in statuses}
        statuses_now = self.session.status[list(self.tasks)].tolist()
        return [task for task, status in zip(self.tasks, statuses_now) if status in wanted]

    @property
    def sub_jobs(self) -> list[SubJob]:
        if self._sub_jobs is None:
            from navarch.engine.gangs.sub_jobs import split_into_sub_jobs

            self._sub_jobs = split_into_sub_jobs(self)
        return self._sub_jobs

    @property
    def tree(self) -> GangTree:
        """The tree of its parts, for KAI's rules."""
        if self._tree is None:
            from navarch.engine.gangs.gang_tree import gang_tree

            self._tree = gang_tree(self)
        return self._tree

    def refuse(self, reason: Reason) -> None:
        """Add a reason why it waits, unless the same one is there."""
        if all(reason.code != known.code or reason.message != known.message for known in self.reasons):
            self.reasons.append(reason)

    def set_condition(self, type_: str, status: str, reason: str, message: str) -> None:
        """Replace the condition of this type; the transition time moves only with the status."""
        before, session = self.conditions.get(type_), self.session
        since = before.last_transition if before is not None and before.status == status else session.now
        self.status_changed = True
        self.conditions[type_] = Condition(type_, status, reason, message, session.uid, since)
        if type_ == "Unschedulable":
            self.unschedulable = True

    # moved by statements only

    def shift(self, before: TaskStatus, after: TaskStatus, count: int, request: IntArray, best_effort: bool) -> None:
        self.counts[before] -= count
        self.counts[after] += count
        self.version += 1
        change = _HOLDS[after] - _HOLDS[before]
        if change:
            self.allocated += change * count * request
        if best_effort:
            self.best_effort_pending += count * ((after == PENDING) - (before == PENDING))

    def shift_one(self, charge: IntArray, best_effort: bool, sign: int) -> None:
        """As `shift` for one pending task that is allocated (sign 1), or is pending again (-1)."""
        self.counts[PENDING] -= sign
        self.counts[ALLOCATED] += sign
        self.version += 1
        if sign > 0:
            self.allocated += charge
        else:
            self.allocated -= charge
        if best_effort:
            self.best_effort_pending -= sign

    def __repr__(self) -> str:
        return f"Job({self.key})"
