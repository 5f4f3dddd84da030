"""Turns in one step: equal jobs at the head of the only queue that waits get one task each, or one job gets several tasks.

A ready job returns for one task a turn. With thousands of elastic jobs most of a cycle is such turns, although their outcome is
known: jobs whose keys in the plugins' order are equal go by age, and each falls behind the others once it holds more; a job whose key
does not change is first again. This module takes all turns of such a run together: one question to the queue, one choice of nodes
(`ClassView.choose`, `placement/mixed_run` equal placing tasks one by one), one move of the nodes' figures.

Nothing is assumed about the run beforehand. It is placed on a statement, then the keys, the readiness and the queue are asked as after
the last of its turns. If the plain order of turns would have been another one, the statement is discarded, and the first job gets a
plain turn. Answers after the last turn tell those in between where plugins say `turns_in_one_step`: a job's key depends on that job
alone and does not fall while the job grows, a ready job stays ready, and an overused queue stays overused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from navarch.actions.job_queues import JobHeap, Turns
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.mixed_run import MixedRuns
from navarch.engine.points.protocols import Allocatable, JobOrder, JobReady, JobTurn, MovingTaskOrder, Overused
from navarch.engine.session import Session

_MOST = 1 << 10
"""Turns that are taken in one step at most."""
_FIRST = 8
"""Turns that are tried in one step at first, and after attempts that failed."""
_WORTH = 4
"""A run over several classes is worth it with so many tasks a class."""
_LONGEST_PAUSE = 64
"""Rounds without mixed classes, or plain turns, where one attempt after the other was not worth it."""
_TIE_BREAK = -2
"""Where the tie-break (age and name) begins in a job's key, behind the plugins' parts."""


def may_take_turns_together(session: Session) -> bool:
    """Whether the plugins of the policy allow it."""
    if session.implementing(JobTurn) or session.implementing(MovingTaskOrder):
        return False
    if any(plugin.asked_servers(plugin.given) for plugin in session.plugins):
        return False  # a server outside hears of every placement in its turn, and of none that is only tried
    asked: list[Any] = [*session.implementing(JobOrder), *session.implementing(JobReady), *session.implementing(Overused)]
    return all(plugin.turns_in_one_step for plugin in asked)


class EqualTurns:
    def __init__(self, session: Session, turns: Turns, tasks_of: Callable[[Job], list[int]]) -> None:
        """`tasks_of`: the waiting tasks of a job in order, the next one last."""
        self._session = session
        self._turns = turns
        self._tasks_of = tasks_of
        self._most = _FIRST
        self._plain_turns = 0
        """Plain turns until the next attempt, after attempts that failed."""
        self._pause = 1
        self._stays_first = False
        """Whether the key of the last job did not rise with its turn."""
        self._runs = MixedRuns()
        self._unmixed = 0
        """Rounds until classes are mixed again, after runs that were not worth it."""
        self._pause_mixing = 1
        self._mixing: dict[int, bool] = {}
        """Class -> whether it may be placed between tasks of other classes."""
        limits: list[Any] = [*session.implementing(Allocatable)]
        self._mixed = all(plugin.turns_in_one_step for plugin in limits)

    def take(self, job: Job, others: JobHeap) -> bool:
        """Take turns of this job, the first of its queue, and of those behind it. False: nothing was done, and the job needs a plain
        turn."""
        session = self._session
        if self._plain_turns:
            self._plain_turns -= 1
            return False
        if not self._turns.is_last() or session.job_missing(job) != 1:
            return False
        if not len(others) and len(self._tasks_of(job)) < 2:
            return False  # one turn is all there is
        task = self._next_class(job)
        if task is None or not self._may_run(task):
            return False
        if self._stays_first or not len(others):
            return self._repeat(job, others, task)
        return self._go_round(job, others, task)

    def _may_run(self, task: TaskClass) -> bool:
        """Whether tasks of the class can be placed in a run."""
        session = self._session
        return not session.view(task).one_by_one(None) and session.pre_predicate(task) is None

    def _may_mix(self, task: TaskClass) -> bool:
        found = self._mixing.get(task.number)
        if found is None:
            found = self._mixing[task.number] = self._mixed and self._session.view(task).can_mix()
        return found

    def _next_class(self, job: Job) -> TaskClass | None:
        """The class of the next task; None if its turn may be more than one plain step: it has parts, a nominated node, or tasks that
        were refused before."""
        spec = job.spec
        if spec.sub_groups or spec.topology is not None or job.fit_errors:
            return None
        tasks = self._tasks_of(job)
        return None if not tasks or self._session.task(tasks[-1]).nominated_node else self._session.class_of(tasks[-1])

    def _go_round(self, first: Job, others: JobHeap, task: TaskClass) -> bool:
        """The first job and those behind it with equal keys: one task each. Their tasks are of one class, or of classes that mix."""
        session, common = self._session, others.popped[:_TIE_BREAK]
        entries, classes, asked = [(others.popped, first)], [task], {task.number}
        mixes = not self._unmixed and self._may_mix(task)
        self._unmixed = max(self._unmixed - 1, 0)
        while len(entries) < self._most and (best := others.peek()) is not None:
            key, job = best
            if key[:_TIE_BREAK] != common or session.job_missing(job) != 1 or (kind := self._next_class(job)) is None:
                break
            if kind.number not in asked:
                if not (mixes and self._may_mix(kind) and self._may_run(kind)):
                    break
                asked.add(kind.number)
            others.pop()
            entries.append(best)
            classes.append(kind)
        if len(entries) == 1:
            return self._alone()
        mixed = len(asked) > 1 and self._room_for_all(first, classes)
        nodes = self._runs.choose([session.view(kind) for kind in classes]) if mixed else self._choose_run(first, classes)
        if mixed:
            self._weigh(len(nodes), len(entries), len(asked))
        entries, behind = entries[: max(len(nodes), 1)], entries[max(len(nodes), 1) :]
        for key, job in behind:
            others.push_with(key, job)
        jobs = [job for _, job in entries]
        statement, undone = session.statement(), [job.last_undone.copy() for job in jobs]
        lists = [self._tasks_of(job) for job in jobs]
        placing = [tasks[-1] for tasks in lists]
        if nodes and not statement.allocate_each(jobs, placing, nodes, classes[: len(jobs)]) and self._holds(jobs):
            keys: list[Any] = [session.job_order(job) for job in jobs]
            if all(key[:_TIE_BREAK] > common for key, tasks in zip(keys, lists) if len(tasks) > 1):
                statement.commit()
                if mixed:
                    self._runs.placed(nodes)
                for job, key, tasks in zip(jobs, keys, lists):
                    session.tried[job.key] = None
                    tasks.pop()
                    if tasks:
                        others.push_with(key, job)
                return self._succeeded(len(jobs))
            self._stays_first = True
        statement.discard()
        for job, before in zip(jobs, undone):
            job.last_undone = before
        for key, job in entries[1:]:
            others.push_with(key, job)
        return self._failed(len(jobs))

    def _repeat(self, job: Job, others: JobHeap, task: TaskClass) -> bool:
        """Several tasks of a ready job that is first again after each of them."""
        session, tasks = self._session, self._tasks_of(job)
        chosen: list[int] = []
        for row in reversed(tasks[-self._most :]):
            if session.class_of(row) is not task or session.task(row).nominated_node:
                break
            chosen.append(row)
        if len(chosen) == 1 or not session.job_ready(job):
            return False
        nodes = self._choose(job, task, len(chosen))
        statement, undone = session.statement(), job.last_undone.copy()
        if nodes and not statement.allocate(job, chosen[: len(nodes)], nodes, task) and self._holds([job]):
            key, best = session.job_order(job), others.peek()
            if best is None or key < best[0]:
                statement.commit()
                session.tried[job.key] = None
                del tasks[-len(nodes) :]
                if tasks:
                    others.push_with(key, job)
                return self._succeeded(len(nodes))
            self._stays_first = False
        statement.discard()
        job.last_undone = undone
        return self._failed(len(chosen))

    def _choose(self, job: Job, task: TaskClass, count: int) -> list[int]:
        """Nodes with room now for up to `count` tasks; none where the first of them needs a plain turn."""
        session = self._session
        room, refused = session.allocatable(job.queue, task, count)
        if refused is not None:
            return []
        nodes, pipelined = session.view(task).choose(room)
        return [] if pipelined or session.view(task).scoring_failure() is not None else nodes

    def _room_for_all(self, first: Job, classes: Sequence[TaskClass]) -> bool:
        """Whether the queue has room for one task of each of these classes. Where it has room for as many tasks of one class as there
        are tasks, whatever the class, it has room for any mixture: its limits are by resource."""
        session = self._session
        kinds = {task.number: task for task in classes}.values()
        return all(session.allocatable(first.queue, task, len(classes)) == (len(classes), None) for task in kinds)

    def _choose_run(self, first: Job, classes: Sequence[TaskClass]) -> list[int]:
        """Nodes for the tasks in front that are of one class."""
        alike = next((number for number, task in enumerate(classes) if task is not classes[0]), len(classes))
        return self._choose(first, classes[0], alike)

    def _holds(self, jobs: Sequence[Job]) -> bool:
        """Whether each job is ready after its turn, and the queue may go on after the last one."""
        return self._session.overused(jobs[0].queue) is None and all(map(self._session.job_ready, jobs))

    def _weigh(self, sure: int, asked: int, classes: int) -> None:
        """Mix no classes for a while where runs over them end early: each class is asked once a run, however short the run is."""
        if sure < asked and sure < _WORTH * classes:
            self._unmixed, self._pause_mixing = self._pause_mixing - 1, min(2 * self._pause_mixing, _LONGEST_PAUSE)
        elif sure >= _WORTH * classes:
            self._pause_mixing = 1

    def _succeeded(self, count: int) -> bool:
        self._most, self._pause = min(max(2 * count, _FIRST), _MOST), 1
        return True

    def _alone(self) -> bool:
        """The job behind the first is of another class or has another key, and so may those behind it."""
        self._plain_turns, self._pause = self._pause - 1, min(2 * self._pause, _LONGEST_PAUSE)
        return False

    def _failed(self, count: int) -> bool:
        self._most = count // 2
        if self._most < 2:
            self._most, self._plain_turns = _FIRST, self._pause
            self._pause = min(2 * self._pause, _MOST)
        return False
