"""One attempt of `allocate` at the tasks of a job: the next tasks get nodes, or a reason, until the job is ready.

Tasks are taken in order, equal ones in one step. The queue is asked first, then the filters. A task that finds no node ends the
attempt if the job cannot start without it. Placements go into the caller's statement.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from navarch.actions.role_refusals import RoleRefusals
from navarch.actions.static_exclusion import StaticExclusion
from navarch.engine.gangs.sub_jobs import SubJob
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.fit_errors import FitErrors
from navarch.engine.placement.shared_devices import shares_devices
from navarch.engine.reasons import Reason
from navarch.engine.statement import Statement
from navarch.engine.topology.domains import NOWHERE
from navarch.model.resources import BoolArray
from navarch.model.status import TaskStatus


class PlacementAttempt:
    """`tasks` are taken from the end. `part`, `domain`: the attempt is at this part of the job, in this domain. `inside`: only on
    these nodes. `refusals_last`: a node that refused a role is not tried for it again. `refused_by_queue(job, reason)` is told of
    tasks that the queue may not take."""

    def __init__(
        self,
        job: Job,
        tasks: list[int],
        statement: Statement,
        part: SubJob | None = None,
        domain: int = NOWHERE,
        inside: BoolArray | None = None,
        *,
        refusals_last: bool,
        excluded: StaticExclusion,
        refused_by_queue: Callable[[Job, Reason], None],
    ) -> None:
        session = job.session
        self._session = session
        self._job = job
        self._tasks = tasks
        self._statement = statement
        self._part = part
        self._domain = domain
        self._excluded = excluded
        self._refused_by_queue = refused_by_queue
        self._within = inside
        if part is not None:
            session.domains.start_anchor(part)
            self._within = None if domain == session.domains.tree.top else session.domains.tree.mask(domain)
        self._refusals = RoleRefusals(session, tasks, lasting=refusals_last and self._missing() > 1)
        self._is_lost = False
        """The job cannot start any more in this attempt."""

    def run(self) -> bool:
        """Place tasks until the job, or its part, is ready. Returns whether it is."""
        while self._tasks and not self._is_lost:
            if self._place_next() and self._is_ready():
                return True
        return self._is_ready()

    def _place_next(self) -> bool:
        """Place the next tasks that can be placed in one step, or say why the next one gets no node. Returns whether any is placed."""
        session, job = self._session, self._job
        task = session.class_of(self._tasks[-1])
        role = session.task(self._tasks[-1]).role
        room, reason = session.allocatable(job.queue, task, self._wanted(task, role))
        if reason is not None:
            self._leave_to_queue(task, reason)
            return False
        refusal = session.pre_predicate(task)
        if refusal is not None:
            self._refuse_next(
                FitErrors(len(session.nodes), message=refusal.message, codes=(refusal.code,), undone_by=refusal.undone_by)
            )
            job.refuse(refusal)
            self._is_lost = not can_still_start(job, self._part)
            return False
        if self._place_nominated(task):
            return True
        open_to = self._within
        if self._refusals.bind(role):
            open_to = self._refusals.open_to(role, self._within)
            self._refusals.note(self._tasks[-1], self._within)
        nodes, pipelined = session.view(task).choose(room, open_to)
        if not nodes:
            self._refuse_next(self._fit_errors(task, role))
            self._is_lost = not can_still_start(job, self._part)
            return False
        failure = session.view(task).scoring_failure()
        if failure is not None:
            self._take(1)
            job.refuse(failure)
            return False
        return self._place(task, nodes, pipelined=pipelined)

    def _place(self, task: TaskClass, nodes: list[int], *, pipelined: bool) -> bool:
        """Put the next tasks on these nodes. A plugin may refuse some of them there: then none is placed, and the others wait."""
        session, job = self._session, self._job
        chosen = self._take(len(nodes))
        groups: tuple[str, ...] = ()
        if session.devices is not None and shares_devices(task):
            groups, pipelined = session.devices.choose(task, nodes[0], not pipelined) or ((), pipelined)
        place = self._statement.pipeline if pipelined else self._statement.allocate
        vetoed = place(job, chosen, nodes, task, groups)
        if vetoed:
            for reason in vetoed.values():
                job.refuse(reason)
            self._tasks += [row for row in reversed(chosen) if row not in vetoed]
            return False
        if self._part is not None:
            session.domains.move_anchor(self._part, nodes)
        return True

    def _place_nominated(self, task: TaskClass) -> bool:
        """Place a task with a nominated node there, if it fits now or after releases."""
        session = self._session
        name = session.task(self._tasks[-1]).nominated_node
        row = session.snapshot.nodes.row(name) if name and not shares_devices(task) else None
        if row is None or (self._within is not None and not self._within[row]):
            return False
        view = session.view(task)
        if not view.feasible()[row] or not view.future[row]:
            return False
        place = self._statement.allocate if view.idle[row] else self._statement.pipeline
        place(self._job, self._take(1), [row], task)
        return True

    def _take(self, count: int) -> list[int]:
        """Remove the next tasks: the list ends with the first."""
        taken = self._tasks[: -count - 1 : -1]
        del self._tasks[-count:]
        return taken

    # how many at once

    def _wanted(self, task: TaskClass, role: str) -> int:
        """How many of the next tasks to place in one step."""
        wanted = self._missing()
        if wanted > 1 and (self._refusals.bind(role) or self._session.view(task).one_by_one(self._within)):
            wanted = 1
        return self._run_length(task, wanted, alike=self._refusals.alike)

    def _run_length(self, task: TaskClass, most: int, *, alike: bool = False) -> int:
        """How many of the next tasks, at most `most`, can be placed in one step: same class, same role, and no nominated node
        except on the first. Bounded, because a ready job returns for one task a turn however many it has left. `alike`: all are known
        to be of the same class."""
        session, tasks = self._session, self._tasks
        if most == 1 or session.task(tasks[-1]).nominated_node:
            return 1
        role, count = session.task(tasks[-1]).role, 0
        alike = alike or (most > 2 and session.share_class(tasks[-most:]))
        for row in reversed(tasks):
            spec = session.task(row)
            if count == most or spec.role != role or spec.nominated_node or not (alike or session.class_of(row) is task):
                break
            count += 1
        return count

    def _missing(self) -> int:
        """How many tasks may be placed before readiness has to be asked again."""
        return self._session.job_missing(self._job) if self._part is None else self._session.sub_job_missing(self._part)

    def _is_ready(self) -> bool:
        return self._session.job_ready(self._job) if self._part is None else self._session.sub_job_ready(self._part)

    # why not

    def _refuse_next(self, errors: FitErrors) -> None:
        (refused,) = self._take(1)
        self._job.fit_errors[refused] = errors

    def _fit_errors(self, task: TaskClass, role: str) -> FitErrors:
        """Why no node takes the next task, beside how many that this attempt placed."""
        session, within = self._session, self._within
        errors = self._refusals.explain(role) if self._refusals.bind(role) else session.view(task).explain(within=within)
        errors.domain = session.domains.tree.names[self._domain] if within is not None and self._part is not None else ""
        placed = sum(len(operation.tasks) for operation in self._statement.operations)
        return replace(errors, beside=placed) if placed else errors

    def _leave_to_queue(self, task: TaskClass, reason: Reason) -> None:
        """The queue may not take the next task, nor those that are equal to it."""
        session = self._session
        self._refused_by_queue(self._job, reason)
        nowhere = self._excluded.reason(task) if session.semantics.refusals_tell_all else None
        if nowhere is not None:
            self._refused_by_queue(self._job, nowhere)
        self._take(self._run_length(task, len(self._tasks)))


def can_still_start(job: Job, part: SubJob | None = None) -> bool:
    """After a task found no node: whether the job, or this part of it, can reach its minimum without the roles that failed."""
    if job.min_member >= len(job.tasks) or job.session.semantics.misfit_ends_turn:
        return False
    if part is not None and part.min_member >= len(part.tasks):
        return False
    if job.spec.sub_groups:
        return True
    session = job.session
    failed = {session.task(t).role for t in job.fit_errors}
    roles = dict(job.spec.roles)
    if job.min_member < sum(roles.values()):
        pending = [t for t in job.tasks_in(TaskStatus.PENDING) if session.task(t).role not in failed]
        return job.ready_count + len(pending) >= job.min_member
    ready = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED)
    counts = job.role_counts(ready, pending_best_effort=True)
    return all(counts[role] >= roles.get(role, 0) for role in failed)
