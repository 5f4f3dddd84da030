"""allocate: idle resources to admitted jobs, queue by queue, job by job, a gang at a time.

A turn works on one job in one statement: its tasks best first, equal tasks in one step, until the job is ready. Ready: commit
(and come back for the rest, one task a turn, so that elastic parts of jobs interleave). Not ready but sure to be once what is
being released is free: keep the claim, bind nothing. Otherwise the statement is discarded and nothing is left behind.
"""

from __future__ import annotations

from navarch.actions.continuing import need_continue
from navarch.actions.worksheet import JobHeap, QueueHeap, takes_part, waiting_tasks
from navarch.engine.action import Action
from navarch.engine.arguments import Argument
from navarch.engine.fit import FitErrors
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.statement import Statement


class Allocate(Action):
    """Gives idle resources to jobs, whole gangs at a time"""

    name = "allocate"
    arguments = (Argument("predicateErrorCacheEnable", "bool", True, "remember per role which nodes refused a task"),)

    def execute(self) -> None:
        session = self.session
        jobs: dict[str, JobHeap] = {}
        self._tasks: dict[int, list[int]] = {}
        for job in session.jobs_with_pending():
            if takes_part(session, job) and (tasks := waiting_tasks(session, job, best_effort=False)):
                self._tasks[job.row] = tasks
                jobs.setdefault(job.queue.name, JobHeap(session)).push(job)
        self._sorted: set[int] = set()
        queues = QueueHeap(session, (session.queues[name] for name in jobs))
        while (queue := queues.pop()) is not None:
            reason = session.overused(queue)
            if reason is not None:
                while (left := jobs[queue.name].pop()) is not None:
                    left.refuse(reason)
                continue
            best = jobs[queue.name].pop()
            if best is None:
                continue
            if self._turn(best):
                jobs[queue.name].push(best)
            queues.push(queue)

    def _turn(self, job: Job) -> bool:
        """One attempt at a job. True: it is ready and has tasks left for another turn."""
        session = self.session
        tasks = self._tasks[job.row]
        if job.row not in self._sorted:
            self._sorted.add(job.row)
            tasks = self._tasks[job.row] = session.sorted_tasks(tasks, reverse=True)  # taken from the end
        statement = session.statement()
        self._place_tasks(job, tasks, statement)
        if session.job_ready(job):
            statement.commit()
            return bool(tasks)
        if session.job_pipelined(job) and session.semantics.keep_pipelined_uncommitted:
            return False
        if not session.semantics.partial_gang_holds_nodes:
            statement.discard()
        return False

    def _place_tasks(self, job: Job, tasks: list[int], statement: Statement) -> None:
        session = self.session
        while tasks:
            task = session.class_of(tasks[-1])
            if self._role_failed(job, tasks[-1]):
                skipped = tasks.pop()
                spec = session.task(skipped)
                text = f"Task {spec.name} with role spec {spec.role} has already predicated failed, skip"
                job.fit_errors.setdefault(skipped, FitErrors(0, message=text))
                continue
            run = self._run_length(tasks, task)
            room, reason = session.allocatable(job.queue, task, run)
            if reason is not None:
                job.refuse(reason)
                del tasks[-run:]
                continue
            refusal = session.pre_predicate(task)
            if refusal is not None:
                job.fit_errors[tasks.pop()] = FitErrors(len(session.nodes), message=refusal.message, codes=(refusal.code,))
                job.refuse(refusal)
                if need_continue(job):
                    continue
                return
            if self._nominated(job, tasks, task, statement):
                if session.job_ready(job):
                    return
                continue
            wanted = min(room, session.job_missing(job))
            nodes, pipelined = session.view(task).choose(wanted)
            if not nodes:
                job.fit_errors[tasks.pop()] = session.view(task).explain()
                if need_continue(job):
                    continue
                return
            chosen = [tasks.pop() for _ in nodes]
            if pipelined:
                statement.pipeline(job, chosen, nodes, task)
            else:
                statement.allocate(job, chosen, nodes, task)
            if session.job_ready(job):
                return

    def _run_length(self, tasks: list[int], task: TaskClass) -> int:
        """How many of the next tasks are alike: same class, same role, no node promised to any but the first."""
        session = self.session
        if session.task(tasks[-1]).nominated_node:
            return 1
        role, count = session.task(tasks[-1]).role, 0
        for row in reversed(tasks):
            spec = session.task(row)
            if session.class_of(row) is not task or spec.role != role or spec.nominated_node:
                break
            count += 1
        return count

    def _nominated(self, job: Job, tasks: list[int], task: TaskClass, statement: Statement) -> bool:
        """A task that was promised a node takes it if it fits there now or soon."""
        session = self.session
        name = session.task(tasks[-1]).nominated_node
        row = session.snapshot.nodes.row(name) if name else None
        if row is None:
            return False
        view = session.view(task)
        if not view.feasible()[row] or not view.future[row]:
            return False
        place = statement.allocate if view.idle[row] else statement.pipeline
        place(job, [tasks.pop()], [row], task)
        return True

    def _role_failed(self, job: Job, task: int) -> bool:
        if not self.session.semantics.role_failure_is_remembered or not job.fit_errors:
            return False
        role = self.session.task(task).role
        return bool(role) and any(self.session.task(t).role == role for t in job.fit_errors)
